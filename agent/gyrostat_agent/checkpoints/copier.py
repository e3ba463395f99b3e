"""Copier: one copy of a checkpoint at a time, made in a child; nothing here waits for it.

Called by Pins, in the loop. The child is killed with whoever asked for it; what it leaves then is a draft.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple, Protocol

_CHILD = "gyrostat_agent.checkpoints.copychild"
_LAST_BREATH_S = 2.0
_SAID = 300


class Order(NamedTuple):
    """The files of the checkpoint at ``source`` are to lie in the empty folder ``draft``, and have ``digest``."""

    source: str
    draft: str
    files: Sequence[str]
    digest: str


class Copier(Protocol):
    """Whoever copies checkpoints."""

    def start(self, order: Order) -> None:
        """Begin; raises OSError where nothing can be begun. Only where nothing is in hand."""

    def ended(self) -> str | None:
        """None while it goes on; then '', or why it is no copy. Asked until it has ended."""

    def close(self) -> None:
        """Break off what is in hand."""


class ChildCopier:
    """Copies in a child, which gives way to everything else."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, for whoever accounts for what runs."""
        return self._child.pid if self._child else None

    def start(self, order: Order) -> None:
        """Start the child; it is told by a file, for the names of ten thousand files would fill a pipe and wait."""
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        with tempfile.TemporaryFile() as asked:
            asked.write(json.dumps(order._asdict()).encode())
            asked.seek(0)
            self._child = subprocess.Popen(
                [sys.executable, "-m", _CHILD], bufsize=0, cwd="/", env={**os.environ, "PYTHONPATH": path},
                stdin=asked, stdout=subprocess.PIPE,
            )  # fmt: skip

    def ended(self) -> str | None:
        """None while it goes on; then '', or why it is no copy."""
        child = self._child
        if child is None:
            return "it was broken off"
        status = child.poll()
        if status is None:
            return None
        assert child.stdout is not None
        said = child.stdout.read(_SAID).decode("utf-8", "replace")
        child.stdout.close()
        self._child = None
        return said or (f"the copying process ended with status {status}" if status else "")

    def close(self) -> None:
        """Kill the child."""
        if self._child is None:
            return
        self._child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in a file system; even SIGKILL waits for that
            self._child.wait(_LAST_BREATH_S)
        if self._child.stdout:
            self._child.stdout.close()
        self._child = None
