"""Spikes: what is sudden is found on its step, what is healthy is not, and what is slow is left to others."""

import math
from typing import Any

import pytest
from number_run import Numbers, around, episodes, noise, recorded, series

from gyrostat.wire import Record
from gyrostat_rules.detectors.spike import Spike, spike
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import RulePack

GRAD = Spike(("grad_norm",))


def run(values: list[float], name: str = "grad_norm", **how: Any) -> Numbers:
    """A detector over one series."""
    return Numbers(spike, Spike((name,), **how)).told(series(name, values))


def test_a_jump_is_found_on_its_step_and_is_over_with_the_next() -> None:
    """A gradient norm ten times the usual is told at once, with what is usual, and clears with the next value."""
    story = run([*around(1.0, 80), 12.0, 1.0])
    assert story.alarms == {80: 80}
    (reading,) = story.found[80]
    assert reading.labels == {"role": "trainer", "rank": "0", "series": "grad_norm"}
    assert reading.evidence["usual"] == pytest.approx(1.0, rel=0.1)
    assert reading.evidence["far"] > 6
    assert "grad_norm is 12 at step 80" in reading.why


def test_the_value_itself_is_not_in_what_it_is_compared_with() -> None:
    """With the smallest window a spike must not widen its own scale."""
    assert run([*around(1.0, 20), 100.0], window=8).last


def test_two_of_three_date_back_to_the_first() -> None:
    """A rule that wants company fires at the second value, and its onset is the first."""
    story = run([*around(1.0, 80), 9.0, 1.0, 9.0, 1.0], needed=2, of=3)
    assert story.alarms == {82: 80}


def test_one_far_enough_needs_no_company() -> None:
    """``alone``: a value beyond it fires where two of three would still wait."""
    values = [*around(1.0, 80), 1000.0]
    assert not run(values, needed=2, of=3).last
    assert run(values, needed=2, of=3, alone=10.0).last
    assert not run([*around(1.0, 80), 2.2], needed=2, of=3, alone=30.0).last


def test_a_good_newest_value_is_no_spike() -> None:
    """After a remedy the first good value must say so, whatever the two before it were."""
    story = run([*around(1.0, 80), 9.0, 9.0, 1.0], needed=2, of=3)
    assert story.alarms == {81: 80}


@pytest.mark.parametrize(
    ("value", "fires"), [pytest.param(11.0, True, id="beyond"), pytest.param(8.0, False, id="within")]
)
def test_a_young_run_is_compared_with_its_largest_value(value: float, fires: bool) -> None:
    """Ten values give no scale: only ten times the largest of them counts."""
    assert bool(run([1.0] * 10 + [value]).last) is fires


def test_the_first_values_say_nothing() -> None:
    """Before ``least`` values nothing is a spike, however high."""
    assert not run([1.0] * 7 + [1e9]).alarms


def test_a_loss_around_zero_has_a_size() -> None:
    """A loss of both signs, all of it near zero, must not make every positive value ten times its largest."""
    assert not run([-0.01, -0.02, 0.001] * 5 + [0.1], "loss").alarms
    assert run([-0.01, -0.02, 0.001] * 5 + [0.5], "loss").last


def test_plain_values_are_taken_where_there_is_no_logarithm() -> None:
    """A loss of both signs that jumps is found after the first values too."""
    story = run([*(v - 1.0 for v in around(1.0, 80)), 5.0], "loss")
    assert list(story.alarms) == [80]


def test_a_measure_that_begins_at_zero_is_read_by_its_logarithms() -> None:
    """A KL that was 0 in its first rows and varies by its own size since has no spikes."""
    assert not run([0.0, 0.0, *around(0.01, 90, share=1.0, seed=2)], "kl").alarms
    assert run([-0.01] * 20 + list(around(0.01, 90, share=1.0)), "kl").alarms  # plain values would have alarmed


def test_a_series_that_hardly_moves_does_not_alarm_at_its_first_breath() -> None:
    """The spread is at least 5 % of the median: a constant with a ripple has no z of a thousand."""
    assert not run([1.0] * 80 + [1.2]).alarms
    assert not run([0.0] * 80 + [1e-9]).alarms


@pytest.mark.parametrize(
    ("direction", "value", "fires"),
    [("up", 0.1, False), ("down", 0.1, True), ("down", 9.0, False), ("both", 0.1, True), ("both", 9.0, True)],
)
def test_directions(direction: str, value: float, fires: bool) -> None:
    """A fall is a spike only for who asks for falls."""
    assert bool(run([*around(1.0, 80), value], direction=direction).last) is fires


def test_nothing_of_all_is_the_deepest_fall() -> None:
    """A value of exactly 0 has no logarithm and is told with numbers that JSON can write."""
    (reading,) = run([*around(1.0, 80), 0.0], direction="down").last
    assert math.isfinite(reading.evidence["far"])


