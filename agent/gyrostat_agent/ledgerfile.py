"""The ledger's file: ``.gyrostat/ledger.json`` beside the checkpoints, written before what may end the pod."""

import json
import os
from collections.abc import Mapping
from typing import Any

from gyrostat.wire import RightsError
from gyrostat.wire.rights import check_folder, read_trusted
from gyrostat_agent import failpoints
from gyrostat_agent.errors import TemporaryError

_LIMIT = 8 << 20


def path_of(root: str) -> str:
    """Where the ledger of a checkpoint root lies."""
    return os.path.join(root, ".gyrostat", "ledger.json")


def write(root: str, facts: Mapping[str, Any], head: str, *, durable: bool = True) -> None:
    """Replace the ledger as a whole; raises TemporaryError: what is not in the ledger must not be done.

    Not ``durable``, it outlives process and pod but not the machine, and costs no sync: enough before an action
    that ends neither, for as long as it takes until the next tick.
    """
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
        os.rename(draft, path_of(root))
    except OSError as error:
        raise TemporaryError(f"{folder}: the ledger cannot be written: {error.strerror or error}") from None
    failpoints.reach("ledger.written")


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
