"""Judge real healthy runs: the records that clean runs of the reference trainer left, fed to the engine again.

    python benchmarks/detection/judge_records.py runs/scenarios             what `make scenarios` has left
    python benchmarks/detection/judge_records.py --most-incidents 0 --most-warnings 1 RUNS...

Taken are the record files of clean runs and of control twins, whole: every series and the experts' counts, as an agent
beside the run would have had them, with all packs. Printed are steps, incidents, and alerts by rule; warnings are
counted a thousand steps. A run that shares its seed with another is as healthy as that one and no independent case.
Exit status 1 where there is more than was allowed, 2 where nothing is found.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gyrostat.wire import Record, RunDirectory
from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_agent.sources.recordfiles import RecordFiles
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import Batch, Command, Item, Pack

HELD, NOT_HELD, NOTHING = 0, 1, 2
CLEAN = ("clean", "twin")  # folders of a demonstration in which nothing is broken and nobody acts


class Judged(NamedTuple):
    """What the packs said of one run."""

    steps: int
    incidents: int
    alerts: Counter[tuple[str, str]]


def main(argv: Sequence[str] | None = None) -> int:
    """Judge all that is found, telling each run that is not silent on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, help="where runs are looked for")
    parser.add_argument("--most-incidents", type=int, metavar="N", help="exit status 1 where there are more")
    parser.add_argument("--most-warnings", type=float, metavar="X", help="a thousand steps, likewise")
    given = parser.parse_args(argv)
    runs = sorted(path for folder in given.folders for path in found(folder))
    if not runs:
        print("judge_records: no record files of clean runs are there", file=sys.stderr)
        return NOTHING
    steps, incidents, alerts = 0, 0, Counter[tuple[str, str]]()
    for run in runs:
        judged = judge(run)
        steps, incidents, alerts = steps + judged.steps, incidents + judged.incidents, alerts + judged.alerts
        if judged.incidents or judged.alerts:
            said = ", ".join(f"{rule} ({severity}) {count}" for (rule, severity), count in judged.alerts.items())
            print(f"{run}: {judged.incidents} incidents; {said}", file=sys.stderr)
    warnings = sum(count for (_, severity), count in alerts.items() if severity != "info")
    rate = 1000 * warnings / steps if steps else 0.0
    print(f"{len(runs)} runs, {steps} steps: {incidents} incidents, {warnings} warnings, {rate:.2f} in 1,000 steps")
    for (rule, severity), count in alerts.most_common():
        print(f"  {rule} ({severity}): {count}")
    over = [given.most_incidents is not None and incidents > given.most_incidents]
    over += [given.most_warnings is not None and rate > given.most_warnings]
    return NOT_HELD if any(over) else HELD


def found(folder: Path) -> Iterator[Path]:
    """The run directories of clean runs under ``folder``."""
    for records in folder.rglob("records"):
        if records.parent.name == "run" and records.parent.parent.name in CLEAN:
            yield records.parent


def judge(run: Path) -> Judged:
    """Feed a run's records, a batch each, at the times that they bear."""
    text = builtin()
    engine = Engine()
    entries = engine.feed(Pack(0.0, digest_of(text), text))
    entries += engine.feed(Command(0.0, "configure", {"mode": "shadow"}))
    files = RecordFiles(RunDirectory(str(run)), {})
    at, steps = 0.0, 0
    try:
        for item in files.drain():
            at, steps = max(at, _time(item)), steps + isinstance(item, Record)
            entries += engine.feed(Batch(at, (item,)))
    finally:
        files.close()
    return Judged(steps, sum(_opens(entry) for entry in entries), _fired(entries))


def _time(item: Item) -> float:
    return item.time if isinstance(item, Record) else 0.0


def _opens(entry: Entry) -> bool:
    return entry.kind == EntryKind.INCIDENT and entry.state == "open" and not entry.data.get("circumstances")


def _fired(entries: Sequence[Entry]) -> Counter[tuple[str, str]]:
    told = (e for e in entries if e.kind == EntryKind.ALERT and e.state == "firing")
    return Counter((entry.subject.partition("{")[0], str(entry.data["severity"])) for entry in told)


if __name__ == "__main__":
    sys.exit(main())
