"""Turns that these tests commit: each says its own number everywhere, so that a mix-up shows."""

from gyrostat.wire import Record
from gyrostat_agent.journal import Journal
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import Batch

_OPEN: list[Journal] = []


def opened(path: str, *, readonly: bool = False) -> Journal:
    """A journal that is closed when the test ends, if not before."""
    _OPEN.append(Journal(path, readonly=readonly))
    return _OPEN[-1]


def close_all() -> None:
    """Close what ``opened`` has opened."""
    while _OPEN:
        _OPEN.pop().close()


def batch(number: int) -> Batch:
    """One record of step ``number``."""
    record = Record(
        "trainer", 0, "0123456789ab", 0, number, number, float(number), {"loss": number / 7, "entropy": 0.5}
    )
    return Batch(float(number), (record,))


def entries(number: int, count: int) -> list[Entry]:
    """``count`` entries, an incident first and alerts behind it."""
    kinds = [EntryKind.INCIDENT, *[EntryKind.ALERT] * count][:count]
    return [
        Entry(f"e{number}.{i}", float(number), number, kind, f"s{number % 2}", "open", "why", {"value": number / 3})
        for i, kind in enumerate(kinds)
    ]


def fill(journal: Journal, turns: int, first: int = 1) -> None:
    """Commit turns ``first``, ``first + 1``, ...; turn n has n % 3 entries and 100 n bytes taken."""
    for number in range(first, first + turns):
        journal.commit(batch(number), entries(number, number % 3), {"a.000": 100 * number, f"b.{number % 2}": number})
