"""What lies below an archive: parts that its index names, and what earlier or lost uploads left there.

Once there is an index, no upload under that name can win any more, so what it does not name is of no use to anybody.
Called by ``upload``.
"""

from collections.abc import Iterator

from gyrostat_agent.archive import store as objects
from gyrostat_agent.archive.errors import StoreError
from gyrostat_agent.archive.index import INDEX, Index, key_of, span
from gyrostat_agent.archive.store import Store

_AT_ONCE = 1000  # keys held and deleted together


def missing(store: Store, base: str, index: Index) -> int:
    """How many parts are not there in their size; raises StoreError."""
    named = sum(len(file.parts) for file in index.files)
    return named - sum(1 for key, size in objects.sizes(store, base) if _is_part(index, base, key, size))


def tidied(store: Store, base: str, index: Index) -> str:
    """Delete what the index does not name; why that could not be done, or ''. It fails nothing: it only costs room."""
    try:
        while some := _some(objects.sizes(store, base), index, base):
            objects.delete(store, some)
    except StoreError as error:
        return str(error)
    return ""


def _some(found: Iterator[tuple[str, int]], index: Index, base: str) -> list[str]:
    keys = list[str]()
    for key, size in found:
        if key != base + INDEX and not _is_part(index, base, key, size):
            keys.append(key)
        if len(keys) == _AT_ONCE:
            break
    return keys


def _is_part(index: Index, base: str, key: str, size: int) -> bool:
    file, _, rest = key.removeprefix(base).partition("/")
    part, _, digest = rest.partition("-")
    if not (file.isdecimal() and part.isdecimal() and int(file) < len(index.files)):
        return False
    said = index.files[int(file)]
    at = int(part)
    if at >= len(said.parts) or key != key_of(base, int(file), at, digest):
        return False
    return said.parts[at] == digest and size == span(said.bytes, at, index.part_bytes)
