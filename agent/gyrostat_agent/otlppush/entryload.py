"""EntryLoad: the journal's entries as log records or spans. What waits is the journal itself: a crash loses none of it.

It stands in the journal at a bookmark and reads on from there when it can tell more. A collector that is away for long
is told the newest entries; what was passed over is counted.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from gyrostat_agent.journal import Journal
from gyrostat_agent.journal.behind import before, behind, knows
from gyrostat_agent.otlppush.bookmarks import START, Bookmarks, Place
from gyrostat_agent.otlppush.pace import Pace
from gyrostat_exporters.spans import Span
from gyrostat_exporters.trail import Trail
from gyrostat_rules.entries import Entry

_PAGE = 256
_DAY, _MOST = 86400.0, 2000  # how far back one begins that was never told anything: seconds, and entries


class Seen(NamedTuple):
    """What the loop has shown: the run's name, the newest turn that its view knows, when incidents fired (Unix
    seconds), and whether another agent tells of them."""

    run: str
    turn: int
    births: Mapping[str, float]
    elsewhere: bool


class EntryLoad:
    """One signal's way through the journal at ``path``. ``make`` says what is told of an entry, given the spans
    that end with it, and the trace and span that it belongs to."""

    def __init__(
        self, signal: str, path: str, marks: Bookmarks, seen: Callable[[], Seen | None], pace: Pace,
        make: Callable[[Entry, Sequence[Span], tuple[int, int]], Sequence[Any]],
        encode: Callable[[str, Sequence[Any]], bytes],
    ) -> None:  # fmt: skip
        self.signal, self._path, self._marks, self._seen, self._pace = signal, path, marks, seen, pace
        self._make, self._encode = make, encode
        self._items: list[Any] = []
        self._trail: Trail | None = None
        self._told = ""
        self._unread = self._kept = 0
        self.dropped = 0

    def fill(self, *, last: bool = False) -> None:
        """Read on where nothing waits; raises JournalError."""
        seen = self._seen()
        if seen is None:
            return
        with contextlib.closing(Journal(self._path, readonly=True)) as journal:
            trail = self._trail or self._begin(journal, seen)
            self._pass_over(journal, seen, trail)
            while not self._items and (page := self._page(journal, seen)):
                self._hear(page, seen, trail)
            self._unread = behind(journal, self._told)
        self._note()

    def batch(self, most: int) -> Sequence[Any]:
        """What to send next, the oldest first."""
        return self._items[:most]

    def body(self, batch: Sequence[Any]) -> bytes:
        """What to post."""
        seen = self._seen()
        return self._encode(seen.run if seen is not None else "", batch)

    def settle(self, many: int) -> None:
        """The first ``many`` are dealt with."""
        del self._items[:many]
        self._note()

    @property
    def waiting(self) -> int:
        """What waits: items that were made, and entries that were not read yet."""
        return len(self._items) + self._unread

    def pause(self) -> float:
        """Seconds until there may be news that nobody rings for."""
        return self._pace.longest

    # -- the journal ----------------------------------------------------------------------------------

    def _begin(self, journal: Journal, seen: Seen) -> Trail:
        """Stand where the last agent stood, and hear again what incidents that go on need."""
        trail, place = Trail(seen.run), self._marks.place(self.signal)
        if place.told == START:
            self._told = ""
        elif place.told and knows(journal, place.told):
            self._told = place.told
            for entry in self._heard_before(journal, place):
                _spans(trail, entry, seen)
        else:
            self._told = _a_day_back(journal)
            self._marks.move(self.signal, Place(self._told or START))  # an agent that dies now has told nothing
        self._trail = trail
        return trail

    def _heard_before(self, journal: Journal, place: Place) -> Iterator[Entry]:
        """From the oldest entry that is needed up to the newest that was told, bounded as what waits is."""
        if not place.needed or not knows(journal, place.needed):
            return
        start, most = before(journal, place.needed), behind(journal, place.told) + self._pace.entries
        if behind(journal, start) > most:
            start = before(journal, place.told, self._pace.entries)
        for entry in journal.entries(start or None):
            yield entry
            if entry.id == place.told:
                return

    def _page(self, journal: Journal, seen: Seen) -> list[Entry]:
        """The next entries that the view knows: of a later turn nobody has said yet when its incidents fired."""
        page = journal.entries(self._told or None, limit=_PAGE)
        return list(takewhile(lambda entry: _turn(entry) <= seen.turn, page))

    def _hear(self, page: Sequence[Entry], seen: Seen, trail: Trail) -> None:
        for entry in page:
            spans = _spans(trail, entry, seen)
            if spans is None:
                self.dropped += 1
            else:
                self._items += self._make(entry, *(((), (0, 0)) if seen.elsewhere else (spans, trail.place(entry))))
            self._told = entry.id

    def _pass_over(self, journal: Journal, seen: Seen, trail: Trail) -> None:
        """Let the oldest go while too much waits."""
        excess = len(self._items) + behind(journal, self._told) - self._pace.entries
        while excess > 0 and (self._items or (page := self._page(journal, seen))):
            if not self._items:
                self._hear(page[:excess], seen, trail)
                excess -= min(excess, len(page))
            else:
                excess -= len(self._items)
            self.dropped += len(self._items)
            self._items.clear()

    def _note(self) -> None:
        if not self._items and self._trail is not None and self._told:
            self._marks.move(self.signal, Place(self._told, self._trail.needed))


def _spans(trail: Trail, entry: Entry, seen: Seen) -> Sequence[Span] | None:
    """What ends with an entry; None where no engine wrote it: the others are told all the same."""
    try:
        return trail.hear(entry, seen.births)
    except (AttributeError, TypeError, ValueError):
        return None


def _a_day_back(journal: Journal) -> str:
    """The entry behind which one begins that was never told anything: a day before the newest, '' for the first."""
    newest = list(journal.entries(newest_first=True, limit=_MOST))
    recent = list(takewhile(lambda entry: newest[0].at - entry.at <= _DAY, newest))
    return before(journal, recent[-1].id) if recent else ""


def _turn(entry: Entry) -> int:
    turn = entry.id.partition(".")[0]
    return int(turn) if turn.isdecimal() else 0
