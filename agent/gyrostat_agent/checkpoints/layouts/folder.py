"""A checkpoint's folder, read with distrust: what is in it and below it, opened without following a link.

Called by the layouts. Whoever can write a checkpoint can put a link, a pipe or a thousand folders into it; nothing
here leaves the folder, waits, or reads more than it was told to.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from gyrostat_agent.checkpoints.reference import CheckpointError, Stamp, mapped, opened, unreadable
from gyrostat_agent.checkpoints.torchzip import Saved, saved

_DEEPEST = 3
_MOST = 100_000
_JSON = 64 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STRANGE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class Listed(NamedTuple):
    """A regular file: bytes, and when it was last written."""

    bytes: int
    mtime_ns: int


def listing(folder: int) -> dict[str, Listed]:
    """The files in ``folder`` and below it, by relative path, in order; raises CheckpointError for what is no file."""
    found: dict[str, Listed] = {}
    _list(folder, "", 0, found)
    return dict(sorted(found.items()))


@contextmanager
def opened_below(folder: int, path: str) -> Iterator[tuple[int, os.stat_result]]:
    """As ``reference.opened``, for a relative path; no folder on the way may be a link. Raises CheckpointError."""
    *above, name = path.split("/")
    with ExitStack() as stack:
        at = folder
        for each in above:
            at = _opened_folder(at, each, path)
            stack.callback(os.close, at)
        yield stack.enter_context(opened(at, name))


def body(folder: int, path: str, most: int = _JSON) -> bytes:
    """All bytes of a small file; raises CheckpointError."""
    with opened_below(folder, path) as (fd, found):
        if found.st_size > most:
            raise CheckpointError(f"{path} has {found.st_size} bytes; at most {most} are read")
        with open(fd, "rb", closefd=False) as file:
            return file.read(most + 1)


def json_object(folder: int, path: str) -> dict[str, Any]:
    """A JSON object; numbers that are not finite are let through, a log may hold one. Raises CheckpointError."""
    try:
        value = json.loads(body(folder, path))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {str(error)[:120]}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} is not a JSON object")
    return value


def torch_file(folder: int, path: str) -> Saved:
    """What torch.save wrote to ``path``; raises CheckpointError, or ValueError and Unreadable as ``torchzip.saved``."""
    with opened_below(folder, path) as (fd, _):
        return saved(mapped(fd))


def written_at(found: Mapping[str, Listed]) -> float:
    """Unix seconds of the newest file; 0.0 where there is none."""
    return max((each.mtime_ns for each in found.values()), default=0) / 1e9


def marked(root: str, name: str, mark: str) -> Stamp | None:
    """The stamp of the file ``mark`` in the folder ``name`` under ``root``; None where it is not there."""
    try:
        found = os.lstat(os.path.join(root, name, mark))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stamp(found.st_mtime_ns, found.st_size, found.st_ino)


def newest(root: str, name: str) -> Stamp | None:
    """The stamp of a folder that has no file that is written last: the newest time directly in it. None if gone."""
    path = os.path.join(root, name)
    try:
        own = os.lstat(path)
        if not stat.S_ISDIR(own.st_mode):
            return None
        inside = [entry.stat(follow_symlinks=False) for entry in os.scandir(path)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stamp(max([own.st_mtime_ns, *(each.st_mtime_ns for each in inside)]), len(inside), own.st_ino)


def tracked_up_to(root: str, tracker: str, matches: Callable[[str], int | None]) -> dict[str, Stamp]:
    """The checkpoints under ``root``, named as ``matches`` says, that are no newer than what the tracker file names.

    All of them where there is none. Raises OSError where the root cannot be listed.
    """
    latest = tracked(root, tracker)
    steps = {each: step for each in folders(root) if (step := matches(each)) is not None}
    stamps = {
        os.path.join(root, each): newest(root, each) for each, step in steps.items() if latest is None or step <= latest
    }
    return {path: stamp for path, stamp in stamps.items() if stamp is not None}


def folders(root: str) -> list[str]:
    """The names in ``root``; none where there is no such folder. Raises OSError where it cannot be listed."""
    try:
        return os.listdir(root)
    except FileNotFoundError:
        return []


def tracked(above: int | str, tracker: str) -> int | None:
    """The step that a tracker file such as ``latest`` names last; None where there is none that can be read.

    ``above`` is the folder it is in, as a path or a descriptor.
    """
    try:
        fd = os.open(above, _FOLDER) if isinstance(above, str) else os.dup(above)
    except OSError:
        return None
    try:
        said = body(fd, tracker, 256).decode("ascii", "replace").strip()
    except CheckpointError:
        return None
    finally:
        os.close(fd)
    match = re.fullmatch(r"(?:global_step)?([0-9]{1,15})", said)
    return int(match[1]) if match else None


def unfinished(folder: int, tracker: str, step: int) -> tuple[str, ...]:
    """A sentence where the tracker file beside ``folder`` names an older step: this one was not finished."""
    try:
        above = os.open("..", _FOLDER, dir_fd=folder)
    except OSError:
        return ()
    try:
        latest = tracked(above, tracker)
    finally:
        os.close(above)
    if latest is None or latest >= step:
        return ()
    return (f"{tracker} beside it names step {latest}: this one is unfinished, or of a stretch that was left",)


def _list(folder: int, prefix: str, depth: int, found: dict[str, Listed]) -> None:
    for name in os.listdir(folder):
        path = prefix + name
        if _STRANGE.search(name):
            raise CheckpointError(f"{path[:80]!a} is not a plain file name")
        what = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(what.st_mode):
            _list_below(folder, name, path, depth, found)
        elif stat.S_ISLNK(what.st_mode):
            raise CheckpointError(f"{path} is a link; a link is not followed")
        elif not stat.S_ISREG(what.st_mode):
            raise CheckpointError(f"{path} is not a regular file")
        else:
            _check_readable(folder, name, path, what.st_uid)
            found[path] = Listed(what.st_size, what.st_mtime_ns)
        if len(found) > _MOST:
            raise CheckpointError(f"it holds more than {_MOST} files")


def _list_below(folder: int, name: str, path: str, depth: int, found: dict[str, Listed]) -> None:
    if depth >= _DEEPEST:
        raise CheckpointError(f"{path}: folders are nested more than {_DEEPEST} deep")
    below = _opened_folder(folder, name, path)
    try:
        _list(below, path + "/", depth + 1, found)
    finally:
        os.close(below)


def _opened_folder(above: int, name: str, path: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError as error:
        raise CheckpointError(f"{path}: {name} cannot be opened as a folder: {error.strerror}") from None


def _check_readable(folder: int, name: str, path: str, owner: int) -> None:
    if not os.access(name, os.R_OK, dir_fd=folder, effective_ids=True):
        raise CheckpointError(f"{path} {unreadable(owner)}")
