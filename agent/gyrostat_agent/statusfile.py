"""The status file: the newest view, for ``gyrostat status``; replaced as a whole, and read with distrust elsewhere."""

import contextlib
import json
import os
import time
from dataclasses import asdict
from math import isfinite

from gyrostat.wire import RunDirectory
from gyrostat.wire.fields import numbers
from gyrostat_exporters.view import View, Waiting


def write(run: RunDirectory, shown: View, address: str) -> None:
    """Write ``agent/status.json``. Where it cannot be written, so be it: the journal is what counts."""
    path = os.path.join(run.agent, "status.json")
    ranks = [
        {"role": r.role, "rank": r.rank, "step": r.step, "at": r.at, "ended": r.ended, **numbers(r.values, "values")}
        for r in shown.ranks
    ]
    said = {
        "run": shown.run, "mode": shown.mode, "observe_only": shown.distrust, "paused": shown.paused,
        "step": shown.step, "segment": shown.segment, "ready": not shown.blind, "blind": list(shown.blind),
        "http": address, "incidents": shown.incident_count, "open": [i._asdict() for i in shown.incidents],
        "held": [_waiting(w) for w in shown.held], "ranks": ranks, "alerts": [list(a) for a in shown.alerts],
        "armed": [list(a) for a in shown.armed], "proposed": shown.proposed,
        "silences": [{**asdict(s), "matchers": list(s.matchers)} for s in shown.silences],
        "pushed": [p._asdict() for p in shown.pushed],
        "exported": [e._asdict() for e in shown.exported], "at": time.time(), "pid": os.getpid(),
    }  # fmt: skip
    if shown.fellows is not None:
        said["fellows"] = shown.fellows._asdict()
    if shown.off is not None:
        said["off"] = [list(o) for o in shown.off]
    with contextlib.suppress(OSError):
        with open(f"{path}.draft", "w", encoding="utf-8", opener=_ours) as out:
            json.dump(said, out, allow_nan=False)
        os.rename(f"{path}.draft", path)


def _waiting(one: Waiting) -> dict[str, str | float | None]:
    """Without an end where nobody is asked: JSON knows no infinity."""
    return {**one._asdict(), "until": one.until if isfinite(one.until) else None}


def _ours(path: str, flags: int) -> int:
    """Ours alone, whatever the umask: the supervisor does not believe what others may write."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
