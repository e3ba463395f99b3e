"""Knob drift: what changed without a word is told; schedules, directives and rollbacks are words."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from number_run import Numbers, recorded, series
from run_story import CORE, Story

from gyrostat.wire import KnobState
from gyrostat_rules.detectors import Reading
from gyrostat_rules.detectors.knobdrift import KnobDrift, knob_drift
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import RulePack

HALVED = (KnobState("lr_scale", 0.5, 0.01, 1.0, 2.0), KnobState("max_grad_norm", 1.0, 0.1, 4.0, 2.0))


def rates(values: list[float], name: str = "learning_rate") -> Numbers:
    """A detector over a learning rate."""
    return Numbers(knob_drift, KnobDrift()).told(series(name, values))


def knobs(values: list[float], **offered: float) -> Numbers:
    """A detector over lr_scale, told as a series, beside the knobs that Hello shows."""
    return Numbers(knob_drift, KnobDrift(), knobs=offered).told(series("lr_scale", values))


TUNED = CORE.replace(
    "remedy: skip_data, horizon: 10", "remedy: turn, horizon: 10, knobs: [{name: lr_scale, times: 0.5}]"
)


# -- learning rate ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["learning_rate", "lr", "actor/lr", "train/learning_rate"])
def test_a_leap_is_told_on_its_step(name: str) -> None:
    """A hundredfold rate that nobody ordered, whatever the framework calls it, is told with what it was."""
    story = rates([1e-4] * 20 + [1e-2] * 5, name)
    assert story.alarms == dict.fromkeys(range(20, 25), 20)
    (reading,) = story.last
    assert "went from 0.0001 to 0.01, 100 times as much, at step 20" in reading.why
    assert reading.evidence == {"series": name, "expected": 1e-4, "found": 1e-2, "times": pytest.approx(100)}


def test_it_is_over_when_the_rate_is_back() -> None:
    """Down again it is no more told, and a second leap has its own onset."""
    story = rates([1e-4] * 20 + [1e-2] * 5 + [1e-4] * 10 + [1e-2])
    assert max(s for s in story.alarms if s < 30) == 24
    assert story.last[0].onset == 35


def cosine(step: int, first: int, period: int, low: float = 0.0) -> float:
    """A cosine from 1 to ``low`` over ``period`` steps."""
    return low + (1 - low) * (1 + math.cos(math.pi * ((step - first) % period) / period)) / 2


SCHEDULES: dict[str, Callable[[int], float]] = {
    "constant": lambda s: 1.0,
    "linear warm-up from 0": lambda s: min(s / 100, 1.0),
    "linear warm-up from a billionth": lambda s: max(1e-9, min(s / 100, 1.0)),
    "short warm-up from 0, linear decay to 0": lambda s: min(s / 5, (800 - s) / 795),
    "exponential warm-up": lambda s: min(1e-6 * 1.5**s, 1.0),
    "constant warm-up at a third": lambda s: 1.0 / 3.0 if s < 50 else 1.0,
    "cosine with warm-up": lambda s: s / 40 if s < 40 else cosine(s, 40, 760),
    "warm-up, stable, decay": lambda s: min(s / 30, 1.0, max(1e-3, (800 - s) / 100)),
    "inverse square root": lambda s: min((s + 1) / 40, (40 / (s + 1)) ** 0.5),
    "restarts": lambda s: cosine(s, 0, 100),
    "restarts, not to 0": lambda s: cosine(s, 0, 150, low=0.05),
    "restarts of 700, not to 0": lambda s: cosine(s, 0, 700, low=0.05),
    "restarts that are lower each time": lambda s: cosine(s, 0, 100) * 0.8 ** (s // 100),
    "restarts with warm-up": lambda s: min((s % 200) / 10, cosine(s, 0, 200)),
    "step decay": lambda s: 0.1 ** (s // 200),
    "cyclic": lambda s: 0.01 + 0.99 * abs((s % 40) / 20 - 1),
    "one cycle": lambda s: 0.04 + 0.96 * s / 240 if s < 240 else max(1e-5, 1 - (s - 240) / 560),
    "long restarts": lambda s: cosine(s, 0, 790),
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_schedules_are_no_leaps(schedule: Callable[[int], float]) -> None:
    """800 steps of each, longer than any memory: a schedule that alarms would be switched off, and the rule with it."""
    assert not rates([3e-5 * schedule(s) for s in range(800)]).alarms


@pytest.mark.parametrize(("period", "steps"), [(150, 1200), (700, 2350)])
def test_restarts_are_none_in_a_long_run_either(period: int, steps: int) -> None:
    """The first values of each cycle are long forgotten when it begins anew, and from a rate that is not 0."""
    assert not rates([3e-5 * cosine(s, 0, period, low=0.05) for s in range(steps)]).alarms


def test_a_leap_in_the_middle_of_a_schedule_is_told() -> None:
    """A cosine does not hide a factor of ten."""
    values = [cosine(s, 0, 400) for s in range(400)]
    assert rates([*values[:100], *(10 * v for v in values[100:130])]).alarms == dict.fromkeys(range(100, 130), 100)


def test_a_rate_that_was_told_to_leap_is_no_drift() -> None:
    """A person who went back and began anew at another rate has said so by a new segment."""
    story = rates([1e-4] * 30)
    story.back(20)
    story.told(series("learning_rate", [1e-2] * 5))
    assert not story.alarms


@pytest.mark.parametrize("run", [f"{fault}-{seed}" for fault in ("lr_bomb", "divergence") for seed in range(3)])
def test_a_fault_of_the_rate_is_told_on_its_own_step(run: str) -> None:
    """Recorded runs, in the middle of which the rate was multiplied by 1000 or 100."""
    assert next(iter(Numbers(knob_drift, KnobDrift()).told(recorded(run)).alarms.items())) == (19, 19)


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_run_is_quiet(seed: int) -> None:
    """150 recorded steps with their warm-up."""
    assert not Numbers(knob_drift, KnobDrift()).told(recorded(f"clean-{seed}")).alarms


# -- knobs --------------------------------------------------------------------------------------------


def test_a_knob_that_reads_otherwise_is_told_and_dated_back() -> None:
    """The trainer tells 0.3 where Hello said 1: since the first such step."""
    story = knobs([1.0] * 10 + [0.3] * 4, lr_scale=1.0)
    assert story.alarms == dict.fromkeys(range(10, 14), 10)
    (reading,) = story.last
    assert reading.why == "knob lr_scale should be 1 and is 0.3 since step 10; no directive changed it"
    assert reading.evidence == {"knob": "lr_scale", "expected": 1.0, "found": 0.3}


def test_the_accuracy_of_32_bits_is_no_drift() -> None:
    """A knob that went through a float32 on its way into a record is the same knob."""
    assert not knobs([1.0] * 5 + [0.1 + 1.5e-9] * 5, lr_scale=0.1).alarms


def test_a_series_in_another_unit_is_no_knob() -> None:
    """A name alone does not make a series the knob's mirror: they must have agreed once."""
    assert not knobs([100.0] * 20, lr_scale=1.0).alarms


