"""Bookmarks: how far a collector was told of the journal, in a file, so that the next agent goes on from there."""

import contextlib
import json
import os
import re
import threading
from typing import NamedTuple

from gyrostat.wire import RunDirectory
from gyrostat.wire.rights import open_trusted

START = "0.0"  # before the first entry of all
_MOST_BYTES = 4096
_ID = re.compile(r"\d{1,18}\.\d{1,9}", re.ASCII)


class Place(NamedTuple):
    """Ids of entries: the newest that was told, and the oldest that what goes on needs; '' for none.

    ``told`` is START where there is a beginning and nothing was told yet.
    """

    told: str = ""
    needed: str = ""


class Bookmarks:
    """One file, ``agent/otlp.json``, for all signals; each has a thread of its own."""

    def __init__(self, run: RunDirectory) -> None:
        self._path = os.path.join(run.agent, "otlp.json")
        self._lock = threading.Lock()
        self._places = _read(self._path)

    def place(self, signal: str) -> Place:
        """Where a signal stands."""
        with self._lock:
            return self._places.get(signal, Place())

    def move(self, signal: str, place: Place) -> None:
        """It stands there now. Where that cannot be written, the next agent tells some of it again, by the same ids."""
        with self._lock:
            if self._places.get(signal) == place:
                return
            self._places[signal] = place
            with contextlib.suppress(OSError):
                with open(f"{self._path}.draft", "w", encoding="ascii", opener=_ours) as out:
                    json.dump({name: one._asdict() for name, one in self._places.items()}, out)
                os.rename(f"{self._path}.draft", self._path)


def _ours(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _read(path: str) -> dict[str, Place]:
    """What the file says; nothing where it is not as we write it, or others could have written it."""
    try:
        fd = open_trusted(path)
        try:
            raw = os.read(fd, _MOST_BYTES + 1)
        finally:
            os.close(fd)
        said = json.loads(raw) if len(raw) <= _MOST_BYTES else None
    except (OSError, ValueError, RecursionError):  # RightsError is an OSError
        return {}
    rows = said.items() if isinstance(said, dict) else ()
    return {name: Place(*map(_id, _two(row))) for name, row in rows if _id(_two(row)[0])}


def _two(row: object) -> tuple[object, object]:
    return (row.get("told"), row.get("needed")) if isinstance(row, dict) else (None, None)


def _id(said: object) -> str:
    return said if isinstance(said, str) and _ID.fullmatch(said) else ""
