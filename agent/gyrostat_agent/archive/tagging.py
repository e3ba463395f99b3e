"""Tags of an archive that is there: they may be added to, where nobody else changes the index meanwhile."""

from gyrostat_agent.archive import store as objects
from gyrostat_agent.archive.errors import StoreError
from gyrostat_agent.archive.index import INDEX, Index, encode, fetched
from gyrostat_agent.archive.store import Store

_TRIES = 5


def tagged(store: Store, base: str, tags: tuple[str, ...]) -> Index:
    """The index below ``base``, with ``tags`` added to its own; raises StoreError, DamagedError."""
    for _ in range(_TRIES):
        there = fetched(store, base)
        if there is None:
            break
        index, body = there
        if set(tags) <= set(index.tags):
            return index
        more = index._replace(tags=(*index.tags, *(tag for tag in dict.fromkeys(tags) if tag not in index.tags)))
        if objects.replace(store, base + INDEX, encode(more), body):
            return more
    raise StoreError(f"{store.url}: {base}{INDEX} is being changed by others; nothing was tagged")
