"""The simulated supervisor: real Telemetry and Control around ``gyrostat run``'s rules for a death and a restart."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from gyrostat import Control, Telemetry
from gyrostat.wire import Ack, Directive, Exit, Resume

_MEND_WITHIN = 60.0  # virtual seconds that a death is held for a verdict
_MOST_RESTARTS = 20


class Supervisor:
    """Holds a death back until a directive says restart or release. ``start`` makes the next trainer."""

    def __init__(
        self, path: str, run: str, now: Callable[[], float], start: Callable[[], None], end: Callable[[], None],
        note: Callable[[Directive | Resume, str], None], *, holds: bool,
    ) -> None:  # fmt: skip
        self._now, self._start, self._end, self._holds = now, start, end, holds
        self._deadline = 0.0
        self._running = True
        self.gone = False
        self.restarts = 0
        self.telemetry = Telemetry(path, run=run, role="supervisor", rank=0, world=1)
        self.control = Control(self.telemetry, procedures={"restart": self._restart, "release": self._release})
        carry_out = self.control._carry_out

        def noted(directive: Directive, step: int) -> Ack:
            note(directive, self.telemetry.incarnation)
            return carry_out(directive, step)

        self.control._carry_out = noted  # type: ignore[method-assign, assignment]

    def ended(self, status: int, asked: bool) -> None:
        """The trainer has ended."""
        self._running = False
        self.telemetry.say(Exit("trainer", 0, 1, status, asked))
        if asked or not status or not self._holds:
            self._leave()
        else:
            self._deadline = self._now() + _MEND_WITHIN

    def turn(self) -> None:
        """Look at the bell; go where nobody answers."""
        if self.gone:
            return
        self.control.apply(-1)
        if self._deadline and self._now() >= self._deadline:
            self._leave()

    def release_descriptors(self) -> None:
        """What the kernel does at the end of a process."""
        self.telemetry._file.close()
        if self.control._bell._fd >= 0:
            os.close(self.control._bell._fd)
            self.control._bell._fd = -1

    def _leave(self) -> None:
        self.gone, self._deadline = True, 0.0
        self.telemetry.close()

    def _restart(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._holds or self.restarts >= _MOST_RESTARTS:
            raise ValueError("no restart from here")
        if self._running:
            self._end()
            self.telemetry.say(Exit("trainer", 0, 1, -15, True))
        self.restarts += 1
        self._running, self._deadline = True, 0.0
        self._start()
        return {"pid": 1}

    def _release(self, arguments: Mapping[str, Any]) -> None:
        if self._running:
            raise ValueError("the trainer runs; there is no exit to pass on")
        self._leave()
