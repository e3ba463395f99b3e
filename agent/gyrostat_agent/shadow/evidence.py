"""Evidence: journals, run directories, reports and backtests out of the folders that were given, each once.

What is damaged, or is none of these, is named and left out: half of what it says is worth less than nothing.
"""

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.errors import DistrustError, SetupError
from gyrostat_agent.shadow import backtests
from gyrostat_agent.shadow.backtests import Backtest
from gyrostat_agent.shadow.chronicle import Chronicle
from gyrostat_agent.shadow.chronicle import read as read_journal
from gyrostat_agent.shadow.exported import chronicles, is_report
from gyrostat_agent.shadow.watch import WITHIN

_MOST_BYTES = 64 << 20
_DEEPEST = 4  # folders below the one that was given: runs/NAME/agent/journal.db


class Evidence(NamedTuple):
    """``left_out``: each place that is not counted, and why. ``twice``: places that say again what another one says."""

    runs: tuple[Chronicle, ...]
    backtests: tuple[Backtest, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    twice: tuple[str, ...] = ()


def gather(runs: Iterable[str], folders: Iterable[str], within: int = WITHIN) -> Evidence:
    """Read all of it; raises SetupError where a folder that was given is none."""
    found: list[Chronicle | Backtest] = []
    left_out: list[tuple[str, str]] = []
    for path in dict.fromkeys(map(os.path.realpath, _places(runs, folders))):
        try:
            found += _read(path, within)
        except (DistrustError, OSError, ValueError, RecursionError) as error:
            left_out.append((path, clean(str(error))))
    kept, twice = _each_once([one for one in found if isinstance(one, Chronicle)])
    tests = {one.name: one for one in found if isinstance(one, Backtest)}
    twice += [one.path for one in found if isinstance(one, Backtest) and tests[one.name] is not one]
    return Evidence(tuple(kept), tuple(tests.values()), tuple(left_out), tuple(twice))


def _places(runs: Iterable[str], folders: Iterable[str]) -> Iterator[str]:
    for run in runs:
        journal = os.path.join(run, "agent", "journal.db")
        if not os.path.exists(journal):
            raise SetupError(
                f"{clean(run)} holds no agent/journal.db; give the run directory of a run that was watched"
            )
        yield journal
    for folder in folders:
        if not os.path.isdir(folder):
            raise SetupError(f"--evidence {clean(folder)}: there is no such folder; give one with journals or results")
        yield from _inside(folder)


def _inside(folder: str) -> Iterator[str]:
    """Files that may be evidence, in the order of their names; records, directives and links are passed over."""
    depth = folder.rstrip(os.sep).count(os.sep)
    for place, below, files in os.walk(folder):
        below[:] = sorted(n for n in below if n not in ("records", "directives", "commands") and n[0] != ".")
        if place.count(os.sep) - depth >= _DEEPEST:
            below.clear()
        for name in sorted(files):
            path = os.path.join(place, name)
            mine = name == "status.json" and os.path.exists(os.path.join(place, "journal.db"))
            if name.endswith((".db", ".json")) and not mine and not os.path.islink(path):
                yield path


def _read(path: str, within: int) -> list[Chronicle] | list[Backtest]:
    if path.endswith(".db"):
        return [read_journal(path, within)]
    if os.path.getsize(path) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES >> 20} MiB: no result is so large")
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES)
    raw: Any = json.loads(data)
    if is_report(raw):
        return chronicles(path, raw, within)
    if backtests.is_one(raw):
        return [backtests.read(path, data, raw)]
    raise ValueError("it is neither a report of `gyrostat shadow report --json` nor a `gyrostat backtest --json`")


def _each_once(found: Iterable[Chronicle]) -> tuple[list[Chronicle], list[str]]:
    """Of copies of one journal the one that goes furthest: a copy knows nothing that the journal does not."""
    kept: dict[tuple[str, float], Chronicle] = {}
    twice: list[str] = []
    for one in found:
        key = one.run, one.began
        other = kept.get(key)
        if other is not None:
            twice.append((one if one.turns <= other.turns else other).path)
        if other is None or one.turns > other.turns:
            kept[key] = one
    return list(kept.values()), twice
