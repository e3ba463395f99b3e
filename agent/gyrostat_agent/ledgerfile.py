"""The ledger's file: ``.gyrostat/ledger.json`` beside the checkpoints, written before what may end the pod."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gyrostat.wire import RightsError
from gyrostat.wire.rights import check_folder, read_trusted
from gyrostat_agent import failpoints
from gyrostat_agent.errors import TemporaryError

_LIMIT = 8 << 20
_DEEPEST = 40  # lists and mappings within each other; an incident's evidence has six


def path_of(root: str) -> str:
    """Where the ledger of a checkpoint root lies."""
    return os.path.join(root, ".gyrostat", "ledger.json")


class Mark(NamedTuple):
    """What tells one writing of a ledger from another."""

    inode: int
    mtime_ns: int


def write(
    root: str, facts: Mapping[str, Any], head: str, *, durable: bool = True, last: Mark | None = None,
    heads: Sequence[str] = (),
) -> Mark:  # fmt: skip
    """Replace the ledger as a whole; raises TemporaryError: what is not in the ledger must not be done.

    Not ``durable``, it outlives process and pod but not the machine, and costs no sync: enough before an action
    that ends neither, for as long as it takes until the next tick. ``last`` is of the last writing: where another
    ledger is there now, somebody else writes it, and nothing of theirs is overwritten. ``heads`` are earlier ones.
    """
    _refuse_another(root, last)
    folder = os.path.join(root, ".gyrostat")
    try:
        try:
            check_folder(folder)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700)
        draft = os.path.join(folder, ".ledger.draft")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb", buffering=0) as out:
            noted = {"journal_head": head, **({"journal_heads": list(heads)} if heads else {})}
            out.write(json.dumps({**facts, **noted}, allow_nan=False).encode())
            if durable:
                os.fsync(out.fileno())
            written = os.fstat(out.fileno())
        _refuse_another(root, last)  # a disk that hung may have been waited for; somebody else may write by now
        os.rename(draft, path_of(root))
    except OSError as error:
        raise TemporaryError(f"{folder}: the ledger cannot be written: {error.strerror or error}") from None
    failpoints.reach("ledger.written")
    return Mark(written.st_ino, written.st_mtime_ns)


def _refuse_another(root: str, last: Mark | None) -> None:
    """Raise TemporaryError where the ledger that lies there is not the one that ``last`` marks."""
    if last is not None and mark(root) not in (None, last):
        raise TemporaryError(
            f"{path_of(root)} is not as this agent wrote it: another agent is at work in this folder (two runs, or a "
            "pod that lives on?). End one of them, or give each run a folder of its own, and start this agent again"
        )


def mark(root: str) -> Mark | None:
    """Of the ledger that lies there now, None where there is none."""
    try:
        found = os.lstat(path_of(root))
    except OSError:
        return None
    return Mark(found.st_ino, found.st_mtime_ns)


def read(root: str) -> tuple[dict[str, Any] | None, str]:
    """``(facts, "")``, ``(None, "")`` where there is none, ``(None, why)`` where it cannot be believed."""
    try:
        check_folder(os.path.dirname(path_of(root)))
        raw = parsed(read_trusted(path_of(root), _LIMIT))
    except FileNotFoundError:
        return None, ""
    except (OSError, RightsError, ValueError) as error:
        return None, f"{path_of(root)} cannot be read: {error}"
    except RecursionError:
        return None, f"{path_of(root)} cannot be read: it is nested too deep"
    return (raw, "") if isinstance(raw, dict) else (None, f"{path_of(root)} is no ledger")


def head_of(written: Mapping[str, Any]) -> str:
    """The head that the journal had when this ledger was written, '' where it does not say."""
    head = written.get("journal_head")
    return head if isinstance(head, str) else ""


def heads_of(written: Mapping[str, Any]) -> list[str]:
    """Every head of the journal that this ledger notes, the newest first; turn 0 is in every journal, and none."""
    earlier = written.get("journal_heads")
    found = [head_of(written), *reversed(earlier if isinstance(earlier, list) else [])]
    return list(dict.fromkeys(h for h in found if isinstance(h, str) and h and not h.startswith("0:")))


def parsed(data: bytes) -> Any:
    """Its JSON; raises ValueError or RecursionError where the journal could not take it in as it is.

    A ledger goes into the journal before it is judged: what cannot be written there would end the agent at every start.
    """
    raw = json.loads(data, parse_constant=_odd)
    _check(raw, 0)
    json.dumps(raw, ensure_ascii=False, allow_nan=False).encode()  # half a character, a number beyond all floats
    return raw


def _odd(word: str) -> float:
    raise ValueError(f"{word} is no number that this agent writes")


def _check(raw: Any, deep: int) -> None:
    if deep > _DEEPEST:
        raise ValueError("it is nested too deep")
    for one in raw.values() if isinstance(raw, dict) else raw if isinstance(raw, list) else ():
        _check(one, deep + 1)
