"""Catalogue: which archives lie at a place, and which of them is meant.

Called by ``gyrostat checkpoints archives`` and ``restore``. An index that cannot be believed is listed with the reason
and hides no other.
"""

from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.archive.errors import ArchiveError, DamagedError
from gyrostat_agent.archive.index import Index, fetched
from gyrostat_agent.archive.store import Store, folders

_NAMED = 5


class Listed(NamedTuple):
    """An archive below a place: where its objects begin, and its index, or why there is none to go by."""

    base: str
    archive: Index | None
    why: str = ""
    broken: bool = False  # it ended, and cannot be believed


def listed(store: Store) -> list[Listed]:
    """Every archive right below the place, or the one that is the place itself; raises StoreError."""
    itself = _listed(store, "")
    if itself.archive or itself.why:
        return [itself]
    return [_listed(store, f"{name}/") for name in folders(store)]


def chosen(found: list[Listed], url: str, tag: str | None, step: int | None) -> tuple[str, Index]:
    """Base and index of the archive that is meant: newest with the tag, the one of the step, or the only one.

    Raises ArchiveError, with what there is.
    """
    whole = [(each.base, each.archive) for each in found if each.archive is not None]
    meant = [(base, index) for base, index in whole if _fits(index, tag, step)]
    if tag is not None and meant:
        return max(meant, key=lambda one: one[1].archived_at)
    if len(meant) == 1:
        return meant[0]
    asked = f" with tag {clean(tag)}" if tag is not None else f" of step {step}" if step is not None else ""
    if meant:
        raise ArchiveError(
            f"{clean(url)}: there are {len(meant)} archives{asked}, and nothing was restored; give the URL of one: "
            + _some([f"{url}/{index.name}" for _, index in meant])
        )
    broken = [f"{each.base or url}: {each.why}" for each in found if each.archive is None]
    there = [f"{index.name} ({', '.join(index.tags) or 'no tag'})" for _, index in whole] + broken
    raise ArchiveError(f"{clean(url)}: there is no archive{asked}; there is {_some(there) or 'nothing'}")


def _fits(index: Index, tag: str | None, step: int | None) -> bool:
    return (tag is None or tag in index.tags) and (step is None or step == index.step)


def _listed(store: Store, base: str) -> Listed:
    try:
        there = fetched(store, base)
    except DamagedError as error:
        return Listed(base, None, str(error), broken=True)
    if there is None:
        return Listed(base, None, "an upload that has not ended" if base else "")
    index = there[0]
    if base and index.name != base.rstrip("/"):
        return Listed(base, None, f"its index is that of {index.name}", broken=True)
    return Listed(base, index)


def _some(words: list[str]) -> str:
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more
