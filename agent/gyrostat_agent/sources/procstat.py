"""CPU and memory of the machine, from /proc/stat, /proc/meminfo and /proc/vmstat.

Called by ``hosts``, as are ``disks``, ``interfaces``, ``runprocesses`` and ``cgroups``: each gives ``(name, value)``
pairs, leaves out what this kernel does not tell, and raises OSError, ValueError or LookupError where a file is not what
it should be. Roots are arguments: a container may see its host's /proc elsewhere.
"""

import os
from collections.abc import Iterator

Told = Iterator[tuple[str, float]]
_IDLE, _IOWAIT, _TIMES = 3, 4, 8  # places in the cpu line; guest time, behind them, is part of user time already


class Cpu:
    """How busy all processors were since the last call."""

    def __init__(self, proc: str) -> None:
        self._path = os.path.join(proc, "stat")
        self._last: list[float] = []

    def read(self) -> Told:
        """Percent of all processors' time; nothing the first time."""
        with open(self._path, encoding="ascii") as file:
            times = [float(word) for word in file.readline().split()[1 : 1 + _TIMES]]
        last, self._last = self._last, times
        spent = [now - before for now, before in zip(times, last, strict=False)]
        if len(spent) == _TIMES and sum(spent) > 0:
            yield "host_cpu_utilization", 100 * max(0.0, 1 - (spent[_IDLE] + spent[_IOWAIT]) / sum(spent))
            yield "host_cpu_iowait", 100 * max(0.0, spent[_IOWAIT]) / sum(spent)


def memory(proc: str) -> Told:
    """Bytes of memory and swap."""
    kib = numbers(os.path.join(proc, "meminfo"))
    total, free = kib.get("MemTotal:"), kib.get("MemAvailable:")
    if total is not None and free is not None:
        yield "host_memory_total_bytes", 1024 * total
        yield "host_memory_used_bytes", 1024 * (total - free)
    total, free = kib.get("SwapTotal:"), kib.get("SwapFree:")
    if total is not None and free is not None:
        yield "host_swap_total_bytes", 1024 * total
        yield "host_swap_used_bytes", 1024 * (total - free)


def oom_kills(proc: str) -> Told:
    """How many processes the kernel has killed for want of memory since it booted."""
    kills = numbers(os.path.join(proc, "vmstat")).get("oom_kill")
    if kills is not None:
        yield "host_oom_kills_total", kills


def numbers(path: str) -> dict[str, float]:
    """The file's lines that are a name and a number, by name."""
    found = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            words = line.split()
            if len(words) > 1 and words[1].isdigit():
                found[words[0]] = float(words[1])
    return found
