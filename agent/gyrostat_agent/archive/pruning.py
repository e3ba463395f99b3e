"""Pruning of archives: which versions nobody keeps, and their removal, the index first.

What is broken, unfinished or of another run is left alone, and said: an upload may be under way there. Called by
``gyrostat checkpoints prune --archives``.
"""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from gyrostat_agent.archive import store as objects
from gyrostat_agent.archive.catalogue import Listed
from gyrostat_agent.archive.index import INDEX, Index
from gyrostat_agent.archive.store import Store
from gyrostat_agent.errors import SetupError

_AT_ONCE = 1000  # keys deleted together


class JudgedArchive(NamedTuple):
    """An archive below a place, whether it stays, and why. ``bytes`` are those of its files."""

    base: str
    bytes: int
    stays: bool
    why: str


def judged(
    found: Sequence[Listed], runs: Set[str], needed: Mapping[str, str], newest: int, older: float, now: float
) -> list[JudgedArchive]:
    """Each archive with a reason; ``needed`` are names that must stay, ``older`` seconds. Raises SetupError.

    ``runs``: the names that this run's archives may bear. So many of the newest of the run stay, whatever they are.
    """
    if any(not each.base for each in found):
        raise SetupError("the URL is that of one archive; give the prefix below which a run's archives lie")
    whole = [each.archive for each in found if each.archive is not None and each.archive.run in runs]
    last = sorted(whole, key=lambda index: (index.step, index.archived_at), reverse=True)[: max(1, newest)]
    names = {index.name for index in last}
    return [_judged(each, runs, needed, names, now - older) for each in found]


def _judged(each: Listed, runs: Set[str], needed: Mapping[str, str], last: set[str], before: float) -> JudgedArchive:
    index = each.archive
    if index is None:
        return JudgedArchive(each.base, 0, True, each.why)
    why = _why_it_stays(index, runs, needed, last, before)
    return JudgedArchive(each.base, index.bytes, bool(why), why or "no tag, and newer ones are archived")


def _why_it_stays(index: Index, runs: Set[str], needed: Mapping[str, str], last: set[str], before: float) -> str:
    if index.run not in runs:
        return f"of another run, {index.run}"
    if index.tags:
        return f"tagged {', '.join(index.tags)}"
    if why := needed.get(index.name):
        return why
    if index.name in last:
        return "one of the newest that are archived"
    return "younger than was asked for" if index.archived_at > before else ""


def remove(store: Store, base: str) -> None:
    """Delete an archive: its index first, so that what is half deleted is none. Raises StoreError."""
    objects.delete(store, [base + INDEX])
    keys = [key for key, _ in objects.sizes(store, base)]
    for start in range(0, len(keys), _AT_ONCE):
        objects.delete(store, keys[start : start + _AT_ONCE])
