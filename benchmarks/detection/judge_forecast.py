"""Judge the forecast of entropy: of runs that cross their floor, how often within the interval that was told.

    python benchmarks/detection/judge_forecast.py                     400 runs with a forecast and a crossing
    python benchmarks/detection/judge_forecast.py --split calibrate --runs 100 --json
    python benchmarks/detection/judge_forecast.py --healthy 100       how many healthy runs are told one

Every value goes through the engine's own windows; the forecast is that of the entropy detector. Judged is the first
one that a run is told, whose interval is `soonest` to `latest` steps from then on; how many of all that it is told hold
is said beside it. The crossing is the first step whose running mean is under the floor. An 80 % interval must cover 75
to 85 % of them: more is an interval too wide to be of use. Its factors are of the other split (calibrate_forecast.py).
Exit status 1 where --require is given and that does not hold.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean, median
from typing import Any, NamedTuple

import course
from entropy_runs import EntropyRun, runs
from families import generated
from split import JUDGE, SPLITS, first_seed, stretch

from gyrostat.wire import Record
from gyrostat_rules.detectors.entropy import Entropy, entropy
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Batch
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import RulePack

RUNS, GATE = 400, (0.75, 0.85)
_MOST = 10  # runs tried for each that is wanted
_ROWS = 600  # of a healthy run
_NO_RULES = RulePack("none", (), ())


class Forecast(NamedTuple):
    """Steps from ``step`` on within which the floor is to be crossed; ``latest`` inf: no end was told.

    ``straight``: steps at the newest pace, which the others are made of; NaN: not known.
    """

    step: int
    soonest: float
    latest: float
    expected: float
    straight: float = math.nan


class Held(NamedTuple):
    """A run with a crossing, and the first forecast it was told, None where it was told none before it.

    ``later``: those of the steps after it.
    """

    run: EntropyRun
    crossed: int
    forecast: Forecast | None
    later: tuple[Forecast, ...] = ()

    @property
    def side(self) -> str:
        """within, early or late of the first interval."""
        assert self.forecast is not None
        return self.side_of(self.forecast)

    def side_of(self, forecast: Forecast) -> str:
        """within, early or late of that interval."""
        took = self.crossed - forecast.step
        if took + 1 <= forecast.soonest:  # steps are whole: an end that falls between two counts with both
            return "early"
        return "late" if took - 1 >= forecast.latest else "within"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the coverage and what it is made of."""
    given = _arguments(argv)
    if given.healthy:
        sums = untrue(given.split, given.healthy)
        print(json.dumps(sums) if given.json else shown_untrue(sums))
        return 0
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
    told: list[Forecast] = []
    for step, forecast, under in followed(run.values):
        told += [forecast] if forecast else []
        if under:
            return Held(run, step, told[0] if told else None, tuple(told[1:]))
    return None


def followed(values: Sequence[float]) -> Iterator[tuple[int, Forecast | None, bool]]:
    """Every step from 1 on: the forecast that is told at it, and whether the mean is under the floor."""
    engine = Engine()
    for step, value in enumerate(values, 1):
        record = Record("trainer", 0, "life", 0, step, step, float(step), {"entropy": value})
        engine.feed(Batch(float(step), (record,)))
        moment = Moment(float(step), step, _NO_RULES, (record,), step)
        readings = entropy(Entropy("forecast"), engine.state, moment)
        yield step, next((_forecast(step, r.evidence) for r in readings), None), _is_under(engine, moment)


def _is_under(engine: Engine, moment: Moment) -> bool:
    """Under the floor, by the detector's own mean and floor: one value of one is enough."""
    return any(True for _ in entropy(Entropy("level", needed=1, of=1), engine.state, moment))


def _forecast(step: int, evidence: Any) -> Forecast:
    latest = evidence.get("latest")
    latest = math.inf if latest is None else latest
    return Forecast(step, evidence["soonest"], latest, evidence["steps"], evidence.get("straight", math.nan))


