"""The agent's process beside a trainer: begun again with growing pauses when it dies, for as long as it is wanted.

Called by the supervisor, which hands in the time. Whatever happens to the agent never touches the trainer.
"""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence

from gyrostat_agent.childprocess import StartError, in_words, start
from gyrostat_agent.errors import EXIT_DISTRUST, EXIT_HELD, EXIT_SETUP

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds; doubled in between, from the start again after a life that long
_LASTING = {
    EXIT_SETUP: "its setup is not usable",
    EXIT_HELD: "another agent has this run",
    EXIT_DISTRUST: "what it finds on the disk does not add up",
}  # beginning it again would end the same way


class AgentProcess:
    """Keeps one agent alive. ``argv`` None: it runs elsewhere, and is taken to be there.

    ``pid`` is 0 while it does not run; ``hopeless`` is true where no agent will ever answer.
    """

    def __init__(
        self,
        argv: Sequence[str] | None,
        environment: Mapping[str, str],
        mask: frozenset[int],
        say: Callable[[str], None],
    ) -> None:
        self._argv = argv
        self._environment = environment
        self._mask = mask
        self._say = say
        self._wanted = argv is not None
        self._due = 0.0
        self._began = 0.0
        self._pause = _FIRST_PAUSE
        self.pid = 0
        self.hopeless = False

    def tend(self, now: float) -> None:
        """Start it where that is due. ``now``: seconds of a clock that only goes forward."""
        if self._argv is None or not self._wanted or self.pid or now < self._due:
            return
        self._began = now
        try:
            self.pid = start(self._argv, self._environment, self._mask, apart=True)
        except StartError as error:
            self._again(now, str(error)) if error.passing else self._give_up(str(error), hopeless=True)

    def ended(self, status: int, now: float) -> None:
        """It was reaped: begin it again later, unless it would end the same way or is not wanted any more."""
        pid, self.pid = self.pid, 0
        if not self._wanted:
            return
        what = f"the agent (pid {pid}) ended with {in_words(status)}"
        if status in _LASTING:
            self._give_up(f"{what}: {_LASTING[status]}", hopeless=status != EXIT_HELD)
        else:
            self._again(now, what)

    def dismiss(self, number: int) -> None:
        """Send it a signal that is to end it; it is not begun again."""
        self._wanted = False
        if self.pid:
            with contextlib.suppress(OSError):
                os.kill(self.pid, number)

    def _again(self, now: float, what: str) -> None:
        if now - self._began >= _LONGEST_PAUSE:
            self._pause = _FIRST_PAUSE
        self._due = now + self._pause
        self._say(f"{what}; it is started again in {self._pause:g} s, the trainer goes on")
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _give_up(self, what: str, *, hopeless: bool) -> None:
        self._wanted, self.hopeless = False, hopeless
        self._say(f"{what}; it is not started again, the trainer goes on")
