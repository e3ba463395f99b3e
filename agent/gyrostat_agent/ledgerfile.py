"""The ledger's file: ``.gyrostat/ledger.json`` beside the checkpoints, written before what may end the pod."""

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat.wire import RightsError
from gyrostat.wire.rights import check_folder, read_trusted
from gyrostat_agent import failpoints
from gyrostat_agent.errors import TemporaryError

_LIMIT = 8 << 20


def path_of(root: str) -> str:
    """Where the ledger of a checkpoint root lies."""
    return os.path.join(root, ".gyrostat", "ledger.json")


class Mark(NamedTuple):
    """What tells one writing of a ledger from another."""

    inode: int
    mtime_ns: int


def write(root: str, facts: Mapping[str, Any], head: str, *, durable: bool = True, last: Mark | None = None) -> Mark:
    """Replace the ledger as a whole; raises TemporaryError: what is not in the ledger must not be done.

    Not ``durable``, it outlives process and pod but not the machine, and costs no sync: enough before an action
    that ends neither, for as long as it takes until the next tick. ``last`` is of the last writing: where another
    ledger is there now, somebody else writes it, and nothing of theirs is overwritten.
    """
    if last is not None and _mark(root) not in (None, last):
        raise TemporaryError(
            f"{path_of(root)} is not as this agent wrote it: another agent is at work in this folder (two runs, or a "
            "pod that lives on?). End one of them, or give each run a folder of its own, and start this agent again"
        )
    folder = os.path.join(root, ".gyrostat")
    try:
        try:
            check_folder(folder)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700)
        draft = os.path.join(folder, ".ledger.draft")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb", buffering=0) as out:
            out.write(json.dumps({**facts, "journal_head": head}, allow_nan=False).encode())
            if durable:
                os.fsync(out.fileno())
            written = os.fstat(out.fileno())
        os.rename(draft, path_of(root))
    except OSError as error:
        raise TemporaryError(f"{folder}: the ledger cannot be written: {error.strerror or error}") from None
    failpoints.reach("ledger.written")
    return Mark(written.st_ino, written.st_mtime_ns)


def _mark(root: str) -> Mark | None:
    try:
        found = os.lstat(path_of(root))
    except OSError:
        return None
    return Mark(found.st_ino, found.st_mtime_ns)


def read(root: str) -> tuple[dict[str, Any] | None, str]:
    """``(facts, "")``, ``(None, "")`` where there is none, ``(None, why)`` where it cannot be believed."""
    try:
        check_folder(os.path.dirname(path_of(root)))
        raw = json.loads(read_trusted(path_of(root), _LIMIT))
    except FileNotFoundError:
        return None, ""
    except (OSError, RightsError, ValueError, RecursionError) as error:
        return None, f"{path_of(root)} cannot be read: {error}"
    return (raw, "") if isinstance(raw, dict) else (None, f"{path_of(root)} is no ledger")
