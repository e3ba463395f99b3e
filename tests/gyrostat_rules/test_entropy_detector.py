"""Entropy: what each look says of healthy and of failing runs, how early, and from which step on."""

import math
from itertools import accumulate
from statistics import median

import pytest
from rows_told import CLEAN, Rows, alarms, first_reading

from gyrostat_rules.detectors import Reading
from gyrostat_rules.detectors.entropy import Entropy, entropy
from gyrostat_rules.floorcontrol import control
from gyrostat_rules.profile import tellers

ON = {"token_entropy_flow_control": 1.0, "alpha_max": 0.1}
OFF = {"token_entropy_flow_control": 0.0, "alpha_max": 0.0}


def look(rows: Rows, name: str, **more: float) -> list[str]:
    """Why the look speaks, or nothing."""
    return [r.why for r in rows.read(entropy, Entropy(name, **more))]  # type: ignore[arg-type]


def test_grave_looks_are_silent_in_healthy_runs() -> None:
    """1200 healthy steps of eight recorded runs, which all descend: nothing is called a failure."""
    for name in ("level", "act", "collapse", "explosion"):
        assert alarms(CLEAN, entropy, Entropy(name), **ON) == (0, 1200), name  # type: ignore[arg-type]


def test_the_forecast_is_cheap_but_not_free() -> None:
    """A normal descent is forecast now and then: fewer than 10 of 1000 steps, which is why it is information only."""
    began, steps = alarms(CLEAN, entropy, Entropy("forecast"), **ON)
    assert 0 < began / steps < 0.01


@pytest.mark.parametrize("run", ["entropy_collapse-0", "entropy_collapse-1", "entropy_collapse-2"])
def test_a_collapse_of_plain_grpo_is_acted_on_at_the_floor(run: str) -> None:
    """With the trainer's control off the incident opens at the floor of the first values, before the collapse has been
    taken for the run's start; with it on only at half of the settled floor, later or never."""
    off, on = first_reading(run, entropy, Entropy("act"), **OFF), first_reading(run, entropy, Entropy("act"), **ON)
    warned = first_reading(run, entropy, Entropy("level"), **ON)
    foreseen = first_reading(run, entropy, Entropy("forecast"), **ON)
    assert off and warned and foreseen
    assert foreseen[0] < warned[0] <= 31 and off[0] <= 22
    assert off[1].evidence["limit"] == 0.3
    assert on is None or on[0] > off[0]
    assert "control is off" in off[1].why


@pytest.mark.parametrize("run", ["divergence-0", "divergence-1", "lr_bomb-1"])
def test_what_falls_at_once_is_dated_to_the_fault(run: str) -> None:
    """A policy that is thrown away loses its entropy in a step or a few: the onset is the fault's."""
    found = first_reading(run, entropy, Entropy("collapse"), **ON)
    assert found and 20 < found[1].onset < found[0] <= 30


def test_a_low_base_is_no_failure() -> None:
    """A base that begins at 0.25 nats is under a fixed floor of 0.3 for ever; here the floor is half of its own."""
    rows = Rows().column("entropy", [0.25] * 60)
    assert not look(rows, "level")
    rows.column("entropy", [0.11] * 20)
    assert look(rows, "level") and "0.125" in look(rows, "level")[0]


@pytest.mark.parametrize("name", ["level", "act"])
def test_a_low_base_is_no_failure_in_its_first_rows_either(name: str) -> None:
    """Before the start is known there is no floor: the fixed one alone is above many a healthy run."""
    rows = Rows()
    for value in (0.15, 0.2, 0.15, 0.18, 0.146, 0.2, 0.19, 0.17, 0.15, 0.16, 0.15):
        assert not look(rows.column("entropy", [value]), name)


def test_a_high_base_has_the_fixed_floor() -> None:
    """Of 1.5 nats half is no alarm: the fixed floor is the cap of the relative one."""
    rows = Rows().column("entropy", [1.5] * 30 + [0.5] * 30)
    assert not look(rows, "level")
    assert look(rows.column("entropy", [0.2] * 30), "level")


