"""The chaos campaign: faults and disturbances drawn at random into the real trainer, its sidecar left alone with them.

    python benchmarks/chaos_runs.py                          seeds 0 to 99 and 10 clean runs: hours on two cores
    python benchmarks/chaos_runs.py --seeds 0-9 --clean 0
    python benchmarks/chaos_runs.py --only mismatch agent_killed      of the seeds, those whose draw has one of these
    python benchmarks/chaos_runs.py --replay 17              one seed again, its draw and what was done to it shown
    python benchmarks/chaos_runs.py --list --seeds 0-20      the draws, nothing played
    python benchmarks/chaos_runs.py --table benchmarks/results/chaos.json

What stands in the results file is not played again. Exit status 0 where nothing was made worse or lost, nothing was
done to a clean run, and 97 of 100 that could be mended were; 1 where not; 2 where something given cannot be used;
130 where it was interrupted.
"""

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import lanes
from chaos import single
from chaos.campaign import Campaign
from chaos.disturbances import DISTURBANCES
from chaos.draw import Draw, clean, drawn
from chaos.faults import FAMILIES
from chaos.play import interruptible
from chaos.rows import RowsError, counted, markdown, read

HELD, NOT_HELD, USAGE, INTERRUPTED = 0, 1, 2, 130
_GOAL = 0.97
_CLEAN_STEPS = 300


def main(argv: Sequence[str] | None = None) -> int:
    """Play what is missing, telling it on stderr; print the table."""
    given = _arguments(argv)
    if given.single:
        return interruptible(lambda: single.main(*given.single))
    try:
        if given.table is not None:
            print(markdown(read(given.table)))
            return HELD
        draws = _draws(given)
        if given.list:
            print("\n".join(draw.line for draw in draws))
            return HELD
        return _play(given, draws)
    except RowsError as error:
        print(f"chaos: {error}", file=sys.stderr)
    except OSError as error:
        print(
            f"chaos: {error.filename or given.out}: {error.strerror}; give others with --out, --json", file=sys.stderr
        )
    return USAGE


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    names = [*FAMILIES, *DISTURBANCES]
    add("--seeds", type=_range, default=range(100), metavar="A-B", help="seeds A to B (default 0-99)")
    add("--clean", type=_number, default=None, metavar="N", help="clean runs besides (default 10; with --only 0)")
    add("--clean-steps", type=_number, default=_CLEAN_STEPS, help=f"steps of a clean run (default {_CLEAN_STEPS})")
    add("--only", nargs="+", choices=names, metavar="NAME", help=f"draws that have one of: {', '.join(names)}")
    add("--replay", type=_number, metavar="SEED", help="play this seed again, and show what was done")
    add("--at-once", type=_number, default=2, help="runs side by side (default 2)")
    add("--out", type=Path, default=Path("runs/chaos"), help="folder of the runs (default runs/chaos)")
    add("--json", type=Path, metavar="FILE", help="results; goes on from what it holds (default OUT/chaos.json)")
    add("--keep", action="store_true", help="keep the folders of runs that were mended, too")
    add("--list", action="store_true", help="print the draws, and play nothing")
    add("--table", type=Path, metavar="FILE", help="print the table of a results file, and play nothing")
    add("--single", nargs=2, help=argparse.SUPPRESS)  # a draw and its folder: how the campaign starts each run
    return parser.parse_args(argv)


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal() and int(last or first) >= int(first)):
        raise argparse.ArgumentTypeError(f"{text!r}: give two whole numbers, as 0-99, or one")
    return range(int(first), int(last or first) + 1)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number")
    return int(text)


def _draws(given: argparse.Namespace) -> list[Draw]:
    if given.replay is not None:
        return [drawn(given.replay)]
    wanted = set(given.only or ())
    draws = [draw for draw in map(drawn, given.seeds) if not wanted or wanted & _names(draw)]
    count = given.clean if given.clean is not None else (0 if wanted else 10)
    return draws + [clean(seed, given.clean_steps) for seed in range(count)]


def _names(draw: Draw) -> set[str]:
    return {one.name for one in (*draw.faults, *draw.disturbances)}


def _play(given: argparse.Namespace, draws: Sequence[Draw]) -> int:
    """Play them to their end; the exit status."""
    results = given.json or given.out / "chaos.json"
    replayed = given.replay is not None
    known = [] if replayed else read(results)
    campaign = Campaign(draws, known, given.out, None if replayed else results, keep=given.keep or replayed)
    campaign.save()
    try:
        with _interruptible():
            lanes.play(campaign.jobs, max(1, given.at_once), campaign)
    except KeyboardInterrupt:
        print("chaos: interrupted; start it again and it goes on from what it has", file=sys.stderr)
        return INTERRUPTED
    print("\n".join(campaign.notes) if replayed else markdown(campaign.rows))
    for line in campaign.failed:
        print(f"chaos: {line}", file=sys.stderr)
    found = counted(campaign.rows)
    enough = found["mended_of_mendable"] >= _GOAL * found["mendable"]
    harm = found["worse"] + found["lost"] + found["clean_interventions"] + len(campaign.failed)
    return HELD if enough and not harm else NOT_HELD


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
