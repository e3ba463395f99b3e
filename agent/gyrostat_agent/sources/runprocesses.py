"""Run processes: which of the run's processes live, and what memory they use.

Called by ``hosts``. A process that was never seen here is not counted: the PIDs that a trainer tells may be of another
PID namespace. One whose number was given to another since is gone.
"""

import os
from collections.abc import Iterable, Iterator

_STATE, _BEGAN, _RESIDENT = 0, 19, 21  # places in /proc/PID/stat, behind the name
_DEAD = ("Z", "X", "x")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class RunProcesses:
    """The run's processes, from /proc. ``alive`` are those that lived when they were read last."""

    def __init__(self, proc: str) -> None:
        self.alive: list[int] = []
        self._proc = proc
        self._began: dict[int, str] = {}

    def read(self, pids: Iterable[int]) -> Iterator[tuple[str, float]]:
        """How many of those seen live, and their memory; nothing where none was ever seen."""
        wanted = sorted(set(pids))
        self._began = {pid: began for pid, began in self._began.items() if pid in wanted}
        pages = {pid: size for pid in wanted if (size := self._pages(pid)) is not None}
        self.alive = list(pages)
        if self._began:
            yield "host_run_processes", float(len(self._began))
            yield "host_run_processes_alive", float(len(pages))
            yield "host_run_memory_bytes", _PAGE * sum(pages.values())

    def _pages(self, pid: int) -> float | None:
        """Pages of memory of a process that lives and is the one first seen under this number; None of any other."""
        try:
            with open(os.path.join(self._proc, str(pid), "stat"), encoding="utf-8", errors="replace") as file:
                words = file.read().rpartition(")")[2].split()
            began, pages = words[_BEGAN], float(words[_RESIDENT])
        except (OSError, IndexError, ValueError):
            return None
        if words[_STATE] in _DEAD or self._began.setdefault(pid, began) != began:
            return None
        return pages