def test_three_of_five_are_needed() -> None:
    """Two steps below the floor are no alarm, the third is."""
    rows = Rows().column("entropy", [0.5] * 30)
    told = []
    for _ in range(12):
        rows.tell(entropy=0.1)
        told.append(rows.read(entropy, Entropy("level")))
    mean, below = 0.5, []
    for _ in range(12):
        mean = 0.8 * mean + 0.2 * 0.1
        below.append(mean < 0.25)
    assert [bool(t) for t in told].index(True) == below.index(True) + 2


def test_the_onset_is_where_the_fall_began() -> None:
    """The rollback's target is the policy before the fall, not before the floor was crossed."""
    rows = Rows().column("entropy", [0.6 + 0.01 * (i % 2) for i in range(40)])
    rows.column("entropy", [0.6 - 0.03 * i for i in range(1, 18)])
    (reading,) = rows.read(entropy, Entropy("level"))
    assert 40 <= reading.onset <= 44
    assert reading.evidence["floor"] == pytest.approx(0.3)


def test_nothing_is_said_before_ten_rows() -> None:
    """A start of a few values calibrates nothing, whatever they do."""
    rows = Rows()
    for i in range(9):
        rows.tell(entropy=0.9 * 0.6**i, reward=0.5)
        assert not [n for n in ("level", "act", "forecast", "explosion") if look(rows, n)]


@pytest.mark.parametrize(("reward", "told"), [(0.2, True), (0.99, False)], ids=["fails", "solves its task"])
def test_next_to_nothing_is_told_from_the_third_row_on(reward: float, told: bool) -> None:
    """A policy that begins without entropy cannot learn, and is told; one whose task is solved is no failure."""
    rows = Rows().column("entropy", [1e-4] * 3, reward=reward)
    assert bool(look(rows, "collapse")) is told


@pytest.mark.parametrize(("back", "told"), [(0.1, True), (0.5, False)], ids=["stays", "comes back"])
def test_a_drop_to_a_quarter_must_stay(back: float, told: bool) -> None:
    """One odd row is not a collapse: the second low row is, and it stays one while there is no way back."""
    rows = Rows().column("entropy", [0.5] * 20).tell(entropy=0.1)
    assert not look(rows, "collapse")
    assert bool(look(rows.tell(entropy=back), "collapse")) is told
    if told:
        (reading,) = rows.column("entropy", [0.1] * 20).read(entropy, Entropy("collapse"))
        assert reading.onset == 21


def test_a_collapse_is_dated_after_the_last_way_back() -> None:
    """A drop that was made good is no part of the collapse that comes later."""
    rows = Rows().column("entropy", [0.5] * 20 + [0.1, 0.5, 0.5, 0.1, 0.1])
    (reading,) = rows.read(entropy, Entropy("collapse"))
    assert reading.onset == 24


@pytest.mark.parametrize(
    ("reward", "unique", "told"),
    [
        pytest.param(0.4, 0.1, True, id="nothing is learnt"),
        pytest.param(0.99, 0.1, False, id="task saturated"),
        pytest.param(0.4, 0.5, False, id="answers still differ"),
    ],
)
def test_groups_without_advantage(reward: float, unique: float, told: bool) -> None:
    """Groups that are all alike are a collapse where the task is not solved and answers no longer differ."""
    rows = Rows().column("entropy", [0.4] * 20, reward=0.4, zero_advantage_fraction=0.2, unique_fraction=0.6)
    rows.column("entropy", [0.3] * 5, reward=reward, zero_advantage_fraction=0.95, unique_fraction=unique)
    found = rows.read(entropy, Entropy("collapse"))
    assert bool(found) is told
    assert not told or found[0].onset == 21


