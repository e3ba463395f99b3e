"""The supervisor and signals: passed on once, job control, terminals. Real processes and real signals."""

import os
import pty
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from supervised_runs import PAUSE, Said, Starter, environment, python, starting, state_of, supervise, until


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts supervisors."""
    yield from starting(tmp_path)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_signals_reach_the_trainer(start: Starter, name: str) -> None:
    """What the supervisor is sent ends the trainer, the end was asked for, and no verdict is awaited."""
    run = start(python(f"print('up', flush=True); {PAUSE}"))
    assert run.line() == "up"
    run.process.send_signal(signal.Signals[name])
    assert run.end()[0] == -signal.Signals[name]
    assert [(e.status, e.asked) for e in run.exits()] == [(-signal.Signals[name], True)]


def test_a_signal_that_the_trainer_outlives_excuses_no_later_death(start: Starter) -> None:
    """SIGUSR1, "save now" to many trainers, is no wish to end: a death after it is mended."""
    program = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {10}); print('up', flush=True);"
    then = "signal.sigwait({10}); print('saved', flush=True); signal.raise_signal(9)"
    run = start(python(program + then), mend_within=0.1)
    assert run.line() == "up"
    run.process.send_signal(signal.SIGUSR1)
    assert run.line() == "saved"
    assert run.end()[0] == -9
    assert [e.asked for e in run.exits()] == [False]


def test_what_is_ignored_stays_ignored(start: Starter) -> None:
    """Under nohup a hangup means nothing, neither to the trainer nor for what its later death is taken to be."""
    program = "import signal, sys; print(signal.getsignal(1) == signal.SIG_IGN, flush=True); sys.exit(len(input()))"
    run = start(python(program), mode="observe", before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert run.line() == "True"
    run.process.send_signal(signal.SIGHUP)
    run.process.communicate("four", timeout=20.0)
    assert [(e.status, e.asked) for e in run.exits()] == [(4, False)]


def test_stop_and_go_on(start: Starter) -> None:
    """A stop stops both, and a go-on wakes both."""
    run = start(python(f"import os; print(os.getpid(), flush=True); {PAUSE}"), before=os.setpgrp)
    both = int(run.line()), run.process.pid
    run.process.send_signal(signal.SIGTSTP)
    until(lambda: [state_of(pid) for pid in both] == ["T", "T"])
    run.process.send_signal(signal.SIGCONT)
    until(lambda: [state_of(pid) for pid in both] == ["S", "S"])


@pytest.mark.parametrize(
    "key, number", [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)], ids=["ctrl-c", "ctrl-\\"]
)
def test_the_terminals_keys_reach_the_trainer_once(tmp_path: Path, key: bytes, number: int) -> None:
    """Ctrl-C reaches the trainer through its process group; passing it on as well would interrupt its cleaning up."""
    once = f"{{{number:d}}}"
    program = f"import signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, {once}); print('up', flush=True);"
    twice = f"signal.sigwait({once}); sys.exit(9 if signal.sigtimedwait({once}, 0.3) else 0)"
    pid, terminal = in_terminal(tmp_path / "run", python(program + twice))
    read_until(terminal, b"up")
    os.write(terminal, key)
    assert wait(pid) == 0
    assert [e.asked for e in Said(tmp_path / "run").exits()] == [True]
    os.close(terminal)


def test_a_terminal_that_closes_is_told_to_the_trainer(tmp_path: Path) -> None:
    """The kernel tells the leader of a session alone; the trainer learns it from the supervisor."""
    pid, terminal = in_terminal(tmp_path / "run", python(f"print('up', flush=True); {PAUSE}"))
    read_until(terminal, b"up")
    os.close(terminal)
    assert wait(pid) == -signal.SIGHUP


def in_terminal(path: Path, command: list[str]) -> tuple[int, int]:
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, supervise(path, command), environment())
    return pid, terminal


def read_until(terminal: int, word: bytes) -> None:
    seen = b""
    while word not in seen:
        seen += os.read(terminal, 1024)


def wait(pid: int) -> int:
    found: list[int] = []

    def ended() -> bool:
        done, status = os.waitpid(pid, os.WNOHANG)
        found.append(os.waitstatus_to_exitcode(status) if done else 0)
        return bool(done)

    until(ended)
    return found[-1]