def test_a_series_that_is_no_knob_is_left_alone() -> None:
    """Only what Hello offers is compared."""
    assert not knobs([1.0] * 5 + [0.3] * 5, max_grad_norm=1.0).alarms


def test_a_knob_that_is_announced_anew_is_what_it_should_be() -> None:
    """After Hello said 0.3, 0.3 is right, and the old value is not."""
    story = knobs([1.0] * 10, lr_scale=1.0)
    story.hello({"lr_scale": 0.3})
    story.told(series("lr_scale", [0.3] * 5))
    assert not story.alarms
    assert story.tell({"lr_scale": 1.0})[0].onset == 15


# -- directives ---------------------------------------------------------------------------------------


def look(story: Story, step: int, **values: float) -> list[Reading]:
    """A step of a story, and what is read at it."""
    story.step(step, **values)
    record = story.engine.state.recent["trainer/0"][-1]
    moment = Moment(story.at, 1, RulePack("none", (), ()), (record,), step)
    return list(knob_drift(KnobDrift(), story.engine.state, moment))


def poisoned(story: Story, first: int, last: int) -> int:
    """Steps at the old knobs, the last of them poisoned; returns the step that is gone back to."""
    for step in range(first, last):
        assert not look(story, step, lr_scale=1.0, learning_rate=1e-4)
    story.applied(last, lr_scale=1.0, learning_rate=1e-4)
    return int(story.action.arguments["step"])