def test_an_explosion_is_told_when_the_start_is_known() -> None:
    """Entropy above one and a half times the start is a warning, but not against a start of ten rows."""
    early = Rows().column("entropy", [0.4] * 12 + [2.0] * 3)
    assert not look(early, "explosion")
    late = Rows().column("entropy", [0.4] * 40 + [0.8] * 12)
    assert "above 1.5 times its start" in look(late, "explosion")[0]


def test_back_where_it_came_from_is_no_explosion() -> None:
    """A run that fell steeply at first and comes back to half of its first entropy has not run away."""
    assert not look(Rows().column("entropy", [0.9] * 5 + [0.25] * 25 + [0.5] * 12), "explosion")
    assert look(Rows().column("entropy", [0.9] * 5 + [0.25] * 25 + [1.6] * 12), "explosion")


def foretold(values: list[float], every: int = 1) -> tuple[int, Reading]:
    """The step of the first forecast of a run that tells every so many steps, and what it says."""
    rows = Rows()
    for value in values:
        rows.process.last_step += every - 1 if rows.process.last_step > 0 else 0
        if found := rows.tell(entropy=value).read(entropy, Entropy("forecast")):
            return rows.process.last_step, found[0]
    raise AssertionError("no forecast was told")


def crossing(values: list[float], floor: float) -> int:
    """The first step at which the running mean is under the floor."""
    means = accumulate(values, lambda mean, value: 0.8 * mean + 0.2 * value)
    return next(step for step, mean in enumerate(means, 1) if mean < floor)


@pytest.mark.parametrize(
    "fall",
    [
        pytest.param([0.97**i * (1.0 + 0.05 * (i % 3 - 1)) for i in range(80)], id="shaken, from the first step on"),
        pytest.param([1.0] * 30 + [0.97**i for i in range(80)], id="by a share"),
        pytest.param([0.6] * 30 + [0.6 - 0.012 * i for i in range(48)], id="in a line"),
        pytest.param([0.6] * 30 + [0.6 - 0.0005 * i * i for i in range(34)], id="faster and faster"),
        pytest.param([0.6] * 30 + [0.6 / (1.0 + 0.02 * i) ** 1.5 for i in range(60)], id="slower and slower"),
    ],
)
def test_the_forecast_gives_an_interval(fall: list[float]) -> None:
    """However a fall bends, the step at which the floor is crossed lies within what was foretold, in whole steps."""
    at, reading = foretold(fall)
    soonest, likely, latest = told = [reading.evidence[name] for name in ("soonest", "steps", "latest")]
    assert told == [int(steps) for steps in told]
    assert 1 <= soonest <= likely <= latest < 40
    assert soonest <= crossing(fall, reading.evidence["floor"]) - at <= latest
    assert f"in {soonest} to {latest} steps" in reading.why


def test_the_forecast_is_of_the_newest_pace() -> None:
    """A fall that has just begun to speed: its pace over twenty rows would promise more time than there is."""
    _, reading = foretold([0.6] * 30 + [0.6 - 0.0005 * i * i for i in range(34)])
    mean = reading.evidence["entropy_mean"]
    assert reading.evidence["straight"] < 0.8 * 20 * math.log(mean / 0.3) / math.log(0.6 / mean)


def test_a_run_that_tells_every_fifth_step_is_foretold_steps() -> None:
    """The interval is in steps of the run, not in rows that happen to be told."""
    fall = [1.0] * 30 + [0.97**i for i in range(80)]
    (at, each), (late, fifth) = foretold(fall), foretold(fall, every=5)
    assert late == 5 * (at - 1) + 1
    assert fifth.evidence["straight"] == pytest.approx(5 * each.evidence["straight"])
    assert fifth.evidence["latest"] > 4 * each.evidence["latest"]


def test_a_fall_that_has_come_to_rest_is_not_foretold() -> None:
    """What no longer falls has no pace: no steps can be told of it, however steep it was."""
    rows = Rows().column("entropy", [0.6] * 30 + [0.6 - 0.012 * i for i in range(24)])
    assert look(rows, "forecast")
    assert not look(rows.column("entropy", [0.42] * 3), "forecast")


