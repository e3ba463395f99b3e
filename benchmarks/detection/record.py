"""Record the corpus of real runs: the reference trainer, clean and broken, as lines for `gyrostat backtest`.

    python benchmarks/detection/record.py --out benchmarks/detection/recorded.jsonl
    python benchmarks/detection/record.py --quick --out few.jsonl          one short run of each: minutes

Clean runs are the recipe's own, as many as make --healthy-steps; broken ones are --seeds of each fault, by
configuration or data alone. A run that the file already holds is not made again: an interrupted recording goes on where
it was. Numbers have five digits. Exit status 1 where the file has grown past ten megabytes, 2 where it cannot be used.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # reference_campaign lies there

import split as splits
from recorded_runs import CLEAN, RECORDED, Job, jobs, recorded_at_once
from recording import Recording, RecordingError

HEALTHY_STEPS, SEEDS, MOST = 10_000, 3, 10_000_000
QUICK = 12  # steps of a clean run
DONE, TOO_LARGE, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Make what is missing, telling it on stderr, and write the file anew after every run."""
    given = _arguments(argv)
    try:
        recording = Recording.read(given.out)
        recording.save()  # before hours of training rather than after: can it be written?
        return _filled(recording, [job for job in _wanted(given) if job.group not in recording.groups], given.at_once)
    except RecordingError as error:
        print(f"record: {error}", file=sys.stderr)
    except OSError as error:
        print(f"record: {given.out}: {error.strerror}; give another file with --out", file=sys.stderr)
    except KeyboardInterrupt:
        print("record: interrupted; start it again and it goes on from what it has", file=sys.stderr)
        return INTERRUPTED
    return USAGE


def _filled(recording: Recording, missing: Sequence[Job], at_once: int) -> int:
    for count, (job, run) in enumerate(recorded_at_once(missing, at_once), 1):
        if run:
            recording.add(job.group, run)
            recording.save()
        came = f"{len(run)} lines" if run else f"left out, for its fault does not show in {job.steps} steps"
        print(f"[{count}/{len(missing)}] {job.group}: {came}", file=sys.stderr, flush=True)
    size = recording.size
    print(f"{len(recording.groups)} runs, {size / 1e6:.2f} MB", file=sys.stderr)
    return TOO_LARGE if size > MOST else DONE


def _wanted(given: argparse.Namespace) -> list[Job]:
    names = [name for name in (CLEAN, *RECORDED) if name in (given.only or (CLEAN, *RECORDED))]
    steps, seeds = (QUICK, 1) if given.quick else (given.healthy_steps, given.seeds)
    return [one for name in names for one in jobs(name, given.split, steps, seeds)]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="FILE", help="goes on from what it holds")
    add("--split", choices=splits.SPLITS, default=splits.JUDGE, help="which seeds (default judge)")
    add("--healthy-steps", type=_count, default=HEALTHY_STEPS, help=f"of clean runs in all (default {HEALTHY_STEPS})")
    add("--seeds", type=_count, default=SEEDS, help=f"of each fault (default {SEEDS})")
    add("--at-once", type=_count, default=os.cpu_count() or 1, help="processes side by side")
    add("--only", nargs="+", choices=(CLEAN, *RECORDED), metavar="NAME", help=f"of {', '.join((CLEAN, *RECORDED))}")
    add("--quick", action="store_true", help="one short run of each")
    return parser.parse_args(argv)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