def summed(held: Sequence[Held], silent: int, tried: int) -> dict[str, Any]:
    """Coverage with its Wilson bounds, misses of either side, widths and leads in steps.

    ``coverage_of_all`` is of every forecast that a run is told, each run weighing as much as the others.
    """
    sides = [one.side for one in held]
    shares = [fmean(one.side_of(f) == "within" for f in (one.forecast, *one.later) if f) for one in held]
    told = [(one.crossed - one.forecast.step, one.forecast) for one in held if one.forecast]
    within = sides.count("within")
    return {
        "runs": len(held), "tried": tried, "crossed_untold": silent,
        "coverage": within / max(1, len(held)), "bounds": _wilson(within, len(held)),
        "coverage_of_all": fmean(shares or [0.0]),
        "crossed_earlier": sides.count("early"), "crossed_later": sides.count("late"),
        "without_end": sum(math.isinf(f.latest) for _, f in told),
        "median_width": median([f.latest - f.soonest for _, f in told] or [math.nan]),
        "median_width_of_lead": median([(f.latest - f.soonest) / took for took, f in told] or [math.nan]),
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
        f"coverage of every forecast of a run, not the first alone: {result['coverage_of_all']:.1%}",
        f"crossed earlier than told {result['crossed_earlier']}, later {result['crossed_later']}",
        f"told no end {result['without_end']}; crossed and was told nothing before {result['crossed_untold']}",
        f"median width {result['median_width']:.3g} ({result['median_width_of_lead']:.0%} of the lead), "
        f"lead {result['median_lead']:.3g}, "
        f"error of the steps told {result['median_error']:.3g} steps",
        *_by_way(held),
    ])  # fmt: skip


def _by_way(held: Sequence[Held]) -> Iterator[str]:
    for way in dict.fromkeys(one.run.way for one in held):
        sides = [one.side for one in held if one.run.way == way]
        counts = ", ".join(f"{side} {sides.count(side)}" for side in ("early", "within", "late"))
        yield f"  {way:11s} {sides.count('within') / len(sides):.0%} ({counts})"


def untrue(split: str, wanted: int) -> dict[str, int]:
    """Of so many healthy runs of a split, how many are told a forecast at all, begin to be told, and ever cross."""
    runs = (generated(plan.family, plan.seed, _ROWS).course.columns for plan in stretch(split))
    entropies = islice((course.told(columns["entropy"]) for columns in runs if "entropy" in columns), wanted)
    sums = dict.fromkeys(("healthy", "steps", "told", "begun", "crossed"), 0)
    for values in entropies:
        told = [(forecast is not None, under) for _, forecast, under in followed(values)]
        spoke = [said for said, _ in told]
        sums["healthy"] += 1
        sums["steps"] += len(values)
        sums["told"] += any(spoke)
        sums["begun"] += sum(now and not before for before, now in zip([False, *spoke], spoke, strict=False))
        sums["crossed"] += any(under for _, under in told)
    return sums


def shown_untrue(sums: Mapping[str, int]) -> str:
    """The same for people."""
    often = 1000.0 * sums["begun"] / max(1, sums["steps"])
    return (
        f"told in {sums['told']} of {sums['healthy']} healthy runs, {sums['begun']} times in {sums['steps']} steps "
        f"({often:.2f} per 1000); {sums['crossed']} of the runs crossed"
    )


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=SPLITS, default=JUDGE)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"with a forecast and a crossing (default {RUNS})")
    parser.add_argument("--healthy", type=int, default=0, help="judge so many healthy runs in their place")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--require", action="store_true", help="exit status 1 where the coverage is not 75 to 85 %%")
    given = parser.parse_args(argv)
    if given.runs < 1:
        parser.error(f"--runs {given.runs}: give at least 1")
    if given.healthy < 0:
        parser.error(f"--healthy {given.healthy}: give how many, 0 for none")
    return given


if __name__ == "__main__":
    sys.exit(main())
