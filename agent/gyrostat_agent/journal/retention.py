"""Retention: what the journal keeps, for how long, and how the rest goes, in bites that no pass of the loop feels.

Kept for ever: every turn's hash, every entry, every statement of what was let go. Inputs are kept until they are older
than ``days`` or the file is larger than ``most_bytes``, but never those behind the oldest state that a restart may
begin from, and not those around an incident: of these the oldest go when nothing else is left to go for the bytes'
sake. Called by the agent's loop once a tick, and by ``gyrostat journal compact``; never while another process writes.
"""

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

from gyrostat_agent import failpoints
from gyrostat_agent.journal.codec import decode, decode_entry
from gyrostat_agent.journal.errors import CodecError, JournalError
from gyrostat_agent.journal.letgo import meets, merged, stretches
from gyrostat_agent.journal.store import Journal
from gyrostat_agent.journal.windows import Happening, Window, tell, window
from gyrostat_rules.entries import Entry

SPAN = 256  # turns a statement: it costs the journal some 100 bytes, and one turn of a large run a thousand times that
BITE_TURNS, BITE_BYTES, BITE_PAGES = 128, 1 << 20, 128  # a tick: see docs/journal.md for what it takes
LOOKBACK = 256  # steps: an onset is rarely dated back further
_MOST_SNAPSHOTS = 8  # beside those of incidents
_SLACK = 8  # a file of which an eighth is free is not shrunk further: new turns will fill it
_LEAST_FREE = 256  # pages
_END = 2**62

_INCIDENTS = "SELECT seq, body FROM entries WHERE kind = 'incident' ORDER BY seq, place"
_SNAPSHOTS = "SELECT seq, step FROM snapshots ORDER BY seq"
_SNAPSHOT_TURNS = "SELECT seq FROM snapshots"
_NEXT = "SELECT min(seq) FROM inputs WHERE seq > ?"
_SIZES = "SELECT seq, length(given) FROM inputs WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?"
_WEIGHT = "SELECT count(*), sum(length(given)) FROM inputs WHERE seq > ? AND seq < ?"
_LAST_INPUT = "SELECT given FROM inputs WHERE seq <= ? ORDER BY seq DESC LIMIT 1"
_DROP = "DELETE FROM inputs WHERE seq BETWEEN ? AND ?"


class Span(NamedTuple):
    """Turns whose inputs may go, first to last, and why."""

    first: int
    last: int
    why: str


class Bite(NamedTuple):
    """What one bite did: inputs and bytes that went, pages that were given back to the file system."""

    turns: int = 0
    bytes: int = 0
    pages: int = 0


