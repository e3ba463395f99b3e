"""Format: how one kind of log is recognised and read, and what its names mean. ``table`` lists all of them."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.said import Said


class Reader(Protocol):
    """Reads one log of a format, line by line; what a line only began is kept until another ends it."""

    def read(self, line: Line) -> Iterable[Said]:
        """What the line says; nothing where it is not this format's. Never raises, whatever is in the line."""

    def end(self) -> Iterable[Said]:
        """What was still held when nothing more came."""


class Format(NamedTuple):
    """``name`` as ``--format`` takes it; ``title`` for people.

    ``sign``: how sure a line makes that a log is of this format: 0 not at all, 1 it may be, 3 no other writes such a
    line. Lines are added up. ``aliases``: the trainer's names -> canonical ones (``names.CANONICAL``); those ending in
    ``*`` stand for all that begin so. ``files``: names of files that it is known by (patterns of fnmatch).
    """

    name: str
    title: str
    sign: Callable[[str], int]
    reader: Callable[[], Reader]
    aliases: Mapping[str, str] = {}
    files: tuple[str, ...] = ()
