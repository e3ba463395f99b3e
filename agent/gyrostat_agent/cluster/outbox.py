"""Outbox: what waits to be forwarded, bounded. The loop puts in, the sender's thread takes out; neither waits for long.

Where it is full the oldest records go first: a step that nobody could hear of in time is history, a death or an alert
is not. What went is counted.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gyrostat.wire import Hello, Record
from gyrostat_agent.cluster.parcel import MOST_ITEMS
from gyrostat_rules.inputs import AlertTold, Died, Ended, Item

_LOAD = 256  # expert counts weigh as one more item
_STATED = (Hello, Ended, Died, AlertTold)
WHOLE = 16 * MOST_ITEMS  # minutes of a node's eight ranks


class Portion(NamedTuple):
    """What goes into the next parcel. ``introduces`` where it begins anew for a leader."""

    items: tuple[Item, ...]
    introduces: bool


class Outbox:
    """``most`` is in items, expert counts by their size."""

    def __init__(self, most: int = WHOLE) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._waiting: deque[Item] = deque()
        self._weight = 0
        self._first: tuple[Item, ...] | None = None
        self.dropped = 0
        self.urgent = threading.Event()

    @property
    def waiting(self) -> int:
        """Items that wait."""
        return len(self._waiting)

    def put(self, items: Iterable[tuple[Item, bool]]) -> None:
        """Add items, each with whether it cannot wait."""
        hurry = False
        with self._lock:
            for item, urgent in items:
                hurry = hurry or urgent
                self._waiting.append(item)
                self._weight += _weight(item)
            if self._weight > self._most:
                self._drop()
        if hurry:
            self.urgent.set()

    def introduce(self, items: Sequence[Item]) -> None:
        """Another leader: what it must know goes before all that waits, and stands for what led to it."""
        with self._lock:
            self._first = tuple(items)
            self._waiting = deque(item for item in self._waiting if not isinstance(item, _STATED))
            self._weight = sum(map(_weight, self._waiting))
        self.urgent.set()

    def clear(self) -> None:
        """This agent decides itself: there is nobody to tell."""
        with self._lock:
            self._waiting.clear()
            self._weight, self._first = 0, None

    def next(self) -> Portion:
        """What goes next; it stays here until ``done``."""
        self.urgent.clear()
        with self._lock:
            if self._first is not None:
                return Portion(self._first[:MOST_ITEMS], True)
            return Portion(tuple(_first_of(self._waiting)), False)

    def lose(self, portion: Portion) -> None:
        """Nobody will ever take it: let it go, and count it."""
        self.dropped += len(portion.items)
        self.done(portion)

    def done(self, portion: Portion) -> None:
        """It was taken: let it go, where it still is what goes first."""
        with self._lock:
            if portion.introduces:
                if self._first is not None and self._first[:MOST_ITEMS] == portion.items:
                    self._first = None
                return
            gone = set(map(id, portion.items))  # by themselves: some may have been dropped meanwhile
            while self._waiting and id(self._waiting[0]) in gone:
                self._weight -= _weight(self._waiting.popleft())

    def _drop(self) -> None:
        """Records go, oldest first, until there is room; then whatever is oldest."""
        kept: deque[Item] = deque()
        while self._waiting and self._weight > self._most:
            item = self._waiting.popleft()
            if isinstance(item, Record):
                self._weight -= _weight(item)
                self.dropped += 1
            else:
                kept.append(item)
        self._waiting.extendleft(reversed(kept))
        while self._weight > self._most:
            self._weight -= _weight(self._waiting.popleft())
            self.dropped += 1


def _first_of(items: Iterable[Item]) -> Iterator[Item]:
    """As many as one parcel bears, by weight: expert counts of a large model are tens of kilobytes each."""
    weight = 0
    for item in items:
        weight += _weight(item)
        if weight > MOST_ITEMS:
            return
        yield item


def _weight(item: Item) -> int:
    load = item.load if isinstance(item, Record) else None
    return 1 + len(load.counts) // _LOAD if load is not None else 1