@pytest.mark.parametrize(
    ("knobs", "bonus", "word"),
    [
        pytest.param({}, 0.1, "unknown", id="nothing told"),
        pytest.param(ON, 0.02, "on", id="at work"),
        pytest.param(ON, 0.1, "saturated", id="at its limit"),
        pytest.param(OFF, 0.0, "off", id="off"),
        pytest.param({**ON, "alpha_max": 0.0}, 0.0, "on", id="no controller"),
        pytest.param({**ON, "token_entropy_flow_control": 0.0}, 0.02, "on", id="no flow control"),
    ],
)
def test_the_trainers_own_control_decides_where_to_act(knobs: dict[str, float], bonus: float, word: str) -> None:
    """Between half the floor and the floor it is the trainer's turn, unless its control is off or spent."""
    rows = Rows(**knobs).column(
        "entropy", [0.5] * 30 + [0.2 if word == "off" else 0.14] * 30, entropy_bonus=bonus, entropy_floor=0.22
    )
    (told,) = tellers(rows.state)
    assert control(rows.state, told).word == word
    assert look(rows, "level")
    assert bool(look(rows, "act")) is (word in ("off", "saturated"))
    (reading,) = rows.read(entropy, Entropy("level"))
    assert reading.evidence["trainers_floor"] == 0.22
    assert reading.evidence["floor"] == pytest.approx(0.25)


def test_an_evaluation_is_another_series() -> None:
    """``actor/entropy`` is the policy's; that of an evaluation is not."""
    assert look(Rows().column("actor/entropy", [0.5] * 30 + [0.1] * 30), "level")
    assert not look(Rows().column("eval/entropy", [0.5] * 30 + [0.1] * 30), "level")


def test_values_that_are_not_finite_are_left_out() -> None:
    """A NaN is another detector's: it neither alarms here nor hides what lies around it."""
    rows = Rows().column("entropy", [0.5, math.nan] * 20 + [0.1, math.nan] * 12)
    assert look(rows, "level")
    assert not look(Rows().column("entropy", [math.nan] * 40), "level")


def test_it_is_breached_without_records_too() -> None:
    """The engine looks once more after each batch, without records: what is breached still is."""
    rows = Rows().column("entropy", [0.5] * 30 + [0.1] * 20)
    rows.moment.records = ()
    assert look(rows, "level")


@pytest.mark.parametrize("how", ["ended", "told no more"])
def test_old_words_are_no_alarm(how: str) -> None:
    """A process that has ended, or stopped telling entropy long ago, is not judged by what it said then."""
    rows = Rows().column("entropy", [0.5] * 30 + [0.1] * 20)
    if how == "ended":
        rows.process.ended = "bye"
    else:
        rows.column("loss", [1.0] * 25)
    assert not look(rows, "level")


def test_the_start_is_the_median_of_rows_5_to_25() -> None:
    """The calibration is the published rule's own: later rows do not move it."""
    values = [1.0 - 0.02 * i for i in range(30)]
    rows = Rows().column("entropy", [*values, *[0.1] * 20])
    (reading,) = rows.read(entropy, Entropy("level"))
    assert reading.evidence["entropy_start"] == median(values[5:25])


def test_a_steep_fall_that_wins_nothing_is_told() -> None:
    """Three fifths within 25 steps; where the reward has risen with it, it was learning."""
    fall = [1.09 - 0.035 * i for i in range(25)]
    assert look(Rows().column("entropy", fall), "rate")
    rewarded = Rows()
    for place, value in enumerate(fall):
        rewarded.tell(entropy=value, reward=0.3 + 0.02 * place)
    assert not look(rewarded, "rate")
    assert not look(Rows().column("entropy", [1.09 - 0.012 * i for i in range(70)]), "rate")
