"""Store: the few things that are asked of an object storage, by whatever client, with errors in sentences.

S3, GCS, Azure and a shared disk (``file:///``) are one client's matter: credentials, regions, proxies and retries are
its own, from the environment or the machine's role, and never pass through here. A part comes and goes as a whole;
at most so many bytes of an object are taken as were asked for. Called by the other modules of this package.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore, from_url

from gyrostat.wire.fields import clean
from gyrostat_agent.archive.errors import StoreError
from gyrostat_agent.archive.faults import sentence
from gyrostat_agent.errors import SetupError

if TYPE_CHECKING:  # the client has it for types alone
    from obstore import UpdateVersion

_SCHEMES = ("s3", "gs", "az", "abfs", "abfss", "file")
_EXAMPLE = "write it as s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///shared/disk"
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "specified bucket does not exist")  # no object, for another reason
_RAISED = (BaseError, OSError, NotImplementedError, ValueError)


class Store(NamedTuple):
    """A place in an object storage: as a person names it, and the client that reaches it."""

    url: str
    client: ObjectStore


class Body(NamedTuple):
    """An object that was read, and what tells this writing of it from a later one."""

    data: bytes
    e_tag: str
    version: str


def opened(url: str, make: bool = False) -> Store:
    """The place that ``url`` names; nothing is asked of it yet. A folder of a disk is made where ``make`` says so.

    Raises SetupError where it cannot be such a place, without showing what may be a secret.
    """
    found = urlsplit(url)
    if found.scheme not in _SCHEMES:
        raise SetupError(f"{clean(url.partition('?')[0].rpartition('@')[2])[:200]}: no object storage; {_EXAMPLE}")
    if "@" in found.netloc or found.query or found.fragment:
        raise SetupError(
            "the URL of an archive holds no user, password, key or ?query, for other users see a command's "
            "words; credentials come from the environment or the machine's role"
        )
    try:
        client = from_url(url, mkdir=make) if found.scheme == "file" else from_url(url)
    except _RAISED as error:
        raise SetupError(f"{clean(url)}: {sentence(error)}; {_EXAMPLE}") from None
    return Store(url.rstrip("/"), client)


def put(store: Store, key: str, body: bytes, storage_class: str = "") -> None:
    """Write an object whole, over what may be there; raises StoreError."""
    with _told(store, f"{key} could not be written"):
        if storage_class:
            obstore.put(store.client, key, body, use_multipart=False, attributes={"Storage-Class": storage_class})
        else:
            obstore.put(store.client, key, body, use_multipart=False)


def create(store: Store, key: str, body: bytes) -> bool:
    """Write an object where there is none; False where there is one. Raises StoreError."""
    with _told(store, f"{key} could not be written"):
        try:
            obstore.put(store.client, key, body, mode="create")
        except AlreadyExistsError:
            return False
        return True


def replace(store: Store, key: str, body: bytes, over: Body) -> bool:
    """Write an object over the one that was read as ``over``; False where it is another by now. Raises StoreError."""
    same: UpdateVersion = {"e_tag": over.e_tag}
    if over.version:
        same["version"] = over.version
    with _told(store, f"{key} could not be changed"):
        try:
            obstore.put(store.client, key, body, mode=same)
        except PreconditionError:
            return False
        return True


def read(store: Store, key: str, limit: int) -> Body | None:
    """An object of at most ``limit`` bytes; None where there is none. Raises StoreError."""
    with _told(store, f"{key} could not be read"):
        try:
            found = obstore.get(store.client, key)
        except FileNotFoundError as error:
            if any(mark in str(error) for mark in _NO_BUCKET):
                raise
            return None
        size = found.meta["size"]
        if size > limit:
            raise StoreError(f"{store.url}: {clean(key)} has {size} bytes; at most {limit} are read")
        return Body(bytes(found.bytes()), found.meta["e_tag"] or "", found.meta["version"] or "")


def part(store: Store, key: str, size: int) -> memoryview | None:
    """The first ``size`` bytes of an object, or the fewer that it has; None where there is none. Raises StoreError."""
    with _told(store, f"{key} could not be read"):
        try:
            return memoryview(obstore.get_range(store.client, key, start=0, length=size))  # no second copy
        except FileNotFoundError:
            return None


def sizes(store: Store, below: str) -> Iterator[tuple[str, int]]:
    """Key and size of every object below a key, a thousand at a time; raises StoreError."""
    with _told(store, "it could not be listed"):
        for some in obstore.list(store.client, below.rstrip("/") or None):
            yield from ((one["path"], one["size"]) for one in some)


def folders(store: Store) -> list[str]:
    """The names right below the store's place that have something below them; raises StoreError."""
    with _told(store, "it could not be listed"):
        return sorted(path.rpartition("/")[2] for path in obstore.list_with_delimiter(store.client)["common_prefixes"])


def delete(store: Store, keys: Iterable[str]) -> None:
    """Delete objects, whether or not they are there; raises StoreError."""
    with _told(store, "what is left over could not be deleted"):
        obstore.delete(store.client, list(keys))


@contextmanager
def _told(store: Store, what: str) -> Iterator[None]:
    try:
        yield
    except _RAISED as error:
        raise StoreError(f"{clean(store.url)}: {clean(what)}: {sentence(error)}") from None
