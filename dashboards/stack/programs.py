"""Programs: the real ones that the stack starts, where they are, and their end."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import which

ALERTMANAGER = ("prometheus-alertmanager", "alertmanager")  # Debian calls it by the first
PROMETHEUS = ("prometheus",)
_END_SECONDS = 15.0


class MissingError(Exception):
    """A program is not here, and how to get it."""


def program(names: Sequence[str]) -> str:
    """The path of the first of these that is on PATH; raises MissingError."""
    found = next((path for name in names if (path := which(name))), None)
    if found is None:
        raise MissingError(
            f"{names[0]} is not on PATH; on Debian: apt-get install prometheus prometheus-alertmanager; elsewhere "
            "their releases, unpacked into a folder of PATH"
        )
    return found


def free_port() -> int:
    """A port of loopback where nobody listens now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Started:
    """One process of the stack, in a session of its own: Ctrl-C reaches the stack, which ends it."""

    def __init__(self, name: str, words: Sequence[str], folder: Path, **environment: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            )  # fmt: skip

    @property
    def status(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._process.poll()

    def end(self) -> None:
        """End it and whatever it started: politely, then not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.status is not None:
                return
            os.killpg(self._process.pid, number)
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                continue

    def last_words(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-1500:]


def python(*words: str) -> list[str]:
    """This Python, with these words."""
    return [sys.executable, *words]
