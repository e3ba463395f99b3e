"""The supervisor, ``gyrostat run -- COMMAND``: starts the trainer and the agent, and is a process of the run itself.

The trainer keeps its stdin, terminal and process group; signals and its exit status pass through unchanged, and what it
writes byte for byte (``launch.tail``). It is started again only by a directive. Called by the command line, as the main
thread of a process of its own.

Does not promise: to end what a dead trainer left behind; to hold back a signal that somebody sent to the whole
process group (it reaches the trainer twice, once from us). Killed by SIGKILL, it leaves trainer and agent running.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gyrostat import Control, Telemetry
from gyrostat.wire import Exit, RunDirectory
from gyrostat.wire.fields import read_numbers
from gyrostat.wire.layout import RUN_DIR, RUN_NAME
from gyrostat_agent.agentprocess import AgentProcess
from gyrostat_agent.armedrules import armed
from gyrostat_agent.childprocess import StartError, in_words, leave_as, reaped, start
from gyrostat_agent.launch.flags import Launcher, resumed
from gyrostat_agent.launch.ossignals import ENDING, arrivals, hold, reached_all, stop_here
from gyrostat_agent.launch.tail import Plan, Tail
from gyrostat_agent.launch.tee import sdk_speaks
from gyrostat_agent.launch.turns import Turns

_LIVE_SECONDS = 1.0  # between looks at the bell while the trainer runs: a hung or poisoned one may be restarted
_DEAD_SECONDS = 0.05  # the same while a verdict is awaited
_PATIENCE = 10.0  # seconds from SIGTERM to SIGKILL
_LAST_BYTES = 0.5  # seconds for a tee to end; one that what the trainer left behind still writes to goes on by itself
_MOST_RESTARTS = 20  # in one life: a last safety behind the agent's own budgets
_NO_STEP = -1


class RestartError(Exception):
    """A directive that is not followed, and why; it becomes a failed Ack."""


class Supervisor:
    """One trainer, its agent, and the word between them.

    ``agent_argv`` None: an agent is there already. ``mode`` is observe, shadow or act; only in act a death is
    held, for ``mend_within`` seconds, until a directive says restart or release. ``agent_takes_up`` are signals held
    back from the agent until it takes them up itself: told to end while it starts, it must not simply die. Raises
    ValueError on no command. In mode shadow it does as in act while the agent shows that a rule is armed. ``grace`` are
    the seconds that a trainer has from SIGTERM to SIGKILL before a restart; a signal that somebody else sent is passed
    on, and no SIGKILL follows it. ``tail`` says how its output is read; ``launcher`` how it is told from which
    checkpoint to resume, where it does not read that itself by the SDK. ``at_end`` is given the trainer's status and
    whether its end was asked for, once the agent has ended too, and gives the status to leave with.
    """

    def __init__(
        self,
        command: Sequence[str],
        run_dir: str,
        run: str,
        agent_argv: Sequence[str] | None,
        *,
        mode: str,
        mend_within: float = 60.0,
        agent_takes_up: Collection[int] = (),
        grace: float = _PATIENCE,
        tail: Plan | None = None,
        launcher: Launcher | None = None,
        at_end: Callable[[int, bool], int] = lambda status, asked: status,
    ) -> None:
        if not command:
            raise ValueError("there is no command to run; give one after --")
        self._command = command
        self._path = os.path.abspath(run_dir)
        self._run = run
        self._environment = {**os.environ, RUN_DIR: self._path, RUN_NAME: run}
        self._agent_argv = agent_argv
        self._mode = mode
        self._mend_within = mend_within
        self._agent_takes_up = agent_takes_up
        self._grace, self._launcher, self._at_end = grace, launcher, at_end
        self._turns = Turns(command, launcher)
        self._tail = Tail(tail or Plan(), RunDirectory(self._path), say)
        self._pid = self._status = 0
        self._asks = 0  # signals since the trainer's start that ask the run to end
        self._passed: set[int] = set()
        self._directed = self._released = False
        self._deadline = 0.0  # until when a verdict is awaited; 0.0: none is
        self._restarts = 0

    def run(self) -> int:
        """Run it to its end; the exit status to leave with, or death by the signal that the trainer died of."""
        self._held, self._mask = hold()
        self._tail.begin(self._environment)
        try:
            self._start()
        except StartError as error:
            say(str(error))
            self._tail.finish()
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            return error.status
        self._join()
        while self._pid or self._waits():
            self._turn(_LIVE_SECONDS if self._pid else _DEAD_SECONDS)
        self._telemetry.close()
        self._end_tail()
        self._end_agent()
        return leave_as(self._at_end(self._status, self._was_asked()))

    # -- one turn -------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Become a process of the run, and start its agent."""
        self._telemetry = Telemetry(self._path, run=self._run, role="supervisor", rank=0, world=1)
        obeys = {"restart": self._restart, "release": self._release}
        self._control = Control(self._telemetry, knobs=self._turns.knobs(), procedures=obeys)
        if fault := self._telemetry.counts.fault:
            say(f"{fault}; the trainer runs, but nothing can restart it")
        mask = self._mask | set(self._agent_takes_up)
        self._agent = AgentProcess(self._agent_argv, self._environment, mask, say)
        self._agent.tend(time.monotonic())

    def _turn(self, seconds: float) -> None:
        self._wake(seconds)
        self._agent.tend(time.monotonic())
        self._tail.tend()
        if self._pid or self._deadline:
            self._control.apply(_NO_STEP)

    def _wake(self, seconds: float) -> None:
        """Sleep until a signal comes, ``seconds`` at most; pass on what came and take note of who has ended."""
        for info in arrivals(self._held, seconds):
            self._pass_on(info)
        for pid, status in reaped():
            if pid == self._pid:
                self._ended(status)
            elif not self._tail.ended(pid, status) and pid == self._agent.pid:
                self._agent.ended(status, time.monotonic())

    def _wake_until(self, done: Callable[[], bool], seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not done() and (left := end - time.monotonic()) > 0:
            self._wake(left)
        return done()

    def _pass_on(self, info: signal.struct_siginfo) -> None:
        number = info.si_signo
        self._asks += number in ENDING
        if number != signal.SIGCHLD and self._pid and not reached_all(info):
            self._passed.add(number)
            self._send(number)
        if number == signal.SIGTSTP:
            stop_here()

    def _send(self, number: int) -> None:
        try:
            os.kill(self._pid, number)
        except OSError as error:  # it runs as another user: sudo, or a program that changed its UID
            say(f"signal {number} cannot be passed on to the trainer (pid {self._pid}): {error.strerror}")

    # -- the trainer ----------------------------------------------------------------------------------

    def _start(self, command: Sequence[str] = ()) -> None:
        self._pid = start(command or self._command, self._environment, self._mask, actions=self._tail.actions())
        self._asks, self._passed = 0, set()
        self._directed = self._released = False
        self._deadline = 0.0

    def _ended(self, status: int) -> None:
        """Tell the run, and hold the exit back where a restart may follow."""
        pid, self._pid, self._status = self._pid, 0, status
        asked = self._directed or self._was_asked()
        self._tail.settle()  # its last words come before the news of its end
        self._telemetry.say(Exit("trainer", 0, pid, status, asked))
        if asked or not status or not self._may_restart():
            return
        what = f"the trainer (pid {pid}) ended with {in_words(status)}"
        if fault := self._telemetry.counts.fault:
            say(f"{what}, which the agent cannot be told: {fault}")
            return
        self._deadline = time.monotonic() + self._mend_within
        say(f"{what}; waiting up to {self._mend_within:g} s for the agent to restart or release it (--mend-within)")

    def _was_asked(self) -> bool:
        """True where a signal that came from outside led to the trainer's end."""
        return self._asks > 0 or -self._status in self._passed

    def _waits(self) -> bool:
        """True while a verdict may still come; says why where it ends."""
        if self._deadline and (why := self._verdict()):
            say(f"{why}: {in_words(self._status)} is passed on")
            self._deadline = 0.0
        return self._deadline > 0

    def _verdict(self) -> str:
        if self._released:
            return "released by the agent"
        if self._asks:
            return "a signal asked the run to end"
        if self._agent.hopeless:
            return "there is no agent to decide"
        return f"no answer within {self._mend_within:g} s (--mend-within)" if time.monotonic() >= self._deadline else ""

    # -- what directives ask --------------------------------------------------------------------------

    def _restart(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Start the command again, after ending it where it still runs, from the checkpoint that was chosen."""
        if not self._may_restart():
            arm = ", or arm a rule: gyrostat arm" if self._mode == "shadow" else ""
            raise RestartError(f"gyrostat run was started in mode {self._mode}; give it --mode act{arm}")
        if self._restarts >= _MOST_RESTARTS:
            raise RestartError(f"{self._restarts} restarts in one life of the supervisor are the most; look at the run")
        wanted = read_numbers(arguments, "knobs")
        if why := self._turns.unfit(wanted):
            raise RestartError(why)
        command, changed = self._resuming(str(arguments.get("checkpoint", "")), wanted)
        asks = self._asks if self._pid else 0
        if self._pid:
            self._end_trainer()
        if self._asks > asks:
            raise RestartError("a signal asked the run to end")
        self._start(command)
        self._turns.values.update(wanted)
        self._restarts += 1
        say(f"restarted by the agent: the trainer is pid {self._pid}{changed and f', with {changed}'}")
        return {"pid": self._pid, **({"flags": changed} if changed else {})}

    def _resuming(self, checkpoint: str, wanted: Mapping[str, float]) -> tuple[Sequence[str], str]:
        """The command to start, and which of its flags are changed, in words; a trainer with the SDK needs none."""
        if not checkpoint or sdk_speaks(RunDirectory(self._path).records):
            if wanted:
                raise RestartError("a trainer with the SDK turns its knobs by itself")
            return self._command, ""  # it finds ``resume.json`` by itself
        if self._launcher is None:
            raise RestartError("the command is in no table of flags: it cannot be told from where to resume; --flags")
        found = resumed(self._command, self._launcher, checkpoint)
        if found is None:
            raise RestartError(f"{self._launcher.title} cannot be given {checkpoint}, not named as its own are")
        turned = self._turns.applied(found.command, wanted)
        return turned.command, ", ".join((*found.said, *turned.said))

    def _may_restart(self) -> bool:
        """True in mode act, and in mode shadow while the agent shows that a rule is armed."""
        return self._mode == "act" or (self._mode == "shadow" and bool(armed(RunDirectory(self._path))))

    def _release(self, arguments: Mapping[str, Any]) -> None:
        if self._pid:
            raise RestartError(f"the trainer (pid {self._pid}) runs; there is no exit to pass on")
        self._released = True

    def _end_trainer(self) -> None:
        self._directed = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._send(number)
            seconds = self._grace if number == signal.SIGTERM else _PATIENCE
            if self._wake_until(lambda: not self._pid, seconds):
                return
            if number == signal.SIGTERM:
                say(f"the trainer (pid {self._pid}) has not ended within {seconds:g} s of SIGTERM: it gets SIGKILL")
        raise RestartError(f"the trainer (pid {self._pid}) does not end, by SIGKILL neither; look at its host")

    def _end_tail(self) -> None:
        """Until what the trainer wrote has been passed on: as long as its reader takes, or until a signal ends that."""
        self._tail.finish()
        asks = self._asks
        while not self._tail.is_read() and self._asks == asks:
            self._wake(_DEAD_SECONDS)
        self._wake_until(self._tail.is_over, _LAST_BYTES)

    def _end_agent(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._agent.dismiss(number)
            if self._wake_until(lambda: not self._agent.pid, _PATIENCE):
                return


def say(text: str) -> None:
    """One line on stderr, past Python's buffer: one that cannot be written would change our exit status to 120."""
    if sys.stderr is not None:  # closed from the start: descriptor 2 is something else's
        with contextlib.suppress(OSError):
            os.write(2, f"gyrostat: {text}\n".encode(errors="backslashreplace"))
