"""Generate the synthetic corpus: runs that are healthy or broken at a known step, as lines for `gyrostat backtest`.

    python benchmarks/detection/generate.py --split judge --out judge.jsonl
    python benchmarks/detection/generate.py --split judge --long-healthy 300000 --out healthy.jsonl
    python benchmarks/detection/generate.py --list                         what each family is, and the deadlines

Runs are written one by one as they are made. The same arguments give the same bytes. Thresholds may be chosen on the
split `calibrate` alone: `judge` has other seeds, and two families that are not in the other. Exit status 2 where what
was given cannot be used.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import split as splits
from corpusline import lines
from families import FAULTY, HEALTHY, JUDGED_ONLY, generated
from kinds import KINDS, reason
from split import Planned

RUNS, ROWS, FEWEST = 400, 1000, 400
DONE, USAGE = 0, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Write what was asked for; a count of it goes to stderr."""
    given = _arguments(argv)
    if given.list:
        print(listed())
        return DONE
    try:
        with _opened(given.out) as out:
            runs, told = write(out, _wanted(given), given.split, given.steps)
    except OSError as error:
        print(f"generate: {given.out}: {error.strerror}; give another file with --out", file=sys.stderr)
        return USAGE
    print(f"{runs} runs, {told} steps told, split {given.split}", file=sys.stderr)
    return DONE


def write(out: TextIO, wanted: Iterator[Planned], split: str, rows: int) -> tuple[int, int]:
    """Make the runs and write each before the next; returns how many, and how many steps they tell."""
    runs = told = 0
    for family, seed in wanted:
        run = generated(family, seed, rows)
        out.writelines(f"{line}\n" for line in lines(run, split))
        runs, told = runs + 1, told + run.course.rows
    return runs, told


def listed() -> str:
    """The families and the deadlines, as text."""
    makers = {**{name: make for name, (make, _) in HEALTHY.items()}, **FAULTY}
    out = []
    for name, make in makers.items():
        word = "healthy" if name in HEALTHY else "faulty"
        only = ", judge only" if name in JUDGED_ONLY else ""
        out.append(f"{name} ({word}{only}): {(make.__doc__ or '').strip()}")
    return "\n".join([*out, "", *(f"{kind}: {reason(kind)}" for kind in KINDS)])


def _wanted(given: argparse.Namespace) -> Iterator[Planned]:
    if given.long_healthy:
        return splits.healthy(given.split, given.long_healthy, given.steps)
    return splits.planned(given.split, given.runs)


def _opened(path: Path | None) -> contextlib.AbstractContextManager[TextIO]:
    return contextlib.nullcontext(sys.stdout) if path is None else path.open("w", encoding="utf-8", newline="\n")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--split", choices=splits.SPLITS, help="which seeds and families")
    add("--out", type=Path, metavar="FILE", help="written anew (default: standard output)")
    add("--runs", type=_count, default=RUNS, help=f"half of them faulty (default {RUNS})")
    add("--steps", type=_count, default=ROWS, help=f"steps that a run tells, a faulty one at most (default {ROWS})")
    add("--long-healthy", type=_count, metavar="STEPS", help="healthy runs alone, of so many steps in all")
    add("--list", action="store_true", help="say what each family is and when each kind is due, and write nothing")
    given = parser.parse_args(argv)
    if given.split is None and not given.list:
        parser.error(f"give --split {' or '.join(splits.SPLITS)}")
    if given.steps < FEWEST:
        parser.error(
            f"--steps {given.steps}: give at least {FEWEST}, a run must have a healthy part to be held against"
        )
    return given


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
