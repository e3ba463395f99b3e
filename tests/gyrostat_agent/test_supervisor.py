"""The supervisor, with real processes and real signals; the agent's part is played by small programs and files."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gyrostat.wire import Ack, Directive, Exit, Hello, Kind, scan

SUPERVISE = (
    "import json, sys; from gyrostat_agent.supervisor import Supervisor;"
    "settings = json.loads(sys.argv[1]); sys.exit(Supervisor(**settings).run())"
)
DEADLINE = 20.0
PAUSE = "import signal; [signal.pause() for _ in iter(int, 1)]"
FIRST_TIME = "import os, sys; first = not os.path.exists({0!r}); open({0!r}, 'a').write(str(os.getpid()) + ' ');"
Starter = Callable[..., "Run"]


class Run:
    """A supervisor under test, and what it has said in its run directory."""

    def __init__(self, path: Path, process: "subprocess.Popen[str]") -> None:
        self.path = path
        self.process = process

    def frames(self, kind: int) -> list[bytes]:
        """Bodies of the supervisor's frames of one kind, in order."""
        files = sorted(self.path.glob("records/supervisor-*"))
        return [f.body for file in files for f in scan(file.read_bytes()).frames if f.kind == kind]

    def exits(self) -> list[Exit]:
        return [Exit.decode(body) for body in self.frames(Kind.EXIT)]

    def acks(self) -> list[Ack]:
        return [Ack.decode(body) for body in self.frames(Kind.ACK)]

    def direct(self, number: int, procedure: str) -> Ack:
        """Lay a directive as the agent does, and wait for its answer."""
        until(lambda: self.frames(Kind.HELLO))
        me = Hello.decode(self.frames(Kind.HELLO)[-1])
        folder = self.path / "directives"
        folder.mkdir(mode=0o700, exist_ok=True)
        directive = Directive(
            number, me.run, "supervisor", me.incarnation, 0, f"a-{number}", time.time() + 60, procedure=procedure
        )
        draft = folder / f".{number}"
        draft.touch(mode=0o600)
        draft.write_bytes(directive.encode())
        os.link(draft, folder / f"{number}.json")
        (folder / "bell").touch(mode=0o600)
        (folder / "bell").write_bytes(number.to_bytes(8, "little"))
        return until(lambda: next((a for a in self.acks() if a.number == number), None))

    def line(self) -> str:
        """The trainer's next line on stdout: it is up."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> tuple[int, str, str]:
        """Status, stdout and stderr, once it has ended."""
        out, err = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, out, err


def until(condition: Callable[[], Any]) -> Any:
    """What the condition gives once it gives something; fails after a deadline."""
    end = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.005)
    return found


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", program, *arguments]


def settings(path: Path, command: list[str], **more: Any) -> str:
    given = {"command": command, "run_dir": str(path), "run": "r", "agent_argv": None, "mode": "act", **more}
    return json.dumps(given)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts supervisors, and ends what a failed test leaves behind."""
    runs: list[Run] = []

    def begin(command: list[str], *, path: Path = tmp_path / "run", **more: Any) -> Run:
        popen = {k: more.pop(k) for k in ("preexec_fn", "env") if k in more}
        popen.setdefault("env", {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
        argv = [sys.executable, "-c", SUPERVISE, settings(path, command, **more)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        runs.append(Run(path, subprocess.Popen(argv, text=True, **pipes, **popen)))
        return runs[-1]

    yield begin
    for run in runs:
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGTERM)
        run.process.communicate(timeout=DEADLINE)


def state_of(pid: int) -> str:
    """A process's state letter, T where it is stopped; '' where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""


# -- exit status and stdio ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1, 7, -9, -11, -15], ids=lambda s: f"status {s}")
def test_the_parent_sees_the_trainers_own_status(start: Starter, status: int) -> None:
    """An exit code or a death by a signal looks to the parent as if the supervisor were not there."""
    program = f"import os, sys; s = {status}; os.kill(os.getpid(), -s) if s < 0 else sys.exit(s)"
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


# -- signals ------------------------------------------------------------------------------------------


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
    program = "import signal; signal.signal(10, lambda *_: print('saved', flush=True)); print('up', flush=True); "
    run = start(python(f"{program} signal.pause(); signal.raise_signal(9)"), mend_within=0.1)
    assert run.line() == "up"
    run.process.send_signal(signal.SIGUSR1)
    assert run.line() == "saved"
    assert run.end()[0] == -9
    assert [e.asked for e in run.exits()] == [False]


def test_what_is_ignored_stays_ignored(start: Starter) -> None:
    """Under nohup neither the supervisor nor the trainer minds a hangup."""
    run = start(
        python(f"import signal; print(signal.getsignal(1) == signal.SIG_IGN, flush=True); {PAUSE}"),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert run.line() == "True"
    run.process.send_signal(signal.SIGHUP)
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[0] == -signal.SIGTERM


def test_stop_and_go_on(start: Starter) -> None:
    """A stop stops both, and a go-on wakes both."""
    run = start(python(f"import os; print(os.getpid(), flush=True); {PAUSE}"), preexec_fn=os.setpgrp)
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
    times = tmp_path / "times"
    program = (
        f"import os, signal, time; signal.signal({number:d}, lambda *_: open({str(times)!r}, 'a').write('x'));"
        "print('up', flush=True); signal.pause(); end = time.monotonic() + 0.2\n"
        "while time.monotonic() < end: time.sleep(0.01)"
    )
    pid, terminal = in_terminal(tmp_path / "run", python(program))
    read_until(terminal, b"up")
    os.write(terminal, key)
    assert wait(pid) == 0
    assert times.read_text() == "x"
    assert [e.asked for e in Run(tmp_path / "run", None).exits()] == [True]  # type: ignore[arg-type]
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
        os.environ["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        os.execv(sys.executable, [sys.executable, "-c", SUPERVISE, settings(path, command)])
    return pid, terminal


def read_until(terminal: int, word: bytes) -> None:
    seen = b""
    while word not in seen:
        seen += os.read(terminal, 1024)


def wait(pid: int) -> int:
    _, status = until(lambda: found if (found := os.waitpid(pid, os.WNOHANG))[0] else None)
    return os.waitstatus_to_exitcode(status)


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
    results = []
    for number in range(1, 22):
        until(lambda n=number: len(run.exits()) == n)
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
    assert state_of(pid) == "S"
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
    assert [state_of(pid) for pid in both] == ["S", "S"]
    for pid in both:
        os.kill(pid, signal.SIGTERM)
