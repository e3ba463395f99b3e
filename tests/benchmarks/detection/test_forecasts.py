"""Entropies that cross their floor, and how the forecast of the crossing is held against it."""

import json
import math
from itertools import islice

import judge_forecast
import pytest
from entropy_runs import STEPS, EntropyRun, run, runs
from judge_forecast import Forecast, Held, played, summed

WAYS = list(dict.fromkeys(one.way for one in islice(runs(0), 20)))
RUN = EntropyRun("line", 0, [])


@pytest.mark.parametrize("way", WAYS)
def test_every_run_crosses(way: str) -> None:
    """A healthy beginning to measure the floor by, then a fall to far under it."""
    for seed in (1, 10_000_001):
        values = run(way, seed).values
        assert len(values) == STEPS
        assert values == run(way, seed).values
        start = sorted(values[5:25])[10]
        floor = min(0.3, 0.5 * start)
        assert min(values[:25]) > floor
        assert sum(values[-20:]) / 20 < floor


@pytest.mark.parametrize(
    ("soonest", "latest", "took", "side"),
    [
        (3.0, 6.0, 3, "within"),
        (3.4, 6.0, 3, "within"),
        (3.0, 6.0, 2, "early"),
        (3.0, 6.0, 7, "late"),
        (3.0, 6.2, 7, "within"),
        (3.0, math.inf, 500, "within"),
    ],
    ids=["first", "between steps", "before", "after", "ends between steps", "no end"],
)
def test_a_crossing_is_within_the_interval_or_not(soonest: float, latest: float, took: int, side: str) -> None:
    """Steps are whole: an end that falls between two counts with both."""
    assert Held(RUN, 100 + took, Forecast(100, soonest, latest, 5.0)).side == side


def test_the_sums() -> None:
    """Coverage counts what lies within; an interval without an end is counted apart."""
    held = [Held(RUN, 105, Forecast(100, 3.0, latest, 5.0)) for latest in (4.0, 5.0, 6.0, math.inf)]
    result = summed(held, 2, 6)
    assert (result["coverage"], result["crossed_later"], result["without_end"]) == (0.75, 1, 1)
    assert result["median_error"] == 0.0
    assert result["bounds"][0] < 0.75 < result["bounds"][1]


def test_a_steady_fall_is_told_before_it_crosses() -> None:
    """The engine's own windows and the detector's own floor: a forecast comes first, then the crossing."""
    values = [1.0] * 40 + [0.96**step for step in range(60)]
    held = played(EntropyRun("same share", 0, values))
    assert held is not None
    assert held.forecast is not None
    assert held.forecast.step < held.crossed
    assert held.forecast.soonest <= held.forecast.expected <= held.forecast.latest
    assert played(EntropyRun("same share", 0, [1.0] * 60)) is None


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """As many runs as asked for, each with both; the status says whether the interval is what it promises."""
    assert judge_forecast.main(["--runs", "4", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["runs"] == 4
    assert 0.0 <= said["coverage"] <= 1.0
    assert judge_forecast.main(["--runs", "4"]) == 0
    assert "coverage" in capsys.readouterr().out
