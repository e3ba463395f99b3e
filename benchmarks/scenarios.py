"""The scenario campaign: every fault of the demonstration, many seeds of each, mended by the sidecar alone.

    python benchmarks/scenarios.py                          20 seeds of every scenario: hours on two cores
    python benchmarks/scenarios.py --quick                  1 seed of four: minutes
    python benchmarks/scenarios.py --only divergence nan_data --seeds 5
    python benchmarks/scenarios.py --table benchmarks/results/scenarios.json    the table of a campaign that is over

It starts the product itself, ``gyrostat demo``, mode act, approvals off; where a treated run went back to a
checkpoint a control twin is run too. What has been played stands in the results file and is not played again: an
interrupted campaign goes on where it was. Exit status 0 where every seed of every scenario was mended and every lower
bound holds, 1 where not, 2 where something given cannot be used, 130 where it was interrupted.
"""

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import lanes
from scenario_campaign import Campaign
from scenario_rows import Results, RowsError, read, versions
from scenario_table import markdown, summaries

from gyrostat_agent.demo.scenarios import FEWEST_STEPS, SCENARIOS, STEPS

QUICK = ("nan_data", "divergence", "mismatch", "clean")  # those that take least, each mended another way
HELD, NOT_HELD, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Play what is missing, telling it on stderr; print the table."""
    given = _arguments(argv)
    try:
        if given.table is not None:
            print(markdown(read(given.table)))
            return HELD
        return _play(_campaign(given), given.at_once)
    except RowsError as error:
        print(f"scenarios: {error}", file=sys.stderr)
    except OSError as error:
        print(
            f"scenarios: {error.filename or given.out}: {error.strerror}; give others with --out and --json",
            file=sys.stderr,
        )
    return USAGE


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--seeds", type=_count, help="seeds 0 to one less than this (default 20, with --quick 1)")
    add("--steps", type=_count, default=STEPS, help=f"of each run; some take more (default {STEPS})")
    add("--only", nargs="+", choices=SCENARIOS, metavar="NAME", help=f"of {', '.join(SCENARIOS)}")
    add("--at-once", type=_count, default=2, help="processes side by side (default 2)")
    add("--quick", action="store_true", help=f"1 seed of {', '.join(QUICK)}")
    add("--out", type=Path, default=Path("runs/scenarios"), help="folder for logs and runs (default runs/scenarios)")
    add("--json", type=Path, metavar="FILE", help="results; goes on from what it holds (default OUT/scenarios.json)")
    add("--fresh", action="store_true", help="play again what the results file already holds")
    add("--no-untreated", action="store_true", help="leave out the untreated runs, which the table does not use")
    add("--table", type=Path, metavar="FILE", help="print the table of a results file, and play nothing")
    given = parser.parse_args(argv)
    if given.steps < FEWEST_STEPS:
        parser.error(f"--steps {given.steps}: give at least {FEWEST_STEPS}, a mend must have time to prove itself")
    return given


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number of at least 1")
    return int(text)


def _campaign(given: argparse.Namespace) -> Campaign:
    """What was asked for, less what its results file already holds; raises RowsError, OSError."""
    names = given.only or (QUICK if given.quick else list(SCENARIOS))
    seeds = range(given.seeds or (1 if given.quick else 20))
    results = given.json or given.out / "scenarios.json"
    known = read(results).rows if results.exists() else ()
    if given.fresh:
        known = tuple(row for row in known if row.scenario not in names or row.seed not in seeds)
    return Campaign(
        list(dict.fromkeys(names)), seeds, given.steps, given.out, results, known, untreated=not given.no_untreated
    )


def _play(campaign: Campaign, at_once: int) -> int:
    """Play it to its end; the exit status."""
    campaign.save()  # before hours of training rather than after: can it be written?
    try:
        with _interruptible():
            lanes.play(campaign.jobs, at_once, campaign)
    except KeyboardInterrupt:
        print("scenarios: interrupted; start it again and it goes on from what it has", file=sys.stderr)
        return INTERRUPTED
    print(markdown(Results(versions(), tuple(campaign.rows))))
    for line in campaign.failed:
        print(f"scenarios: {line}", file=sys.stderr)
    return HELD if campaign.whole and all(one.holds for one in summaries(campaign.rows)) else NOT_HELD


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and a closed terminal end the campaign as Ctrl-C does: with its children."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


if __name__ == "__main__":
    sys.exit(main())
