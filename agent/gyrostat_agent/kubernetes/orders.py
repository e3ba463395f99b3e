"""Orders: the directives for the job, read from the run directory, each answered once in the life of that directory.

Like ``Control``, but a directive to an earlier life of this process still holds: the job that it is for is the same,
and how far it came stands on the job. Those lives are remembered in ``agent/job-lives``: a ``gyrostat run`` in the same
pod is a supervisor too, and what it is told must not be done to the job as well. What was answered is remembered in
``agent/job-answered`` before the answer is given: a directive that failed must not be begun by a later life, long after
everybody has decided otherwise.
"""

import contextlib
import os
import time
from collections.abc import Iterator

from gyrostat.bell import Bell
from gyrostat.telemetry import Telemetry
from gyrostat.wire import Ack, Directive, MessageError, RunDirectory
from gyrostat.wire.rights import RightsError, check_folder, read_trusted
from gyrostat_agent.kubernetes.course import Over

ROLE = "supervisor"
_LIMIT = 1 << 20
_LIVES = 100  # remembered; nothing is valid for as long as that many take
_BEHIND = 64  # directives behind the newest that are looked at after a pause
_NO_STEP = -1


class Orders:
    """Reads and answers as the run's supervisor; raises nothing."""

    def __init__(self, run: RunDirectory, name: str) -> None:
        self._run = run
        self._telemetry = Telemetry(run.path, run=name, role=ROLE, rank=0, world=1)
        self._bell = Bell(run.bell)
        self._memory = os.path.join(run.agent, "job-answered")
        self._lives = self._begin_life(os.path.join(run.agent, "job-lives"))
        self._seen = self._answered()
        self._offered: tuple[str, ...] | None = None

    @property
    def run(self) -> str:
        """Name of the run that they are for."""
        return self._telemetry.run

    def offer(self, procedures: tuple[str, ...]) -> None:
        """Say what the job can be told now, once a change: what is not offered, no rung of a playbook asks for."""
        if procedures != self._offered:
            self._offered = procedures
            self._telemetry.introduce((), procedures, self._seen, 0)
            self._telemetry.say()

    def new(self) -> Iterator[Directive]:
        """Those that nobody has answered, the oldest first; one that is not to be obeyed is answered here."""
        rung = self._bell.read()
        for number in range(max(self._seen, rung - _BEHIND) + 1, rung + 1):
            found, why = self._read(number)
            if found is None:
                self._seen = number
            elif why:
                self.answer(found, Ack.REFUSED, why)
            else:
                yield found

    def answer(self, directive: Directive, result: str, reason: str = "", detail: dict[str, str] | None = None) -> None:
        """Remember that it is answered, then answer it."""
        self._seen = directive.number
        self._remember(directive.number)
        self._telemetry.say(Ack(directive.number, directive.action, result, _NO_STEP, reason, {}, detail or {}))

    def conclude(self, directive: Directive, over: Over) -> None:
        """Answer by what came of it."""
        if over.done:
            self.answer(directive, Ack.APPLIED, "", {"job": over.said})
        else:
            self.answer(directive, Ack.FAILED, over.said)

    def leave_open(self, directive: Directive) -> None:
        """Nobody knows what came of it: no answer is one too, and the rules do not repeat it."""
        self._seen = directive.number
        self._remember(directive.number)

    def close(self) -> None:
        """Say goodbye."""
        self._telemetry.close()

    def _read(self, number: int) -> tuple[Directive | None, str]:
        """The directive and why it is refused, or ''; None where it is not for the job."""
        try:
            check_folder(self._run.directives)
            found = Directive.decode(read_trusted(self._run.directive(number), _LIMIT))
        except (OSError, RightsError, MessageError):
            return None, ""
        if found.role != ROLE or found.incarnation not in self._lives:
            return None, ""
        if found.number != number or found.run != self.run:
            return found._replace(number=number), f"it is directive {found.number} of run {found.run!r}"
        if time.time() >= found.expires_at:
            return found, f"directive {number} has expired"
        offered = self._offered or ()
        if found.procedure not in offered:
            return found, f"procedure {found.procedure!r} is not offered; offered: {', '.join(offered) or 'none'}"
        return found, ""

    def _begin_life(self, path: str) -> list[str]:
        """This life behind those before it; where that cannot be kept, what is told now is lost with this life."""
        try:
            before = read_trusted(path, _LIMIT).decode("ascii").split()
        except (OSError, ValueError):
            before = []
        lives = [*before, self._telemetry.incarnation][-_LIVES:]
        _write(path, " ".join(lives).encode())
        return lives

    def _answered(self) -> int:
        try:
            return int(read_trusted(self._memory, 64))
        except (OSError, ValueError):
            return 0

    def _remember(self, number: int) -> None:
        """Where that fails, the job's own annotation still prevents a second."""
        _write(self._memory, b"%d" % number)


def _write(path: str, body: bytes) -> None:
    """Replace a file of ours, durably; where it cannot be written, so be it."""
    draft = f"{path}.draft"
    with contextlib.suppress(OSError):
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb", buffering=0) as out:
            out.write(body)
            os.fsync(out.fileno())
        os.rename(draft, path)
