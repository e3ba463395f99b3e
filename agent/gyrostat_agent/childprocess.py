"""A child process: started without a shell, reaped, its end put in words and passed on to one's own parent.

Called by the supervisor, for the trainer and for the agent. ``posix_spawn`` rather than ``subprocess``: the child
keeps every descriptor, its process group and its terminal, and whether it could be started is known at once.
Does not promise anything about processes that the child left behind.
"""

import contextlib
import errno
import os
import resource
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

NOT_FOUND, NOT_RUNNABLE = 127, 126  # as shells leave
_PYTHONS_OWN = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by this interpreter, which a child must not inherit
_DUMPED = 128  # what shells add to a signal's number
Action: TypeAlias = tuple[int, int, str, int, int] | tuple[int, int, int]  # as posix_spawn takes them


class StartError(Exception):
    """A command that cannot be started, in a sentence.

    ``status`` is what a shell would leave with; ``passing`` is true where it may work later (no memory, too many
    processes).
    """

    def __init__(self, text: str, status: int, passing: bool) -> None:
        super().__init__(text)
        self.status = status
        self.passing = passing


def start(
    command: Sequence[str], environment: Mapping[str, str], mask: frozenset[int], *, apart: bool = False,
    actions: Sequence[Action] = (), setsid: bool = False,
) -> int:  # fmt: skip
    """PID of ``command``, found on the PATH, with ``mask`` as its blocked signals; raises StartError.

    ``apart`` gives it a session of its own, an empty stdin, and our stderr as its stdout: a Ctrl-C or a closed
    terminal does not reach it, and it neither reads nor writes what is meant for the trainer. ``actions`` are done to
    its descriptors instead; ``setsid`` gives it a session alone.
    """
    try:
        return os.posix_spawnp(
            command[0],
            tuple(command),
            environment,
            file_actions=_detached() if apart else actions,
            setsid=apart or setsid,
            setsigmask=mask,
            setsigdef=_PYTHONS_OWN,
        )
    except OSError as error:
        raise _start_error(command[0], error) from None


def reaped() -> Iterator[tuple[int, int]]:
    """PID and status (exit code, or minus the signal's number) of each child that has ended; waits for none.

    Takes orphans too: as process 1 of a container, nobody else would.
    """
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def in_words(status: int) -> str:
    """``exit 1`` or ``signal 9 (SIGKILL)``."""
    if status >= 0:
        return f"exit {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"


def leave_as(status: int) -> int:
    """The status to leave with; where the child died by a signal, die by the same one, so that the parent sees it.

    Returns 128 + N only where signal N does not end this process: it is the first one of its container.
    """
    if status >= 0:
        return status
    number = -status
    # Our core would be written over the trainer's, which is the one that somebody needs.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with contextlib.suppress(OSError, ValueError):  # SIGKILL has no other disposition
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError, ValueError):
        os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    return _DUMPED + number


def _detached() -> list[Action]:
    actions: list[Action] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    if sys.stderr is not None:
        return [*actions, (os.POSIX_SPAWN_DUP2, 2, 1)]
    # Started with stderr closed: descriptor 2 may be anything by now, a record file even.
    return [*actions, *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2))]


def _start_error(name: str, error: OSError) -> StartError:
    status = NOT_FOUND if error.errno == errno.ENOENT else NOT_RUNNABLE
    passing = error.errno in (errno.EAGAIN, errno.ENOMEM)
    return StartError(f"cannot start {name!r}: {_advice(name, error)}", status, passing)


def _advice(name: str, error: OSError) -> str:
    if error.errno == errno.ENOENT and os.path.dirname(name) and os.path.exists(name):
        return "the interpreter that its first line names does not exist; mend that line"
    advice = {
        errno.ENOENT: "not found; give a program on the PATH, or the path of one",
        errno.EACCES: "not an executable file; chmod +x it, or put its interpreter before it",
        errno.ENOEXEC: "neither a program for this machine nor a script with a #! line; put its interpreter before it",
    }
    return advice.get(error.errno or 0, os.strerror(error.errno or 0))
