"""Child: one process of the demonstration, its log, and its end.

Each is the leader of a session of its own: Ctrl-C reaches the demonstration alone, which then ends its children
with everything that they started. Not promised: their end where the demonstration is killed with SIGKILL.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_END_SECONDS = 10.0
_TAIL_LINES = 6


class Child:
    """A started process; its output goes to ``output.log`` and ``errors.log`` in ``folder``."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.log = folder / "errors.log"
        self.began = time.monotonic()
        self._ended = 0.0
        with (folder / "output.log").open("wb") as output, self.log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                env=environment(os.environ), start_new_session=True,
            )  # fmt: skip

    @property
    def status(self) -> int | None:
        """Exit status, minus the signal's number where one ended it; None while it runs."""
        status = self._process.poll()
        if status is not None and not self._ended:
            self._ended = time.monotonic()
        return status

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return (self._ended or time.monotonic()) - self.began

    def end(self) -> None:
        """End it and whatever it started: politely, then not."""
        if self.status is not None:
            return
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:  # a second Ctrl-C must not save it
            self._signal(signal.SIGKILL)
        self._process.wait()

    def last_words(self) -> str:
        """The last lines it wrote to stderr, indented; '' where there are none."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"  {line}" for line in lines if line.strip()][-_TAIL_LINES:])

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: one thread, UTF-8, and none of the person's own Gyrostat settings."""
    kept = {name: value for name, value in ours.items() if not name.startswith("GYROSTAT_")}
    return {**kept, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONUTF8": "1"}
