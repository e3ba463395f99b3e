"""Drift: slow shifts are found and dated back, noise and single values are not."""

import random
from statistics import median
from typing import Any

import pytest
from number_run import Numbers, around, episodes, noise, recorded, series

from gyrostat_rules.detectors.drift import Drift, drift


def run(values: list[float], name: str = "x", **how: Any) -> Numbers:
    """A detector over one series."""
    return Numbers(drift, Drift((name,), **how)).told(series(name, values))


def shifted(seed: int, by: float = 0.0, ramp: float = 0.0, spike: float = 0.0) -> list[float]:
    """Normal noise that changes at step 200."""
    dice = random.Random(seed)
    late = [by + ramp * i + (spike if i == 0 else 0.0) for i in range(100)]
    return [dice.gauss(0.0, 1.0) + (late[i - 200] if i >= 200 else 0.0) for i in range(300)]


def first(values: list[float], **how: Any) -> tuple[int, int]:
    """The first alarm from the change on, in steps after it, and its onset; (100, 0) where there is none."""
    return next(((s - 200, onset) for s, onset in run(values, **how).alarms.items() if s >= 200), (100, 0))


@pytest.mark.parametrize(
    ("how", "steps"), [pytest.param({"by": 3.0}, 12, id="3 sd"), pytest.param({"ramp": 0.1}, 32, id="0.1 sd a step")]
)
def test_a_change_is_found_and_dated_back(how: dict[str, float], steps: int) -> None:
    """a median of 9 steps for a shift of 3 sd, 25 for a ramp; the onset is near the change."""
    found = [first(shifted(seed, **how)) for seed in range(7)]
    assert median(delay for delay, _ in found) <= steps
    assert all(188 <= onset <= 215 for _, onset in found)


def test_one_value_however_high_is_no_drift() -> None:
    """A spike is another detector's."""
    assert not any(run(shifted(seed, spike=1e6)).alarms for seed in range(5))


@pytest.mark.parametrize(("direction", "fires"), [("up", False), ("down", True), ("both", True)])
def test_directions(direction: str, fires: bool) -> None:
    """A fall is told to who asked for falls."""
    assert bool(run(shifted(1, by=-3.0), direction=direction).alarms) is fires


def test_it_clears_when_the_values_are_back() -> None:
    """A remedy that works must be seen to work: the alert does not wait for the sum to run down."""
    story = run([*shifted(1, by=4.0), *noise("normal", 3, 20)])
    assert 299 in story.alarms
    assert not story.last


def test_the_words_say_value_usual_and_since_when() -> None:
    """For a person at night."""
    story = run([*around(2.0, 120), *around(4.0, 30, seed=2)], "grad_norm")
    (reading,) = story.last
    assert 118 <= reading.onset <= 124
    assert f"has drifted up since step {reading.onset}" in reading.why
    assert "in steps 0 to 63 it was usually 2" in reading.why
    assert reading.evidence["usual"] == pytest.approx(2.0, rel=0.1)


def test_a_young_run_has_not_drifted() -> None:
    """Without a reference nothing is said."""
    assert not run([*around(1.0, 40), *around(9.0, 28)]).alarms


@pytest.mark.parametrize("value", [1.0, 0.0])
def test_a_constant_has_no_scale(value: float) -> None:
    """A series that stands still, and then moves a hair, is no drift."""
    assert not run([value] * 100 + [value + 1e-9] * 50).alarms


@pytest.mark.parametrize(
    ("kind", "most"), [("normal", 0.3), ("t3", 0.3), ("log-normal", 0.3), ("ar", 2.35), ("slope", 3.15)]
)
def test_null_streams(kind: str, most: float) -> None:
    """No more false alarms a thousand steps than Page-Hinkley had in"""
    found = [episodes(run(noise(kind, seed, 1200), log=False).alarms) for seed in range(3)]
    assert sum(found) / (3 * 1.136) <= most


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["grad_norm", "kl", "reward", "response_length"])
def test_a_healthy_run_is_quiet(name: str, seed: int) -> None:
    """150 recorded steps in which the policy learns."""
    assert not Numbers(drift, Drift((name,), direction="up")).told(recorded(f"clean-{seed}")).alarms


def test_memory_that_was_let_go_changes_nothing() -> None:
    """Windows shrink from 512 values to 256: the same steps must read the same before and after."""
    values = noise("ar", 4, 700)
    long, late = run(values), run(values[300:])
    assert {s - 300: o - 300 for s, o in long.alarms.items() if s >= 600} == {
        s: o for s, o in late.alarms.items() if s >= 300
    }
