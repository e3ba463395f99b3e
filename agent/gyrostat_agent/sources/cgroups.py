"""Cgroups: what the run's cgroups (version 2) say of memory and of kills for want of it.

Called by ``hosts``. A cgroup is found by a process that is in it, and stays known when that has gone: then the question
is whether the kernel killed it. One of another container than the agent's cannot be read; nothing is told of it.
"""

import contextlib
import os
from collections.abc import Iterator

from gyrostat_agent.sources.procstat import numbers

_UNIFIED = "0::"  # the line of version 2 in /proc/PID/cgroup


class Cgroups:
    """The cgroups of the processes found so far."""

    def __init__(self, proc: str, sys: str) -> None:
        self._proc, self._mount = proc, os.path.join(sys, "fs", "cgroup")
        self._kills: dict[str, tuple[float, float]] = {}  # of each folder, at first and now

    def find(self, pid: int) -> None:
        """Remember the cgroup of a process that lives."""
        folder = self._folder(pid)
        if folder and folder not in self._kills:
            with contextlib.suppress(OSError):
                kills = _kills(folder)
                self._kills[folder] = (kills, kills)

    def read(self) -> Iterator[tuple[str, float]]:
        """Kills since each was found, the memory they use, and the limit that is reached first."""
        if not self._kills:
            return
        for folder, (first, _) in self._kills.items():
            with contextlib.suppress(OSError):  # one that has been taken away has said its last
                self._kills[folder] = (first, max(first, _kills(folder)))
        yield "host_cgroup_oom_kills_total", sum(now - first for first, now in self._kills.values())
        for name, file, of_several in (("", "memory.current", sum), ("_limit", "memory.max", min)):
            if found := [n for folder in self._kills for n in _number(os.path.join(folder, file))]:
                yield f"host_cgroup_memory{name}_bytes", of_several(found)

    def _folder(self, pid: int) -> str:
        try:
            with open(os.path.join(self._proc, str(pid), "cgroup"), encoding="utf-8") as file:
                paths = [line[len(_UNIFIED) :].strip() for line in file if line.startswith(_UNIFIED)]
        except OSError:
            return ""
        # That of another container begins with /.. and leads to nothing here.
        return os.path.join(self._mount, paths[0].lstrip("/")) if paths else ""


def _kills(folder: str) -> float:
    return numbers(os.path.join(folder, "memory.events")).get("oom_kill", 0.0)


def _number(path: str) -> list[float]:
    """The file's number; none where it says ``max`` or is not there."""
    try:
        with open(path, encoding="ascii") as file:
            word = file.read().strip()
    except OSError:
        return []
    return [float(word)] if word.isdigit() else []
