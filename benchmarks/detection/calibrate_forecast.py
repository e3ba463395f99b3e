"""Calibrate the forecast of entropy: how long falls take, over how long they would have taken at their pace.

    python benchmarks/detection/calibrate_forecast.py                 what `TOOK` in the entropy detector must be
    python benchmarks/detection/calibrate_forecast.py --require       exit status 1 where it isn't

A split-conformal interval: the pace of the newest rows, projected to the floor, is one guess for all; its error is not
modelled (noise with memory, falls that bend, the choice of the step at which it is told) but counted, on runs of the
split `calibrate` alone, the first forecast of each. The factors hold for any run that is to these as they are to each
other; `judge_forecast.py` counts on the other split. Steps are whole and told rounded, and so are counted.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

from judge_forecast import Held, gathered
from split import CALIBRATE, first_seed

from gyrostat_rules.detectors.entropy import TOOK

RUNS, COVERED = 1000, 0.8
_HALF = 0.5  # a step: as far as rounding moves an end


class Fall(NamedTuple):
    """Steps that a fall ``took`` to the floor, and how many it would have taken in a ``straight`` way."""

    took: int
    straight: float


def main(argv: Sequence[str] | None = None) -> int:
    """Print the factors, and those in force."""
    given = _arguments(argv)
    held, _, _ = gathered(first_seed(CALIBRATE), given.runs)
    falls = fallen(held)
    found = factors(falls)
    print(f"{len(falls)} falls of the split {CALIBRATE}: TOOK = {found}; in force {TOOK}")
    return int(given.require and found != TOOK)


def fallen(held: Sequence[Held]) -> list[Fall]:
    """The first forecast of each run that is told one and crosses, beside what came of it."""
    return [Fall(one.crossed - one.forecast.step, one.forecast.straight) for one in held if one.forecast]


def factors(falls: Sequence[Fall], covered: float = COVERED) -> tuple[float, float, float]:
    """Soonest, likely and latest steps over the straight ones: as many falls are earlier as are later."""
    beyond = (1.0 - covered) / 2.0
    soonest = -_least([-(fall.took + _HALF) / fall.straight for fall in falls], 1.0 - beyond)
    likely = _least([fall.took / fall.straight for fall in falls], 0.5)
    latest = _least([(fall.took - _HALF) / fall.straight for fall in falls], 1.0 - beyond)
    return round(soonest, 2), round(likely, 2), round(latest, 2)


def _least(scores: Sequence[float], share: float) -> float:
    """The least score that as large a share of new ones stays under: the conformal quantile, one place higher."""
    return sorted(scores)[min(len(scores), math.ceil(share * (len(scores) + 1))) - 1]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"with a forecast and a crossing (default {RUNS})")
    parser.add_argument("--require", action="store_true", help="exit status 1 where the detector has other factors")
    given = parser.parse_args(argv)
    if given.runs < 1:
        parser.error(f"--runs {given.runs}: give at least 1")
    return given


if __name__ == "__main__":
    sys.exit(main())
