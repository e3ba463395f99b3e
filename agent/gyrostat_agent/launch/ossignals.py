"""Signals as the supervisor takes them: held back from the start, taken in turn, passed on once.

Called by the supervisor alone, in the main thread of its process.
"""

import os
import signal
from collections.abc import Iterator

ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
_PASSED_ON = ENDING | {signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP}


def hold() -> tuple[frozenset[int], frozenset[int]]:
    """Block what is to be passed on, to be taken in turn; the set held, and the mask before, for the children.

    What is ignored from the start (nohup) stays so for all of us.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would hide the children's ends
    held = {n for n in _PASSED_ON if signal.getsignal(n) != signal.SIG_IGN} | {signal.SIGCHLD}
    return frozenset(held), frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, held))


def arrivals(held: frozenset[int], seconds: float) -> Iterator[signal.struct_siginfo]:
    """What has come, after sleeping until something does."""
    info = signal.sigtimedwait(held, seconds)
    while info is not None:
        yield info
        info = signal.sigtimedwait(held, 0)


def reached_all(info: signal.struct_siginfo) -> bool:
    """True where the terminal sent it: then the trainer, in the same process group, has it too.

    1. By its code, not by PID 0: a sender outside our PID namespace (``docker stop``) has PID 0 as well.
    2. A terminal that closes tells the leader of its session alone.
    """
    leads = os.getsid(0) == os.getpid()
    return info.si_code > 0 and not (info.si_signo == signal.SIGHUP and leads)


def stop_here() -> None:
    """Stop as the terminal's user asked; goes on behind SIGCONT."""
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTSTP,))
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTSTP,))
