"""Host: one sample of the machine that the run is on. A file that cannot be read costs what stands in it, no more.

Called by HostSource, in the sampler's thread.
"""

import math
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gyrostat_agent.sources import procstat
from gyrostat_agent.sources.cgroups import Cgroups
from gyrostat_agent.sources.disks import Disks
from gyrostat_agent.sources.interfaces import Network, Rdma
from gyrostat_agent.sources.kernellog import KernelLog
from gyrostat_agent.sources.procstat import Cpu
from gyrostat_agent.sources.runprocesses import RunProcesses
from gyrostat_agent.sources.xids import Xid, XidLines

_NO_LIFE = "unknown"


class HostSample(NamedTuple):
    """The machine at one moment, Unix seconds. ``faults``: why each part cannot be read, or ''; ``xids`` are new."""

    at: float
    life: str
    values: dict[str, float]
    faults: dict[str, str]
    xids: tuple[Xid, ...]


class Host:
    """The machine. ``life`` is its boot's id; ``pids`` are those of the run's processes, set before a sample."""

    def __init__(self, proc: str, sys: str, dev: str) -> None:
        self.pids: tuple[int, ...] = ()
        self.life = _life(proc)
        cpu, disks, network, rdma = Cpu(proc), Disks(proc, sys), Network(proc, sys), Rdma(sys)
        self._processes, self._cgroups = RunProcesses(proc), Cgroups(proc, sys)
        self._log, self._lines = KernelLog(os.path.join(dev, "kmsg")), XidLines()
        self._parts: dict[str, Callable[[float], Iterator[tuple[str, float]]]] = {
            "cpu": lambda now: cpu.read(),
            "memory": lambda now: procstat.memory(proc),
            "oom": lambda now: procstat.oom_kills(proc),
            "disks": disks.read,
            "network": network.read,
            "rdma": rdma.read,
            "processes": lambda now: self._processes.read(self.pids),
            "cgroups": lambda now: self._of_cgroups(),
        }

    def take(self, now: float) -> HostSample:
        """A sample at ``now``."""
        values: dict[str, float] = {}
        faults = {}
        for name, read in self._parts.items():
            faults[name] = ""
            try:
                values |= {series: value for series, value in read(now) if math.isfinite(value)}
            except (OSError, ValueError, LookupError) as error:
                faults[name] = f"{name} of this machine cannot be read: {error}"
        new = tuple(xid for line in self._log.read() if (xid := self._lines.read(line)) is not None)
        faults["kernel log"] = self._log.fault
        return HostSample(now, self.life, values, faults, new)

    def _of_cgroups(self) -> Iterator[tuple[str, float]]:
        for pid in self._processes.alive:
            self._cgroups.find(pid)
        return self._cgroups.read()

    def close(self) -> None:
        """Let go of the kernel's log."""
        self._log.close()


def _life(proc: str) -> str:
    try:
        with open(os.path.join(proc, "sys", "kernel", "random", "boot_id"), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return _NO_LIFE
