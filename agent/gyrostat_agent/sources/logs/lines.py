"""Lines: bytes of a log as clean lines, whatever wrote them: progress bars, colours, Ray, torchrun, launchers.

A carriage return ends a line as a newline does, for what matters is often the tail behind a progress bar. A line that
is longer than ``MOST`` is cut, once: what one process can write without end must not fill another's memory.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

MOST = 1 << 20  # bytes of one line that are looked at
_HALF = b"\0"  # what is left of a line's end in UTF-16
_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_RAY = re.compile(r"\((?P<who>[A-Za-z_][^()]*?) pid=(?P<pid>\d+)(?:, ip=[^)]+)?\)\s?")
_TORCHRUN = re.compile(r"\[(?:default|rank)?(?P<rank>\d+)\]:\s?")
_LAUNCHER = re.compile(
    r"(?:(?P<rank>\d{1,5})|(?!(?i:step|global_step|epoch|iter|iteration|update|loss|rank)\d)[A-Za-z][\w.-]*\d): +(?=\S)"
)
_HOST = 80  # characters in which a launcher's prefix ends
_REPEATED = re.compile(r" ?\[repeated (\d+)x across cluster\].*$")


class Line(NamedTuple):
    """One line, bare of colours and prefixes. ``rank`` -1 and ``who`` '' where no prefix says whose it is."""

    text: str
    rank: int = -1
    who: str = ""


class Lines:
    """Cuts a stream of bytes into lines. ``cut``: lines that were longer than can be looked at."""

    def __init__(self) -> None:
        self.cut = 0
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that ``data`` ends; what it begins is kept for the next."""
        parts = (self._rest + data if self._rest else data).replace(b"\r", b"\n").split(b"\n")
        self._rest = parts.pop()
        for part in parts:
            if self._skipping:  # the end of a line whose beginning has been given
                self._skipping = False
            elif part and part != _HALF:
                yield clean(self._short(part))
        if len(self._rest) > MOST:
            if not self._skipping:
                yield clean(self._short(self._rest))
            self._rest, self._skipping = b"", True

    def end(self) -> Iterator[Line]:
        """The last line, where nothing ends it; half a line of a trainer that was killed is worth reading."""
        rest, self._rest = self._rest, b""
        if rest and rest != _HALF and not self._skipping:
            yield clean(self._short(rest))
        self._skipping = False

    @property
    def held(self) -> int:
        """Bytes that are kept for the next call."""
        return len(self._rest)

    def _short(self, part: bytes) -> bytes:
        if len(part) <= MOST:
            return part
        self.cut += 1
        return part[:MOST]


def clean(data: bytes) -> Line:
    """A line without colours and without the prefixes of whoever passed it on, as often as they come."""
    if b"\0" in data:  # UTF-16, as PowerShell redirects; or the hole of a log that was cut while it was written
        data = data.removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff").replace(b"\0", b"")
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text, rank, who = text.strip(" \t\ufeff") if text[:1] == "\ufeff" else text, -1, ""
    if "pid=" in text and "[repeated" in text:
        text = _REPEATED.sub("", text)
    while (found := _prefix(text)) is not None:
        text = text[found.end() :]
        groups = found.groupdict()
        who = groups.get("who") or who
        rank = int(groups["rank"]) if groups.get("rank") else rank
    return Line(text, rank, who)


def _prefix(text: str) -> re.Match[str] | None:
    """The prefix that a line begins with, if any; most lines have none, and are told so by their first characters."""
    first = text[:1]
    if first == "(":
        return _RAY.match(text)
    if first == "[":
        return _TORCHRUN.match(text)
    return _LAUNCHER.match(text) if first.isalnum() and ": " in text[:_HOST] else None
