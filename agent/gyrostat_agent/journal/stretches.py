"""Stretches: what of a journal can be fed again, and from where, once some of its inputs have been let go."""

from typing import NamedTuple

from gyrostat_agent.journal.letgo import stretches as let_go
from gyrostat_agent.journal.store import Journal


class Stretch(NamedTuple):
    """Turns behind ``after`` up to ``last``, to be fed to the engine of ``state``; a fresh one where that is None."""

    after: int
    state: bytes | None
    last: int


def stretches(journal: Journal) -> list[Stretch]:
    """All of them, oldest first. Turns in none can be read, and verified, but not fed again."""
    first, head = journal.origin[0] + 1, int(journal.head().partition(":")[0])
    found: list[Stretch] = []
    for gone_first, gone_last in [*let_go(journal.gone()), (head + 1, head + 1)]:
        last = min(gone_first - 1, head)
        if first <= last and (each := _stretch(journal, first, last)):
            found.append(each)
        first = max(first, gone_last + 1)
    return found


def _stretch(journal: Journal, first: int, last: int) -> Stretch | None:
    if first == 1:
        return Stretch(0, None, last)
    begin = journal.snapshot_at(first - 1, last - 1)
    return Stretch(*begin, last) if begin else None
