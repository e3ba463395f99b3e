"""Judge the forecast of entropy: of runs that cross their floor, how often within the interval that was told.

    python benchmarks/detection/judge_forecast.py                     400 runs with a forecast and a crossing
    python benchmarks/detection/judge_forecast.py --split calibrate --runs 100 --json

Every value goes through the engine's own windows; the forecast is that of the entropy detector. Judged is the first
one that a run is told, whose interval is `soonest` to `latest` steps from then on. The crossing is the first step whose
running mean is at the floor or under it. An 80 % interval must cover 75 to 85 % of them: more is an interval too wide
to be of use. Exit status 1 where --require is given and that does not hold.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

from entropy_runs import EntropyRun, runs
from split import JUDGE, SPLITS, first_seed

from gyrostat.wire import Record
from gyrostat_rules.detectors.entropy import Entropy, entropy
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Batch
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import RulePack

RUNS, GATE = 400, (0.75, 0.85)
_MOST = 10  # runs tried for each that is wanted
_NO_RULES = RulePack("none", (), ())


class Forecast(NamedTuple):
    """Steps from ``step`` on within which the floor is to be crossed; ``latest`` inf: no end was told."""

    step: int
    soonest: float
    latest: float
    expected: float


class Held(NamedTuple):
    """A run with a crossing, and the first forecast it was told, None where it was told none before it."""

    run: EntropyRun
    crossed: int
    forecast: Forecast | None

    @property
    def side(self) -> str:
        """within, early or late of the interval."""
        assert self.forecast is not None
        took = self.crossed - self.forecast.step
        if took + 1 <= self.forecast.soonest:  # steps are whole: an end that falls between two counts with both
            return "early"
        return "late" if took - 1 >= self.forecast.latest else "within"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the coverage and what it is made of."""
    given = _arguments(argv)
    held, silent, tried = gathered(first_seed(given.split), given.runs)
    result = summed(held, silent, tried)
    print(json.dumps(result) if given.json else shown(result, held))
    return int(given.require and not GATE[0] <= result["coverage"] <= GATE[1])


def gathered(seed: int, wanted: int) -> tuple[list[Held], int, int]:
    """Runs with both, as many as wanted; how many crossed untold; how many were tried."""
    found: list[Held] = []
    silent = tried = 0
    for run in islice(runs(seed), _MOST * wanted):
        tried += 1
        if (one := played(run)) is not None and one.forecast is None:
            silent += 1
        elif one is not None:
            found.append(one)
        if len(found) == wanted:
            break
    return found, silent, tried


def played(run: EntropyRun) -> Held | None:
    """Feed a run until it crosses; None where it never does."""
    engine, first = Engine(), None
    for step, value in enumerate(run.values, 1):
        record = Record("trainer", 0, "life", 0, step, step, float(step), {"entropy": value})
        engine.feed(Batch(float(step), (record,)))
        moment = Moment(float(step), step, _NO_RULES, (record,), step)
        if first is None:
            first = next(
                (_forecast(step, r.evidence) for r in entropy(Entropy("forecast"), engine.state, moment)), None
            )
        if _is_under(engine, moment):
            return Held(run, step, first)
    return None


def _is_under(engine: Engine, moment: Moment) -> bool:
    """At the floor or under it, by the detector's own mean and floor: one value of one is enough."""
    return any(True for _ in entropy(Entropy("level", needed=1, of=1), engine.state, moment))


def _forecast(step: int, evidence: Any) -> Forecast:
    latest = evidence.get("latest")
    return Forecast(step, evidence["soonest"], math.inf if latest is None else latest, evidence["steps"])


def summed(held: Sequence[Held], silent: int, tried: int) -> dict[str, Any]:
    """Coverage with its Wilson bounds, misses of either side, widths and leads in steps."""
    sides = [one.side for one in held]
    told = [(one.crossed - one.forecast.step, one.forecast) for one in held if one.forecast]
    within = sides.count("within")
    return {
        "runs": len(held), "tried": tried, "crossed_untold": silent,
        "coverage": within / max(1, len(held)), "bounds": _wilson(within, len(held)),
        "crossed_earlier": sides.count("early"), "crossed_later": sides.count("late"),
        "without_end": sum(math.isinf(f.latest) for _, f in told),
        "median_width": median([f.latest - f.soonest for _, f in told] or [math.nan]),
        "median_lead": median([took for took, _ in told] or [math.nan]),
        "median_error": median([abs(took - f.expected) for took, f in told] or [math.nan]),
    }  # fmt: skip


def _wilson(found: int, of: int, z: float = 1.96) -> tuple[float, float]:
    if not of:
        return 0.0, 1.0
    share, part = found / of, z * z / of
    middle, half = share + part / 2.0, z * math.sqrt(share * (1.0 - share) / of + part / of / 4.0)
    return (middle - half) / (1.0 + part), (middle + half) / (1.0 + part)


def shown(result: dict[str, Any], held: Sequence[Held]) -> str:
    """The sums for people, and each way of falling by itself."""
    low, high = result["bounds"]
    return "\n".join([
        f"coverage {result['coverage']:.1%} of {result['runs']} runs (95 % bounds {low:.1%} to {high:.1%})",
        f"crossed earlier than told {result['crossed_earlier']}, later {result['crossed_later']}",
        f"told no end {result['without_end']}; crossed and was told nothing before {result['crossed_untold']}",
        f"median width {result['median_width']:.3g}, lead {result['median_lead']:.3g}, "
        f"error of the steps told {result['median_error']:.3g} steps",
        *_by_way(held),
    ])  # fmt: skip


def _by_way(held: Sequence[Held]) -> Iterator[str]:
    for way in dict.fromkeys(one.run.way for one in held):
        sides = [one.side for one in held if one.run.way == way]
        counts = ", ".join(f"{side} {sides.count(side)}" for side in ("early", "within", "late"))
        yield f"  {way:11s} {sides.count('within') / len(sides):.0%} ({counts})"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=SPLITS, default=JUDGE)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"with a forecast and a crossing (default {RUNS})")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--require", action="store_true", help="exit status 1 where the coverage is not 75 to 85 %%")
    given = parser.parse_args(argv)
    if given.runs < 1:
        parser.error(f"--runs {given.runs}: give at least 1")
    return given


if __name__ == "__main__":
    sys.exit(main())
