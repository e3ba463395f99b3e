"""The supervisor: status, stdio, directives, its agent, with real processes; small programs play the agent."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from supervised_runs import DEADLINE, FIRST_TIME, PAUSE, Starter, python, starting, state_of, until

from gyrostat.wire import Ack, Exit, Hello, Kind, scan


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts supervisors."""
    yield from starting(tmp_path)


# -- exit status and stdio ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1, 7, -2, -9, -11, -13, -15], ids=lambda s: f"status {s}")
def test_the_parent_sees_the_trainers_own_status(start: Starter, status: int) -> None:
    """An exit code or a death by a signal looks to the parent as if the supervisor were not there."""
    program = f"import signal, sys; s = {status}; s in (-2, -13) and signal.signal(-s, signal.SIG_DFL);"
    program += "signal.raise_signal(-s) if s < 0 else sys.exit(s)"
    run = start(python(program), mode="observe")
    assert run.end() == (status, "", "")
    assert [(e.role, e.rank, e.status, e.asked) for e in run.exits()] == [("trainer", 0, status, False)]
    assert run.frames(Kind.BYE)


def test_stdio_is_the_trainers(start: Starter) -> None:
    """What goes in comes out, byte for byte, and nothing is added."""
    run = start(python("import sys; sys.stdout.write(sys.stdin.read()); sys.stderr.write('ü!')"))
    out, err = run.process.communicate("größe\n\n", timeout=DEADLINE)
    assert (run.process.returncode, out, err) == (0, "größe\n\n", "ü!")


def test_environment_and_odd_paths(start: Starter, tmp_path: Path) -> None:
    """The trainer learns its run from the environment, as an absolute path, whatever letters it has."""
    path = tmp_path / "lauf ü 'π'"
    folder = os.path.relpath(path)
    run = start(python("import os; print(*map(os.getenv, ('GYROSTAT_RUN_DIR', 'GYROSTAT_RUN')), sep='|')"),
                path=path, run_dir=folder, run="läuft")  # fmt: skip
    assert run.end() == (0, f"{path}|läuft\n", "")
    assert Hello.decode(run.frames(Kind.HELLO)[-1]).run == "läuft"


def test_a_command_that_is_not_there(start: Starter) -> None:
    """One line says it, the status is the shell's, and no run is begun."""
    run = start(["/no/such/program"])
    status, _, err = run.end()
    assert (status, err.count("\n"), run.path.exists()) == (127, 1, False)
    assert err.startswith("gyrostat: ") and "/no/such/program" in err


# -- directives ---------------------------------------------------------------------------------------


def failing_first(mark: Path, then: str = "print(sys.stdin.read(), end='')") -> list[str]:
    """A trainer that dies by exit 7 in its first life; ``mark`` names the PIDs of its lives."""
    return python(FIRST_TIME.format(str(mark)) + f"sys.exit(7) if first else None; {then}")


def test_restart_runs_the_command_again(start: Starter, tmp_path: Path) -> None:
    """A death is told, a restart is answered with the new PID, and the second life's status is the run's."""
    run = start(failing_first(tmp_path / "lives"))
    until(run.exits)
    ack = run.direct(1, "restart")
    run.process.communicate("still ours", timeout=DEADLINE)
    lives = [int(pid) for pid in (tmp_path / "lives").read_text().split()]
    assert (ack.result, ack.action, dict(ack.detail)) == (Ack.APPLIED, "a-1", {"pid": lives[1]})
    assert run.exits() == [Exit("trainer", 0, lives[0], 7, False), Exit("trainer", 0, lives[1], 0, False)]
    assert run.process.returncode == 0


def test_release_passes_the_exit_on(start: Starter) -> None:
    """Told that no restart follows, it leaves with the trainer's status at once."""
    run = start(python("import sys; sys.exit(7)"))
    until(run.exits)
    assert run.direct(1, "release").result == Ack.APPLIED
    status, _, err = run.end()
    assert status == 7 and "released" in err


def test_a_living_trainer_is_ended_before_its_restart(start: Starter, tmp_path: Path) -> None:
    """A hung or poisoned trainer gets SIGTERM; its end was asked for and the command runs again."""
    run = start(python(f"{FIRST_TIME.format(str(tmp_path / 'lives'))} print('up', flush=True)\nif first: {PAUSE}"))
    assert run.line() == "up"
    assert run.direct(1, "release").reason.startswith("RestartError: the trainer")
    assert run.direct(2, "restart").result == Ack.APPLIED
    assert run.line() == "up"
    assert run.end()[0] == 0
    assert [(e.status, e.asked) for e in run.exits()] == [(-15, True), (0, False)]


def test_a_wish_to_end_goes_before_a_restart(start: Starter) -> None:
    """Who ends the run while its trainer is being ended for a restart does not get a new trainer."""
    program = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {15}); print('up', flush=True);"
    run = start(python(program + "signal.sigwait({15}); print('ending', flush=True); signal.sigwait({15})"))
    assert run.line() == "up"
    run.lay(1, "restart")
    assert run.line() == "ending"
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[0] == 0
    assert [(a.result, a.reason) for a in run.acks()] == [(Ack.FAILED, "RestartError: a signal asked the run to end")]


