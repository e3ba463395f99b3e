"""WorkerProcess: the trainer's view of one worker, from its start to its end."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gyrostat_reference.model import Shape
from gyrostat_reference.pool.errors import WorkersLost
from gyrostat_reference.pool.settings import Settings
from gyrostat_reference.pool.wire import Line, LineClosed, Message, WireError

_MODULE = "gyrostat_reference.pool.worker"
_PACKAGES = str(Path(__file__).parents[2])
_PATIENCE = 1.0  # seconds for a message of some kilobytes to an idle worker, which has room for twenty
_LAST_WORDS = 2000  # bytes
_SIGNALS = {each.value: each.name for each in signal.Signals}


class Hand(NamedTuple):
    """What a worker has in hand: a session's number (None: nobody wants it any more), and since when it is due."""

    number: int | None
    since: float


class WorkerProcess:
    """A worker at a ``place`` in the pool, the ``incarnation``-th there; started on construction.

    ``lost`` says why it is of no use any more, '' while it is. Must be started and used by one thread, which lives as
    long as the worker should: the kernel ends the worker with it. Raises WorkersLost where the system starts nothing.
    """

    def __init__(self, place: int, incarnation: int, shape: Shape, settings: Settings, folder: Path) -> None:
        self.place, self.incarnation, self._settings = place, incarnation, settings
        self._words = folder / f"worker-{place}-{incarnation}.log"
        end, theirs = socket.socketpair()
        self._line = Line(end, _PATIENCE)
        with theirs:
            self._process = self._start(theirs)
        self.ready, self.lost = False, ""
        self.hand: Hand | None = None
        self.heard = self.started = time.monotonic()
        blow = settings.faults.blow_for(place, incarnation)
        self.send({
            "shape": list(shape), "poison_item": settings.poison_item, "heartbeat": settings.heartbeat,
            "blow": blow and blow._asdict(),
        })  # fmt: skip

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def name(self) -> str:
        """What people call it."""
        return f"rollout worker {self.place} (pid {self.pid})"

    def fileno(self) -> int:
        """For ``multiprocessing.connection.wait``."""
        return self._line.fileno()

    def send(self, message: Message) -> None:
        """Send a message; a worker that does not take it is ``lost``."""
        try:
            self._line.send(message)
        except LineClosed as error:
            self.lost = str(error)

    def read(self) -> list[Message]:
        """What it said, once something has arrived; a worker that ended or talks nonsense is ``lost``."""
        self.heard = time.monotonic()
        try:
            return self._line.read()
        except (LineClosed, WireError) as error:
            self.lost = str(error)
            return []

    def judge(self, now: float) -> None:
        """Say that it is ``lost`` where at ``now`` it has been silent, starting or at one round for too long."""
        settings = self._settings
        if not self.ready:
            if now - self.started > settings.start_deadline:
                self.lost = f"it was not ready within {settings.start_deadline:g} s"
        elif now - self.heard > settings.silence:
            self.lost = f"no heartbeat for {settings.silence:g} s"
        elif self.hand is not None and now - self.hand.since > settings.round_deadline:
            self.lost = f"a round took more than {settings.round_deadline:g} s"

    def epitaph(self) -> str:
        """Why it was lost, how it ended and its last words; for people. Call it after ``kill``."""
        code = self._process.returncode
        ended = f"exit status {code}" if code >= 0 else _SIGNALS.get(-code, f"signal {-code}")
        words = _last_words(self._words)
        return f"{self.name}: {self.lost} [{ended}]" + (f"; its last words: {words}" if words else "")

    def leave(self) -> None:
        """Ask it to go; it does so at its next message or heartbeat."""
        self._line.close()

    def kill(self, patience: float = 0.0) -> None:
        """See it end: give it ``patience`` seconds to go by itself, then SIGKILL, which a stopped one obeys too."""
        self._line.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self, line: socket.socket) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", _MODULE, str(line.fileno()), str(os.getpid())]
        try:
            with open(self._words, "wb") as words:
                return subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=words, stderr=words, pass_fds=[line.fileno()],
                    env=_environment(os.environ),
                    start_new_session=True,  # Ctrl-C is the trainer's, which then closes the pool
                )  # fmt: skip
        except OSError as error:
            self._line.close()
            raise WorkersLost(f"rollout worker {self.place} cannot be started: {error}") from None


def _last_words(log: Path) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_WORDS))
            return file.read().decode(errors="replace").strip()
    except OSError:  # somebody cleared the folder; that is not what is to be told here
        return ""


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment: without what makes a process speak or die as the trainer."""
    kept = {name: value for name, value in ours.items() if not name.startswith("GYROSTAT_")}
    path = os.pathsep.join(filter(None, (_PACKAGES, kept.get("PYTHONPATH"))))
    return kept | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
