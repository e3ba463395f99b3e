"""The factors of the forecast's interval: how they are counted, and that those in force hold what they promise."""

import calibrate_forecast
import pytest
from calibrate_forecast import Fall, factors, fallen
from judge_forecast import Held, gathered, summed, untrue
from split import CALIBRATE, first_seed

from gyrostat_rules.detectors.entropy import TOOK


@pytest.fixture(scope="module")
def held() -> list[Held]:
    """The first runs of the split that are told a forecast and cross."""
    return gathered(first_seed(CALIBRATE), 40)[0]


def inside(fall: Fall, soonest: float, latest: float) -> bool:
    """As the detector rounds: whole steps, at least one."""
    return max(1, round(soonest * fall.straight)) <= fall.took <= max(1, round(latest * fall.straight))


@pytest.mark.parametrize("covered", [0.5, 0.8, 0.9])
def test_the_factors_hold_the_share_that_was_asked_for(covered: float) -> None:
    """Of falls that differ, so many are inside, and as many are earlier as later."""
    made = [Fall(100 + 2 * place, 200.0) for place in range(101)]
    soonest, likely, latest = factors(made, covered)
    assert sum(inside(fall, soonest, latest) for fall in made) / len(made) == pytest.approx(covered, abs=0.04)
    assert likely == 1.0
    assert soonest - 0.5 == pytest.approx(1.5 - latest, abs=0.015)


def test_longer_falls_have_later_ends() -> None:
    """A split of falls that all took twice as long gives factors twice as large."""
    once, twice = ([Fall(by * took, 100.0) for took in range(50, 151)] for by in (1, 2))
    assert factors(twice) == pytest.approx([2 * factor for factor in factors(once)], abs=0.02)


def test_those_in_force_are_of_the_split(held: list[Held]) -> None:
    """A part of the split says about the same as the whole did: nobody has set them by hand."""
    assert len(held) == 40
    assert factors(fallen(held)) == pytest.approx(TOOK, rel=0.2)


def test_what_is_told_holds_what_was_counted(held: list[Held]) -> None:
    """The detector tells the interval that its factors make, so that the judge counts what was calibrated."""
    result, falls = summed(held, 0, len(held)), fallen(held)
    soonest, _, latest = TOOK
    assert result["coverage"] == sum(inside(fall, soonest, latest) for fall in falls) / len(falls)
    assert 0.7 <= result["coverage"] <= 0.9
    assert result["without_end"] == 0
    assert result["median_width_of_lead"] < 1.0


def test_healthy_runs_that_settle_are_told_nothing() -> None:
    """Every healthy run descends at first: that is no fall to the floor."""
    sums = untrue(CALIBRATE, 3)
    assert (sums["healthy"], sums["told"], sums["crossed"]) == (3, 0, 0)
    assert sums["steps"] > 1000


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints what it found beside what is in force, and its status says whether they are the same."""
    assert calibrate_forecast.main(["--runs", "2"]) == 0
    assert f"in force {TOOK}" in capsys.readouterr().out
    assert calibrate_forecast.main(["--runs", "2", "--require"]) == 1