def test_a_restart_that_cannot_be_started_fails(start: Starter, tmp_path: Path) -> None:
    """A program that has gone in the meantime is a failed answer with its reason, and the wait goes on."""
    program = tmp_path / "trainer"
    program.write_text("#!/bin/sh\nrm $0; exit 7\n")
    program.chmod(0o700)
    run = start([str(program)])
    until(run.exits)
    ack = run.direct(1, "restart")
    assert ack.result == Ack.FAILED and "not found" in ack.reason
    assert run.direct(2, "release").result == Ack.APPLIED
    assert run.end()[0] == 7


def test_restarts_are_bounded(start: Starter) -> None:
    """An agent gone mad cannot begin a trainer over and over."""
    run = start(python("import sys; sys.exit(7)"))
    results: list[str] = []
    for number in range(1, 22):
        until(lambda: len(run.exits()) > len(results))
        results.append(run.direct(number, "restart").result)
    assert results == [Ack.APPLIED] * 20 + [Ack.FAILED]
    run.direct(22, "release")
    assert run.end()[0] == 7


def test_without_an_answer_the_exit_is_passed_on(start: Starter) -> None:
    """Nobody answers: it waits as long as it was told to, not longer, and says so."""
    began = time.monotonic()
    status, _, err = start(python("import sys; sys.exit(7)"), mend_within=0.3).end()
    assert status == 7 and "no answer within 0.3 s" in err
    assert 0.3 <= time.monotonic() - began < DEADLINE / 2


def test_a_signal_while_it_waits_ends_the_wait(start: Starter) -> None:
    """Who asks the run to end in the meantime is not kept waiting."""
    run = start(python("import sys; sys.exit(7)"))
    until(run.exits)
    run.process.send_signal(signal.SIGTERM)
    status, _, err = run.end()
    assert status == 7 and "a signal asked" in err


@pytest.mark.parametrize("mode", ["observe", "shadow"])
def test_only_act_restarts(start: Starter, mode: str) -> None:
    """In the other modes no death is held back and a directive to restart is answered with why not."""
    run = start(python("import sys; sys.exit(len(sys.stdin.read()))"), mode=mode)
    ack = run.direct(1, "restart")
    assert ack.result == Ack.FAILED and mode in ack.reason
    run.process.communicate("four", timeout=DEADLINE)
    assert run.process.returncode == 4
    assert [(e.status, e.asked) for e in run.exits()] == [(4, False)]


def test_a_second_one_on_the_same_run_is_mute(start: Starter) -> None:
    """It says that another one is there, runs its trainer, and does not wait for an answer that cannot come."""
    first = start(python(f"print('up', flush=True); {PAUSE}"))
    assert first.line() == "up"
    until(lambda: first.frames(Kind.HELLO))
    status, _, err = start(python("import sys; sys.exit(7)")).end()
    assert status == 7 and "another process writes the records of supervisor 0" in err
    assert not first.exits()


# -- the agent ----------------------------------------------------------------------------------------


def test_the_agent_is_begun_again_and_ended_last(start: Starter, tmp_path: Path) -> None:
    """Its death leaves the trainer alone; behind the trainer's end, told in full, it gets SIGTERM."""
    lives, told = tmp_path / "agents", tmp_path / "told"
    agent = python(
        FIRST_TIME.format(str(lives)) + "import glob, signal, time; print('agent', flush=True)\n"
        f"signal.signal(15, lambda *_: (open({str(told)!r}, 'wb').write("
        f"open(glob.glob({str(tmp_path / 'run' / 'records' / 'supervisor-*')!r})[0], 'rb').read()), os._exit(0)))\n"
        f"if first: os.kill(os.getpid(), 9)\nopen({str(tmp_path / 'again')!r}, 'w').close()\n{PAUSE}"
    )
    run = start(python("import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"), agent_argv=agent)
    pid = int(run.line())
    until((tmp_path / "again").exists)
    assert state_of(pid) in ("S", "R")
    status, out, err = run.end()
    assert (status, out) == (0, "")
    assert "signal 9 (SIGKILL); it is started again in 1 s" in err and err.count("agent\n") == 2
    assert [f.kind for f in scan(told.read_bytes()).frames] == [Kind.HELLO, Kind.EXIT, Kind.BYE]


def test_an_agent_that_cannot_work_decides_nothing(start: Starter) -> None:
    """Bad setup is said once, not tried again, and a death is passed on without a wait."""
    run = start(python("import sys; sys.exit(len(sys.stdin.read()))"), agent_argv=python("import sys; sys.exit(2)"))
    assert run.process.stderr is not None
    assert "its setup is not usable; it is not started again" in run.process.stderr.readline()
    _, err = run.process.communicate("four", timeout=DEADLINE)
    assert run.process.returncode == 4 and "no agent to decide" in err


def test_killed_outright_it_takes_nobody_along(start: Starter, tmp_path: Path) -> None:
    """SIGKILL of the supervisor leaves the trainer and the agent running."""
    pids = tmp_path / "agents"
    agent = python(f"import os; open({str(pids)!r}, 'w').write(str(os.getpid()) + ' '); {PAUSE}")
    run = start(python(f"import os; print(os.getpid(), flush=True); {PAUSE}"), agent_argv=agent)
    trainer = int(run.line())
    until(lambda: pids.exists() and " " in pids.read_text())
    run.process.kill()
    run.process.wait(DEADLINE)
    both = trainer, int(pids.read_text())
    try:
        until(lambda: [state_of(pid) for pid in both] == ["S", "S"])
    finally:
        for pid in both:
            os.kill(pid, signal.SIGTERM)
