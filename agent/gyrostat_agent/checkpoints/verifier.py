"""Verifier: takes paths of checkpoints, gives verdicts later. In a child of its own, or at once for virtual time.

The child has one path in hand at a time, so that when it dies it is known of which: that one is unfit, the others
are done by a new child. Called by CheckpointSource and the loop; nothing here waits for a verification.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from typing import Protocol

from gyrostat_agent.checkpoints.reference import unread
from gyrostat_rules.inputs import CheckpointSeen

_CHUNK = 1 << 16
_LAST_BREATH_S = 2.0
_CHILD = "gyrostat_agent.checkpoints.child"


class Verifier(Protocol):
    """Whoever verifies checkpoints."""

    def start(self, path: str) -> None:
        """Have the checkpoint at ``path`` verified; returns at once."""

    def results(self) -> list[CheckpointSeen]:
        """The verdicts that have come in since the last call; returns at once."""

    def reread(self, path: str, seconds: float) -> CheckpointSeen | None:
        """Verify the checkpoint at ``path`` anew and wait for it; None where that takes longer than so many seconds."""


class InlineVerifier:
    """Verifies in this process, while ``start`` runs: for tests and replays, where time is virtual."""

    def __init__(self) -> None:
        self._done: list[CheckpointSeen] = []

    def start(self, path: str) -> None:
        """Verify the checkpoint at ``path`` before returning."""
        from gyrostat_agent.checkpoints.layouts.examine import examine  # brings numpy, which the sidecar does without

        self._done.append(examine(os.path.abspath(path)))

    def results(self) -> list[CheckpointSeen]:
        """The verdicts since the last call."""
        done, self._done = self._done, []
        return done

    def reread(self, path: str, seconds: float) -> CheckpointSeen | None:
        """Verify it, however long that takes."""
        from gyrostat_agent.checkpoints.layouts.examine import examine

        return examine(os.path.abspath(path))


class ChildVerifier:
    """Verifies in a child that is started on demand and ends after ``idle_s`` seconds without work."""

    def __init__(self, idle_s: float = 60.0) -> None:
        self._idle_s = idle_s
        self._waiting: deque[str] = deque()
        self._in_hand = ""
        self._tried_twice: set[str] = set()
        self._child: subprocess.Popen[bytes] | None = None
        self._heard = b""
        self._done: list[CheckpointSeen] = []

    @property
    def pid(self) -> int | None:
        """The child's process id, for whoever accounts for what runs."""
        return self._child.pid if self._child else None

    def fileno(self) -> int | None:
        """What becomes readable when ``results`` has something to do; another one after a child's end."""
        return self._child.stdout.fileno() if self._child and self._child.stdout else None

    def start(self, path: str) -> None:
        """Have the checkpoint at ``path`` verified, after those asked for before it."""
        self._waiting.append(os.path.abspath(path))
        self._feed()

    def results(self) -> list[CheckpointSeen]:
        """The verdicts that have come in; hands the child its next path."""
        self._listen()
        self._feed()
        done, self._done = self._done, []
        return done

    def reread(self, path: str, seconds: float) -> CheckpointSeen | None:
        """Verify it in a child of its own: it is about to be used, and what waits in the other's queue is not."""
        path = os.path.abspath(path)
        try:
            child = _start(seconds)
        except OSError:
            return None
        try:
            return _answer(child, path, seconds)
        finally:
            child.kill()
            for pipe in (child.stdin, child.stdout):
                if pipe:
                    pipe.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_LAST_BREATH_S)

    def close(self) -> None:
        """End the child; what was asked for and is not done never will be."""
        self._waiting.clear()
        self._in_hand = ""
        if self._child:
            self._child.kill()
            self._bury()

    def _feed(self) -> None:
        while self._waiting and not self._in_hand:
            self._in_hand = self._waiting.popleft()
            try:
                self._ask(self._in_hand)
            except OSError as error:
                self._give_up(f"the verifier could not be started: {error.strerror}")

    def _ask(self, path: str) -> None:
        """Write a line to the child; it fits an empty pipe, so this does not wait."""
        line = json.dumps(path).encode() + b"\n"
        if self._child and not _written(self._child, line):
            self._reap(self._child)  # it ended for want of work just now
        elif self._child:
            return
        self._child = _start(self._idle_s)
        _written(self._child, line)  # where it is gone already, its output ends, and that is seen to there

    def _listen(self) -> None:
        while self._child and self._child.stdout:
            chunk = self._child.stdout.read(_CHUNK)
            if chunk is None:
                return
            if not chunk:
                self._bury()
                return
            *lines, self._heard = (self._heard + chunk).split(b"\n")
            for line in lines:
                self._take(line)
            self._feed()

    def _take(self, line: bytes) -> None:
        """A verdict on the path in hand; what else a library may print there is not for us."""
        try:
            verdict = CheckpointSeen(**json.loads(line))
        except (TypeError, ValueError):
            return
        if verdict.path == self._in_hand:
            self._finish(verdict)

    def _finish(self, verdict: CheckpointSeen) -> None:
        self._done.append(verdict)
        self._tried_twice.discard(verdict.path)
        self._in_hand = ""

    def _bury(self) -> None:
        """The child has ended: say so of the path that it had in hand, if any."""
        assert self._child is not None
        status = self._reap(self._child)
        path = self._in_hand
        if path and status == 0 and path not in self._tried_twice:
            # it ended for want of work while the path was on its way: not the path's fault
            self._tried_twice.add(path)
            self._waiting.appendleft(path)
            self._in_hand = ""
        elif path:
            self._give_up(f"the verifier {_how(status)}")

    def _reap(self, child: subprocess.Popen[bytes]) -> int:
        """The exit status of a child that has closed its pipes, so that it is all but gone."""
        for pipe in (child.stdin, child.stdout):
            if pipe:
                pipe.close()
        self._child, self._heard = None, b""
        try:
            return child.wait(_LAST_BREATH_S)
        except subprocess.TimeoutExpired:  # it hangs in a file system; even SIGKILL waits for that
            child.kill()
            return -signal.SIGKILL

    def _give_up(self, why: str) -> None:
        self._finish(unread(self._in_hand, f"could not be verified: {why}"))


def _start(idle_s: float) -> subprocess.Popen[bytes]:
    """A child that imports what this process imports, whatever lies in the folder that it was started in."""
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    child = subprocess.Popen(
        [sys.executable, "-m", _CHILD, str(idle_s)],
        bufsize=0, cwd="/", env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    return child


def _answer(child: "subprocess.Popen[bytes]", path: str, seconds: float) -> CheckpointSeen | None:
    """The child's verdict on a path; None where none comes in time."""
    assert child.stdout is not None
    end, heard = time.monotonic() + seconds, b""
    if not _written(child, json.dumps(path).encode() + b"\n"):
        return None
    while (left := end - time.monotonic()) > 0 and select.select([child.stdout], [], [], left)[0]:
        chunk = child.stdout.read(_CHUNK)
        if not chunk:
            return unread(path, "could not be verified: the verifier ended while it read it anew")
        heard += chunk
        for line in heard.split(b"\n")[:-1]:
            with contextlib.suppress(TypeError, ValueError):
                return CheckpointSeen(**json.loads(line))
    return None


def _written(child: subprocess.Popen[bytes], line: bytes) -> bool:
    """False where the child no longer reads."""
    assert child.stdin is not None
    try:
        child.stdin.write(line)
    except BrokenPipeError:
        return False
    return True


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    hint = ": a file was cut short while it was read" if -status == signal.SIGBUS else ""
    return f"was killed by signal {-status}{hint}"
