"""The notice: where an agent takes words over HTTP and which token file it looks at, for whoever asks on its machine.

It is no secret and no promise: it says what the last agent of the run said. Read with distrust.
"""

import contextlib
import json
import os
from typing import NamedTuple

from gyrostat.wire import RunDirectory
from gyrostat.wire.rights import read_trusted

_LIMIT = 64 << 10


class Notice(NamedTuple):
    """``address`` is host and port, '' where no words are taken over HTTP; ``token_file`` a path."""

    address: str = ""
    token_file: str = ""


def put(run: RunDirectory, notice: Notice) -> None:
    """Write ``agent/control.json``. Where it cannot be written, so be it: the agent has said the same on stderr."""
    path = _path(run)
    with contextlib.suppress(OSError):
        with open(f"{path}.draft", "w", encoding="utf-8", opener=_ours) as out:
            json.dump(notice._asdict(), out)
        os.replace(f"{path}.draft", path)


def find(run: RunDirectory) -> Notice:
    """What the last agent said; empty where there is nothing that can be believed."""
    try:
        said = json.loads(read_trusted(_path(run), _LIMIT))
        address, token_file = said["address"], said["token_file"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return Notice()
    well = isinstance(address, str) and isinstance(token_file, str)
    return Notice(address, token_file) if well else Notice()


def _path(run: RunDirectory) -> str:
    return os.path.join(run.agent, "control.json")


def _ours(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