@pytest.mark.parametrize("odd", [math.nan, math.inf], ids=str)
def test_values_that_are_not_finite_are_left_out(odd: float) -> None:
    """A NaN is another detector's: it neither alarms here nor hides the spike behind it."""
    story = run([*around(1.0, 40), odd, *around(1.0, 40), odd, 12.0])
    assert list(story.alarms) == [82]


@pytest.mark.parametrize("name", ["actor/grad_norm", "train_grad_norm", "grad-norm"])
def test_a_series_is_known_by_what_it_measures(name: str) -> None:
    """Whatever the framework calls the gradient norm, the rule finds it and names it as told."""
    (reading,) = Numbers(spike, GRAD).told(series(name, [*around(1.0, 80), 12.0])).last
    assert reading.labels["series"] == name


def test_what_is_told_of_evaluation_is_apart() -> None:
    """An evaluation's number is not the training's."""
    assert not Numbers(spike, GRAD).told(series("eval/grad_norm", [*around(1.0, 80), 12.0])).alarms


def test_the_series_of_that_very_name_is_preferred() -> None:
    """Where both are told, `reward` is not also looked at as `reward_average`."""
    rows = [{"reward": v, "reward_average": v} for v in [*around(1.0, 80), 12.0]]
    assert len(Numbers(spike, Spike(("reward",))).told(rows).last) == 1


def test_after_a_jump_back_the_undone_values_are_forgotten() -> None:
    """A spike that was rolled back is not compared with, nor told again."""
    story = run([*around(1.0, 80), 12.0])
    assert story.alarms
    story.back(70)
    story.told(series("grad_norm", around(1.0, 30, seed=5)))
    assert not story.alarms


def test_what_a_process_told_of_later_steps_is_not_looked_at_yet() -> None:
    """A rank that is ahead of the step in question must not make it alarm, nor clear it."""
    story = run([*around(1.0, 80), 12.0, 1.0])
    records = [Record("trainer", 0, "life-a", 0, step, step, 0.0, {"grad_norm": 1.0}) for step in (79, 80, 81)]
    moments = [Moment(0.0, 1, RulePack("none", (), ()), (record,), record.step) for record in records]
    assert [bool(list(spike(GRAD, story.engine.state, moment))) for moment in moments] == [False, True, False]


def test_a_series_told_every_tenth_step_stays_told_in_between() -> None:
    """Its alert neither flickers between its values nor stays once it is told no more."""
    story = Numbers(spike, Spike(("reward",)))
    for value in [*around(1.0, 40), 12.0]:
        story.told([{"reward": value}] + [{"loss": 1.0}] * 9)
    story.told([{"loss": 1.0}] * 20)
    assert list(story.alarms) == list(range(400, 410))


@pytest.mark.parametrize(
    ("kind", "most"), [("normal", 0.5), ("t3", 7.0), ("log-normal", 0.5), ("ar", 0.5), ("slope", 0.5)]
)
def test_null_streams(kind: str, most: float) -> None:
    """False alarms a thousand steps on streams without a spike, next to 0.1, 3.4, 4.9, 0, 0."""
    found = [episodes(run(noise(kind, seed, 1200), "x").alarms) for seed in range(3)]
    assert sum(found) / (3 * 1.136) <= most


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_run_is_quiet(seed: int) -> None:
    """150 recorded steps of a healthy run, its warm-up with them."""
    for name in ("grad_norm", "kl", "response_length"):
        assert not Numbers(spike, Spike((name,))).told(recorded(f"clean-{seed}")).alarms


@pytest.mark.parametrize("seed", range(3))
def test_a_learning_rate_a_thousand_times_too_high_shows_on_its_own_step(seed: int) -> None:
    """The gradient norm tells it at step 19, before the reward falls."""
    story = Numbers(spike, Spike(("grad_norm",), needed=2, of=3, alone=10.0)).told(recorded(f"lr_bomb-{seed}"))
    assert next(iter(story.alarms.items())) == (19, 19)


def test_a_young_run_is_judged_by_what_there_is() -> None:
    """With three values wanted before, the fourth may already be ten times the largest of them."""
    how = Spike(("grad_norm",), needed=2, of=3, alone=10, least=3)
    story = Numbers(spike, how).told(series("grad_norm", [14.98, 9.78, 7.64, 92.1, 29.0, 5.21, 7.83, 7.79, 11140.0]))
    assert story.alarms == {8: 8}


def test_what_is_small_in_size_is_no_spike() -> None:
    """A policy loss swings around 0: a thousandfold of nothing is nothing."""
    values = [0.001, 0.002, 0.05, 0.001, 1.5]
    assert Numbers(spike, Spike(("loss",), least=1, beyond=1.0)).told(series("loss", values)).alarms == {4: 4}
