"""Upload: a checkpoint's folder becomes an archive, or goes on becoming one.

A part that lies there under its place, digest and size is not sent again, whoever sent it. The index comes last, where
there is none: of two uploads under one name one wins, and the other says so. What changes meanwhile is refused. Called
by ``gyrostat checkpoints archive``.
"""

import os
import re
import time
from functools import partial
from typing import NamedTuple

import xxhash

from gyrostat.wire.fields import clean
from gyrostat_agent.archive import store as objects
from gyrostat_agent.archive.errors import ArchiveError, DamagedError, StoreError
from gyrostat_agent.archive.folder import Source, changed, listing, parts
from gyrostat_agent.archive.index import INDEX, PART_BYTES, File, Index, encode, fetched, key_of, tag
from gyrostat_agent.archive.lanes import Lanes
from gyrostat_agent.archive.leftovers import missing, tidied
from gyrostat_agent.archive.origin import Origin, origin
from gyrostat_agent.archive.pace import Pace
from gyrostat_agent.archive.paths import plain
from gyrostat_agent.archive.progress import Progress
from gyrostat_agent.archive.store import Store
from gyrostat_agent.archive.tagging import tagged
from gyrostat_agent.checkpoints.reference import DIGEST, CheckpointError, opened_folder
from gyrostat_agent.errors import SetupError

_CLASS = re.compile(r"[A-Za-z_]{0,40}")
_RUN = 200  # characters of a run's name


class Labels(NamedTuple):
    """What a person says of an archive."""

    run: str = ""
    tags: tuple[str, ...] = ()
    storage_class: str = ""  # of the parts; the index stays where it can be read at once


def labels(run: str, tags: tuple[str, ...], storage_class: str) -> Labels:
    """What a person says, checked; raises SetupError."""
    try:
        for word in tags:
            tag(word)
    except ValueError as error:
        raise SetupError(f"--tag: {error}") from None
    if not _CLASS.fullmatch(storage_class):
        raise SetupError(f"--storage-class {clean(storage_class)[:40]}: write it as your store does, e.g. STANDARD_IA")
    return Labels(clean(run)[:_RUN], tuple(dict.fromkeys(tags)), storage_class)


class Archived(NamedTuple):
    """What came of it. ``state`` is "archived", or "there" where the same had been archived before; bytes ``sent``.

    ``note`` says what is left over in the store, or is ''.
    """

    url: str
    state: str
    archive: Index
    sent: int
    note: str


class _Way(NamedTuple):
    """Where parts go, and by what."""

    store: Store
    base: str
    storage_class: str
    lanes: Lanes
    pace: Pace
    progress: Progress


def archive(path: str, store: Store, labels: Labels, pace: Pace, progress: Progress) -> Archived:
    """Archive the folder at ``path`` under its own name; raises SetupError, ArchiveError."""
    where = os.path.abspath(path)
    name = _name(where)
    if not os.path.isdir(where):
        raise SetupError(f"{path}: there is no such folder; name the folder of one checkpoint")
    try:
        with opened_folder(where) as folder:
            return _archived(folder, name, store, labels, pace, progress)
    except CheckpointError as error:
        raise ArchiveError(f"{where} was not archived: {error}") from None
    except StoreError as error:
        raise StoreError(f"{error}. What was sent stays there; the same command goes on from it") from None
    except ArchiveError as error:
        raise type(error)(f"{where} was not archived: {error}") from None


def _name(where: str) -> str:
    try:
        return plain(os.path.basename(where))
    except ValueError as error:
        raise SetupError(f"{error}: an archive bears its folder's name; rename the folder") from None


def _archived(
    folder: int, name: str, store: Store, labels: Labels, pace: Pace, progress: Progress
) -> Archived:  # fmt: skip
    sources, base, url = listing(folder), f"{name}/", f"{store.url}/{name}"
    found = origin(name, folder, sources)
    progress.begin(sum(source.stamp.bytes for source in sources))
    there = fetched(store, base)
    with Lanes() as lanes:
        way = None if there else _Way(store, base, labels.storage_class, lanes, pace, progress)
        done = _files(folder, sources, found, way, progress)
    if listing(folder) != sources:
        raise changed(name)
    files = tuple(file for file, _ in done)
    index = Index(
        name, labels.run, found.step, found.format, labels.tags, labels.storage_class, time.time(), PART_BYTES, files
    )
    if there is None and _created(store, base, index):
        return Archived(url, "archived", index, sum(sent for _, sent in done), tidied(store, base, index))
    return _lost(store, base, index, sum(sent for _, sent in done))


def _files(
    folder: int, sources: list[Source], found: Origin, way: _Way | None, progress: Progress
) -> list[tuple[File, int]]:  # fmt: skip
    """Each file and how many of its bytes were sent; without a way they are read only."""
    begun = way is not None and next(objects.sizes(way.store, way.base), None) is not None
    done = []
    for number, source in enumerate(sources):
        done.append(_file(folder, number, source, way, begun, progress))
        said, read = found.files.get(source.path), done[-1][0]
        if said is not None and (said.bytes, said.digest) != (read.bytes, read.digest):
            raise DamagedError(f"{source.path} is not what the checkpoint's manifest says; it is damaged")
    if absent := found.files.keys() - {source.path for source in sources}:
        raise DamagedError(f"{min(absent)} is missing, which the checkpoint's manifest names")
    return done


def _file(
    folder: int, number: int, source: Source, way: _Way | None, begun: bool, progress: Progress
) -> tuple[File, int]:  # fmt: skip
    there = dict(objects.sizes(way.store, f"{way.base}{number:05d}")) if way and begun else {}
    digest, names, sent = xxhash.xxh3_128(), list[str](), 0
    for part in parts(folder, source):
        digest.update(part)
        names.append(xxhash.xxh3_128_hexdigest(part))
        key = key_of(way.base if way else "", number, len(names) - 1, names[-1])
        if way and there.get(key) != len(part):
            way.pace.take(len(part))
            way.lanes.send(partial(objects.put, way.store, key, part, way.storage_class))
            sent += len(part)
        progress.advance(len(part))
    return File(source.path, source.stamp.bytes, DIGEST + digest.hexdigest(), tuple(names)), sent


def _created(store: Store, base: str, index: Index) -> bool:
    """Write the index where there is none and every part is there; False where another was first."""
    lacks = missing(store, base, index)
    if lacks and fetched(store, base):
        return False  # whoever was first has tidied ours away
    if lacks:
        raise StoreError(f"{store.url}: {lacks} parts of {index.name} are not there although they were sent")
    return objects.create(store, base + INDEX, encode(index))


def _lost(store: Store, base: str, ours: Index, sent: int) -> Archived:
    """There is an index already: the same is as good as ours, another is not touched."""
    url = f"{store.url}/{ours.name}"
    there = fetched(store, base)
    if there is None:
        raise StoreError(f"{url}: its index came and went; is somebody deleting it?")
    if there[0].digest != ours.digest:
        tidied(store, base, there[0])
        raise ArchiveError(
            f"{url} is there already, with other contents ({there[0].digest}, not {ours.digest}); it was left as it "
            "is: archive this one under another prefix, one a run"
        )
    index = tagged(store, base, ours.tags)
    return Archived(url, "there", index, sent, tidied(store, base, index))
