"""Corpus: files of cases, one JSON object a line; the lines of one run found, whatever stands between them.

A corpus may be longer than memory: the first pass checks every line and remembers where those of each run lie, and
each run is then read for itself. So files are wanted that can be read twice.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.backtest.case import Case, read
from gyrostat_agent.errors import SetupError

MOST = 64 << 20  # bytes of one line
_TOLD, _ENOUGH = 50, 1000  # mistakes that are written out, and after which a file is read no further


class Place(NamedTuple):
    """Where a line begins, and its number."""

    offset: int
    line: int


class RunLines(NamedTuple):
    """Where the lines of one run lie. Files are apart: the same name in two of them is two runs."""

    file: str
    run: str
    places: tuple[Place, ...]


def index(files: Sequence[str]) -> list[RunLines]:
    """All runs of the files, in the order in which they begin; raises SetupError with every mistake at its line."""
    mistakes: list[str] = []
    runs = [run for file in files for run in _runs(file, mistakes)]
    if mistakes:
        more = [f"... and {len(mistakes) - _TOLD} more"] if len(mistakes) > _TOLD else []
        raise SetupError("\n".join(["nothing was replayed:", *map(clean, mistakes[:_TOLD]), *more]))
    if not runs:
        raise SetupError(f"{clean(', '.join(files))}: no case in it; write one JSON object a line")
    return runs


def cases(run: RunLines) -> tuple[Case, ...]:
    """The lines of one run; raises SetupError where the file is no longer what it was."""
    try:
        with open(run.file, "rb") as file:
            return tuple(_again(file, run, place) for place in run.places)
    except OSError as error:
        raise SetupError(f"{clean(run.file)}: {error.strerror}") from None


def _runs(name: str, mistakes: list[str]) -> Iterator[RunLines]:
    places: dict[str, list[Place]] = {}
    before = len(mistakes)
    try:
        _refuse(name)
        with open(name, "rb") as file:
            for place, data in _lines(file):
                case, wrong = read(data, name, place.line)
                wrong = wrong or _unlike(case, places)
                mistakes += [f"{name}:{place.line}: {what}" for what in wrong]
                if case is not None and not wrong:
                    places.setdefault(case.run, []).append(place)
                if len(mistakes) - before >= _ENOUGH:
                    raise ValueError(": more than enough mistakes; is this a corpus? It was read no further")
    except OSError as error:
        mistakes.append(f"{name}: {error.strerror}")
    except ValueError as error:
        mistakes.append(f"{name}{error}")
    yield from (RunLines(name, run, tuple(found)) for run, found in places.items())


def _refuse(name: str) -> None:
    """Only what can be read twice; raises ValueError in words, OSError where it is not there."""
    mode = os.stat(name).st_mode
    if stat.S_ISDIR(mode):
        raise ValueError(f": this is a folder; give the files in it, e.g. {os.path.join(name, '*.jsonl')}")
    if not stat.S_ISREG(mode):
        raise ValueError(": this is no file on a disk, and a corpus is read twice; write it into one first")


def _lines(file: BinaryIO) -> Iterator[tuple[Place, bytes]]:
    """Lines that say anything, and where they begin; raises ValueError at one that has no end."""
    offset = number = 0
    while data := file.readline(MOST + 1):
        number += 1
        if len(data) > MOST:
            raise ValueError(f":{number}: this line is longer than {MOST >> 20} MiB; a case is one run, not a corpus")
        if data.strip():
            yield Place(offset, number), data
        offset += len(data)


def _unlike(case: Case | None, known: dict[str, list[Place]]) -> list[str]:
    """A line without a group is a run of its own: two of one name would be taken for one run."""
    if case is None or case.run != case.id or case.run not in known or case.grouped:
        return []
    return [f"`id` {case.id} stands at line {known[case.run][0].line} already; lines of one run need a `group`"]


def _again(file: BinaryIO, run: RunLines, place: Place) -> Case:
    file.seek(place.offset)
    case, _ = read(file.readline(MOST + 1), run.file, place.line)
    if case is None or case.run != run.run:
        raise SetupError(f"{clean(run.file)}:{place.line}: this line was changed while it was read; begin again")
    return case