def turned_story() -> tuple[Story, int]:
    """A run whose second rollback takes smaller steps too: the directive is out, and not answered. And its target."""
    story = Story().begin().checkpoint(10).checkpoint(15)
    target = poisoned(story, 1, 21)
    story.ack()
    target = poisoned(story, target + 1, target + 4)
    assert [c.name for c in story.action.knobs] == ["lr_scale", "max_grad_norm"]
    return story, target


def test_while_a_directive_is_out_its_knobs_are_nobodys_drift() -> None:
    """The trainer announces what it set before its answer is read; a slow rank's old record may come between."""
    story, _ = turned_story()
    story.batch(story.hello(knobs=HALVED))
    for step in range(story.engine.state.step + 1, story.engine.state.step + 5):
        assert not look(story, step, lr_scale=1.0)


def test_the_step_at_which_knobs_were_turned_is_in_doubt() -> None:
    """One trainer tells a step before it obeys, another after: the old value at that step is no drift, later it is."""
    story = Story(pack=TUNED).begin()
    for step in range(1, 21):
        assert not look(story, step, lr_scale=1.0)
    story.applied(21, lr_scale=1.0)
    story.batch(story.hello(knobs=HALVED))
    story.ack(step=22)
    assert not look(story, 22, lr_scale=1.0)
    assert look(story, 23, lr_scale=1.0)[0].onset == 23


def test_a_rate_that_rises_with_a_directive_is_no_drift() -> None:
    """Knobs were turned between the two steps."""
    story = Story(pack=TUNED).begin()
    for step in range(1, 21):
        assert not look(story, step, learning_rate=1e-4)
    story.applied(21, learning_rate=1e-4)
    story.ack(step=22)
    assert not look(story, 22, learning_rate=1e-2)


def test_a_directive_that_was_applied_is_a_word() -> None:
    """Old values before it, new ones after it: nothing is told. Then one that strays is."""
    story, target = turned_story()
    story.batch(story.hello(knobs=HALVED))
    story.ack()
    for step in range(target + 1, target + 6):
        assert not look(story, step, lr_scale=0.5, learning_rate=5e-5)
    (reading,) = look(story, target + 6, lr_scale=1.0, learning_rate=1e-4)
    assert (reading.onset, reading.evidence["found"]) == (target + 6, 1.0)


def test_a_knob_that_was_set_and_never_took_is_told() -> None:
    """The trainer answered `applied`, and its records go on with the old value."""
    story, target = turned_story()
    story.batch(story.hello(knobs=HALVED))
    story.ack()
    (reading,) = [look(story, step, lr_scale=1.0) for step in range(target + 1, target + 4)][-1]
    assert (reading.onset, reading.evidence["expected"]) == (target + 1, 0.5)


def test_a_rollback_of_ours_excuses_no_leap() -> None:
    """A rate that is a hundredfold after our own rollback is trouble that it brought along."""
    story = Story().begin().checkpoint(10).checkpoint(15)
    target = poisoned(story, 1, 21)
    story.ack()
    (reading,) = look(story, target + 1, learning_rate=1e-2)
    assert reading.onset == target + 1


def test_the_schedules_of_this_test_are_what_they_say() -> None:
    """Restarts leap by more than the factor: else the test above would show nothing."""
    values = [SCHEDULES["restarts"](s) for s in range(300)]
    assert max(b / a for a, b in pairwise(values) if a > 0) > 100
