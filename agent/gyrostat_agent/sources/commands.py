"""Commands that people gave through the command line: one file each in ``agent/commands``, mode 0700."""

import contextlib
import json
import os
import time

from gyrostat.wire import RightsError, RunDirectory
from gyrostat.wire.rights import check_folder, read_trusted
from gyrostat_rules.inputs import Command, Verb

_ALLOWED = (Verb.APPROVE, Verb.DENY, Verb.PAUSE, Verb.RESUME, Verb.TRUST, Verb.ROLLBACK, Verb.TAG,
            Verb.ARM, Verb.DISARM, Verb.SILENCE, Verb.UNSILENCE)  # fmt: skip
_LIMIT = 64 << 10


class CommandFiles:
    """Reads commands in the order given; each is deleted once the journal has it."""

    def __init__(self, run: RunDirectory) -> None:
        self._folder = os.path.join(run.agent, "commands")

    def drain(self, at: float) -> list[tuple[str, Command]]:
        """``(file, command)`` of what was given; a file that is no command is removed."""
        found: list[tuple[str, Command]] = []
        with contextlib.suppress(OSError):
            check_folder(self._folder)
            for name in sorted(n for n in os.listdir(self._folder) if n.endswith(".json")):
                try:
                    command = _read(os.path.join(self._folder, name), at)
                except OSError:  # it cannot be read now; a person's word is not thrown away for that
                    continue
                if command is None:
                    self.done(name)
                else:
                    found.append((name, command))
        return found

    def done(self, name: str) -> None:
        """The journal has it: delete the file."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, name))


def give(run: RunDirectory, verb: str, arguments: dict[str, str]) -> str:
    """Lay a command before the agent; returns the file. Raises OSError where the folder is not ours."""
    folder = os.path.join(run.agent, "commands")
    name = f"{time.time_ns():020d}-{os.getpid()}"
    draft = os.path.join(folder, f".{name}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        json.dump({"verb": verb, "arguments": arguments}, out)
    path = os.path.join(folder, f"{name}.json")
    os.rename(draft, path)
    return path


def _read(path: str, at: float) -> Command | None:
    try:
        raw = json.loads(read_trusted(path, _LIMIT))
        verb, arguments = raw["verb"], raw["arguments"]
        words = {str(k): str(v) for k, v in arguments.items()}
    except (RightsError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Command(at, verb, words) if verb in _ALLOWED else None
