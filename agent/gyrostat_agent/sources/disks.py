"""Disks: what is read and written, from /proc/diskstats, of whole physical disks together.

Partitions, device mappers, RAID and loop devices are left out: what goes through them would count twice.
"""

import os
from collections.abc import Iterator

from gyrostat_agent.sources.rates import Rates

_SECTOR = 512  # of the kernel's accounts, whatever the disk's own are
_COUNTS = {"reads": (3, 1), "read_bytes": (5, _SECTOR), "writes": (7, 1), "write_bytes": (9, _SECTOR)}
_VIRTUAL = ("loop", "ram", "zram", "dm-", "md", "sr", "fd")


class Disks:
    """Throughput and operations since the last call."""

    def __init__(self, proc: str, sys: str) -> None:
        self._path, self._block = os.path.join(proc, "diskstats"), os.path.join(sys, "block")
        self._physical: dict[str, bool] = {}
        self._rates = Rates()

    def read(self, now: float) -> Iterator[tuple[str, float]]:
        """Bytes and operations a second; nothing the first time."""
        sums = dict.fromkeys(_COUNTS, 0.0)
        with open(self._path, encoding="ascii") as file:
            for line in file:
                words = line.split()
                if len(words) > 9 and self._is_physical(words[2]):
                    for name, (place, unit) in _COUNTS.items():
                        sums[name] += float(words[place]) * unit
        for name, total in sums.items():
            if (rate := self._rates.of(name, total, now)) is not None:
                yield f"host_disk_{name}_per_second", rate

    def _is_physical(self, name: str) -> bool:
        if name not in self._physical:
            whole = os.path.join(self._block, name)  # a partition has no folder of its own here
            self._physical[name] = os.path.isdir(whole) and not name.startswith(_VIRTUAL)
        return self._physical[name]
