"""Lookup: a journal's turns by what they say, the newest first, for people who look through it."""

from collections.abc import Callable, Iterator
from itertools import groupby, islice
from typing import NamedTuple

from gyrostat_agent.journal.codec import decode_entry
from gyrostat_agent.journal.errors import GoneError
from gyrostat_agent.journal.store import Journal, Turn
from gyrostat_rules.entries import Entry, EntryKind

_PAGE = 256
_NEWEST = "SELECT seq, place, body FROM entries WHERE (seq, place) < (?, ?) ORDER BY seq DESC, place DESC LIMIT ?"
_PACKS = "SELECT seq, body FROM entries WHERE kind = ? ORDER BY seq"
_HASH = "SELECT hash FROM turns WHERE seq = ?"


class Page(NamedTuple):
    """A turn as it is shown: what was given, None where that was let go, and why; the entries; the rules in force."""

    seq: int
    turn: Turn | None
    gone: str
    entries: tuple[Entry, ...]
    rules: str
    hash: str


def pages(journal: Journal, wanted: Callable[[Entry], bool], limit: int) -> list[Page]:
    """The newest ``limit`` turns of which an entry is wanted, oldest first; raises JournalError."""
    rules = _rules(journal)
    found = islice((seq for seq, entries in _told(journal) if any(map(wanted, entries))), limit)
    return [_page(journal, seq, rules) for seq in reversed(list(found))]


def page(journal: Journal, seq: int) -> Page | None:
    """Turn ``seq``; None where there is none."""
    return _page(journal, seq, _rules(journal)) if journal.read(_HASH, seq) else None


def _page(journal: Journal, seq: int, rules: list[tuple[int, str]]) -> Page:
    entries = tuple(map(decode_entry, journal.bodies(seq, seq).get(seq, [])))
    digest = journal.read(_HASH, seq)[0][0].hex()
    pack = next((name for at, name in reversed(rules) if at <= seq), "")
    try:
        return Page(seq, next(journal.turns(seq - 1, seq)), "", entries, pack, digest)
    except GoneError as error:
        return Page(seq, None, str(error), entries, pack, digest)


def _told(journal: Journal) -> Iterator[tuple[int, list[Entry]]]:
    """Each turn that has entries, the newest first, and these in their order."""
    for seq, group in groupby(_entries(journal), key=lambda row: row[0]):
        yield seq, [entry for _, entry in group][::-1]


def _entries(journal: Journal) -> Iterator[tuple[int, Entry]]:
    edge = (2**62, 0)
    while rows := journal.read(_NEWEST, *edge, _PAGE):
        yield from ((seq, decode_entry(body)) for seq, _, body in rows)
        edge = rows[-1][:2]


def _rules(journal: Journal) -> list[tuple[int, str]]:
    """From which turn on which rules were in force, by digest."""
    packs = ((seq, decode_entry(body)) for seq, body in journal.read(_PACKS, EntryKind.PACK))
    return [(seq, str(entry.data.get("digest", ""))) for seq, entry in packs]