class Retention:
    """Keeps one journal within ``days`` and ``most_bytes``, 0 for no limit; ``by`` is who is named for it."""

    def __init__(self, journal: Journal, days: float, most_bytes: int, by: str = "the agent") -> None:
        self._journal, self._by = journal, by
        self._days, self._most = days, most_bytes
        self._told: dict[str, Happening] = {}
        for seq, body in journal.read(_INCIDENTS):
            with contextlib.suppress(CodecError):  # of a journal that is broken, and trusted all the same
                tell(self._told, seq, [decode_entry(body)])
        self._snapshots: dict[int, int] = dict(journal.read(_SNAPSHOTS))
        self._gone = stretches(journal.gone())
        self._windows: dict[str, Window] = {}
        self._passed = 0  # up to here, every input that is still there is there for an incident
        self._unfinished = [s for s in self._gone if journal.read(_SIZES, *s, 1)]
        self._ages: dict[int, float] = {}
        self._look(self._told)

    def see(self, seq: int, entries: Iterable[Entry]) -> None:
        """Take in what turn ``seq`` said."""
        self._look(tell(self._told, seq, entries))

    def save(self, seq: int, state: bytes, step: int) -> None:
        """Save a snapshot, and let those go that neither a restart nor an incident needs. Raises JournalError."""
        self._snapshots[seq] = step
        kept = self.wanted(step)
        self._journal.save_snapshot(seq, state, step, kept)
        self._snapshots = {at: self._snapshots[at] for (at,) in self._journal.read(_SNAPSHOT_TURNS)}

    def wanted(self, step: int) -> set[int]:
        """Turns of the snapshots that are kept: see ``LOOKBACK``, and those at which incidents' windows begin."""
        recent = self._recent(step)
        while len(recent) > _MOST_SNAPSHOTS:  # the one whose neighbours are nearest is missed least
            gaps = {recent[i]: recent[i + 1] - recent[i - 1] for i in range(1, len(recent) - 2)}
            recent.remove(min(gaps, key=gaps.__getitem__))
        return {*recent, *(w.snapshot for w in self._windows.values())}

    def bite(self, now: float) -> Bite:
        """Do a little of what there is to do: finish, shrink or begin. Raises JournalError."""
        if not self._unfinished and (span := self.next_span(now)):
            self._state(span, now)
        turns = size = 0
        if self._unfinished:
            turns, size = self._drop(*self._unfinished[0])
        return Bite(turns, size, self._shrink())

    def next_span(self, now: float, *, everything: bool = False) -> Span | None:
        """The next inputs that may go; with ``everything`` all that nothing needs, whatever their age."""
        floor, crowded = self._floor(), self._most > 0 and self.used() > self._most
        if not everything and not crowded and not self._days:
            return None
        if found := self._unprotected(floor, _END if everything else SPAN):
            if everything:
                return Span(*found, "nothing needs them")
            if crowded:
                return Span(*found, f"over {self._most} bytes")
            full = found[1] - found[0] + 1 == SPAN or any(w.first == found[1] + 1 for w in self._windows.values())
            return Span(*found, f"older than {self._days:g} days") if full and self._is_old(found[1], now) else None
        return self._oldest_window(floor) if crowded else None

    def prospect(self) -> Bite:
        """What ``finish`` would let go."""
        held = merged([*((w.first, w.last) for w in self._windows.values()), (self._floor() + 1, _END)])
        after, turns, size = 0, 0, 0
        for first, last in held:
            count, length = self._journal.read(_WEIGHT, after, first)[0]
            after, turns, size = last, turns + count, size + (length or 0)
        return Bite(turns, size)

    def finish(self, now: float) -> Bite:
        """Let everything go that nothing needs, of a run that is over, and shrink the file. Raises JournalError."""
        turns = size = 0
        while self._unfinished or (span := self.next_span(now, everything=True)):
            if not self._unfinished and span:
                self._state(span, now)
            count, length = self._drop(*self._unfinished[0])
            turns, size = turns + count, size + length
        pages = self._number("page_count")
        for statement in ("PRAGMA auto_vacuum = INCREMENTAL", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            self._journal.read(statement)
        return Bite(turns, size, pages - self._number("page_count"))

    def used(self) -> int:
        """Bytes of the file that hold something."""
        return (self._number("page_count") - self._number("freelist_count")) * self._number("page_size")

    def _look(self, incidents: Iterable[str]) -> None:
        """Say anew which turns are kept for the sake of these."""
        for name in list(incidents):
            found = window(self._told[name], self._snapshots, self._gone)
            self._windows.pop(name, None)
            if found is not None:
                self._windows[name] = found
            self._passed = 0

    def _recent(self, step: int) -> list[int]:
        """The snapshots of the last steps, and one before them, oldest first."""
        order = sorted(self._snapshots)
        old = [seq for seq in order[:-2] if 0 <= self._snapshots[seq] <= step - LOOKBACK]
        return [seq for seq in order if not old or seq >= old[-1]]

    def _floor(self) -> int:
        """The turn up to which no restart, and no incident that is yet to be found, needs an input."""
        if not self._snapshots:
            return 0
        newest = max(self._snapshots)
        return min(self._recent(self._snapshots[newest]))

    def _unprotected(self, floor: int, most: int) -> tuple[int, int] | None:
        """The oldest inputs that no window holds, as far as a statement goes."""
        held = self._windows.values()
        while (seq := self._next(self._passed)) is not None and seq <= floor:
            ends = [w.last for w in held if w.first <= seq <= w.last]
            if not ends:
                return seq, min([seq + most - 1, floor, *(w.first - 1 for w in held if w.first > seq)])
            self._passed = max(ends)
        return None

    def _oldest_window(self, floor: int) -> Span | None:
        """For the disk's sake the first incident's inputs, where it is over, or long silent: its decisions stay."""
        cores = [(w.first, w.core) for w in self._windows.values() if not w.over]
        for each in sorted(self._windows.values()):
            seq = self._next(each.first - 1 if each.over else each.core)
            if seq is None or seq > min(each.last, floor) or meets(cores, seq, seq):
                continue
            last = min([each.last, floor, seq + SPAN - 1, *(first - 1 for first, _ in cores if first > seq)])
            return Span(seq, last, f"over {self._most} bytes, with nothing else to let go")
        return None

    def _next(self, after: int) -> int | None:
        found: int | None = self._journal.read(_NEXT, after)[0][0]
        return found

    def _is_old(self, last: int, now: float) -> bool:
        if last not in self._ages:
            rows = self._journal.read(_LAST_INPUT, last)
            self._ages = {last: _at(rows[0][0]) if rows else now}
        return self._ages[last] < now - self._days * 86400.0

    def _state(self, span: Span, now: float) -> None:
        self._journal.let_go(span.first, span.last, now, self._by, span.why)
        failpoints.reach("letgo.stated")
        self._gone = merged([*self._gone, span[:2]])
        self._unfinished = [span[:2]]
        self._look([n for n, w in self._windows.items() if meets([span[:2]], w.first, w.last)])

    def _drop(self, first: int, last: int) -> tuple[int, int]:
        """Delete a few inputs of a stretch that was stated; how many, and their bytes."""
        rows = self._journal.read(_SIZES, first, last, BITE_TURNS)
        size, cut = 0, last
        for count, (seq, length) in enumerate(rows, 1):
            size += length
            if size >= BITE_BYTES or count == BITE_TURNS:
                cut, rows = seq, rows[:count]
                break
        if rows:
            self._journal.write([(_DROP, [(first, cut)])])
            failpoints.reach("letgo.dropped")
        self._unfinished = [*([(cut + 1, last)] if cut < last else []), *self._unfinished[1:]]
        return len(rows), size

    def _shrink(self) -> int:
        """Give free pages at the file's end back; new turns fill what stays free."""
        free, pages = self._number("freelist_count"), self._number("page_count")
        if free <= max(_LEAST_FREE, pages // _SLACK) or self._number("auto_vacuum") != 2:
            return 0
        self._journal.read(f"PRAGMA incremental_vacuum({BITE_PAGES})")
        failpoints.reach("letgo.shrunk")
        return pages - self._number("page_count")

    def _number(self, pragma: str) -> int:
        return int(self._journal.read(f"PRAGMA {pragma}")[0][0])


def _at(blob: bytes) -> float:
    """When an input came; one that cannot be read is of no age."""
    try:
        return decode(blob).at
    except JournalError:
        return 0.0
