"""Recording: a corpus file that grows run by run, whole at every moment, in an order that no speed decides."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path


class RecordingError(Exception):
    """A file that is no recording, with the line and what to do."""


class Recording:
    """``groups``: the runs that it holds."""

    def __init__(self, path: Path, runs: Mapping[str, list[str]]) -> None:
        self.path = path
        self._runs = dict(runs)

    @classmethod
    def read(cls, path: Path) -> "Recording":
        """What the file holds, nothing where it is not there; raises RecordingError, OSError."""
        runs: dict[str, list[str]] = {}
        text = path.read_text("utf-8") if path.exists() else ""
        for number, line in enumerate(text.splitlines(), 1):
            try:
                group = str(json.loads(line)["group"])
            except (ValueError, KeyError, TypeError):
                raise RecordingError(
                    f"{path}:{number}: this is no line of a recording; mend it, or give another file with --out"
                ) from None
            runs.setdefault(group, []).append(line)
        return cls(path, runs)

    @property
    def groups(self) -> frozenset[str]:
        """The names of its runs."""
        return frozenset(self._runs)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._text().encode())

    def add(self, group: str, lines: Iterable[str]) -> None:
        """Take a run in, in place of one of that name."""
        self._runs[group] = list(lines)

    def save(self) -> None:
        """Write all of it beside the file and put it in its place; raises OSError."""
        beside = self.path.with_name(f"{self.path.name}.part")
        beside.write_text(self._text(), encoding="utf-8", newline="\n")
        os.replace(beside, self.path)

    def _text(self) -> str:
        return "".join(f"{line}\n" for group in sorted(self._runs) for line in self._runs[group])
