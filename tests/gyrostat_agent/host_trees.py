"""A machine as /proc, /sys and /dev show it, in a folder; and a HostSource that looks at it."""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from gyrostat_agent.sources.host import HostSource
from gyrostat_rules.inputs import Item

DATA = Path(__file__).parent / "sources" / "host" / "data"  # as a virtual machine with Linux 6.18 showed them
BOOT = "3f1c9d3e-4a54-4a51-9a6e-0f3b2f0f5b7a"
_PATIENCE_S = 20.0


class Tree:
    """Files of a machine under ``root``, to be changed while a source looks at them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/sys/kernel/random/boot_id", BOOT + "\n")
        self.write("dev/kmsg", "6,1,100,-;an old line\n")
        for name in ("stat", "meminfo", "vmstat", "diskstats"):
            self.write(f"proc/{name}", (DATA / name).read_text())
        self.write("proc/net/dev", (DATA / "net_dev").read_text())
        for disk in ("loop0", "zram0", "vda"):
            self.folder(f"sys/block/{disk}")
        self.folder("sys/class/net/eth0/device")

    def write(self, path: str, text: str) -> None:
        self.folder(str(Path(path).parent))
        (self.root / path).write_text(text)

    def folder(self, path: str) -> None:
        (self.root / path).mkdir(parents=True, exist_ok=True)

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def cpu(self, *times: int) -> None:
        """The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal."""
        self.write("proc/stat", f"cpu  {' '.join(map(str, times))} 0 0\ncpu0 1 2 3 4\n")

    def disk(self, reads: int, sectors_read: int, writes: int, sectors_written: int) -> None:
        """A disk, one of its partitions, and a device mapper through which the same goes."""
        counts = f"{reads} 0 {sectors_read} 5 {writes} 0 {sectors_written} 9 0 3 14"
        rows = (f"  259 {n} {name} {counts}\n" for n, name in enumerate(("nvme0n1", "nvme0n1p1", "dm-0", "loop0")))
        self.write("proc/diskstats", "".join(rows))
        for name in ("nvme0n1", "dm-0", "loop0"):
            self.folder(f"sys/block/{name}")

    def network(self, **interfaces: tuple[int, int]) -> None:
        """Bytes received and sent; of each, 2 errors and 3 drops in, 1 error and 4 drops out."""
        rows = (f"{n:>6}: {got} 10 2 3 0 0 0 0 {sent} 20 1 4 0 0 0 0\n" for n, (got, sent) in interfaces.items())
        self.write("proc/net/dev", "Inter-|   Receive\n face |bytes    packets errs\n" + "".join(rows))

    def rdma(self, device: str, port: int, state: str = "4: ACTIVE", **counters: int) -> None:
        """An RDMA port and its counters."""
        folder = f"sys/class/infiniband/{device}/ports/{port}"
        self.write(f"{folder}/state", state + "\n")
        for name, count in counters.items():
            self.write(f"{folder}/counters/{name}", f"{count}\n")

    def process(
        self,
        pid: int,
        state: str = "S",
        began: int = 500,
        pages: int = 25,
        cgroup: str = "/pod/trainer",
        name: str = "python",
    ) -> None:
        """A process; its name may hold anything, blanks and brackets too."""
        words = [state, *["0"] * 18, str(began), "0", str(pages), "0", "0"]
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) {' '.join(words)}\n")
        self.write(f"proc/{pid}/cgroup", f"0::{cgroup}\n")

    def cgroup(self, path: str, kills: int, current: int = 4096, limit: str = "max") -> None:
        """A cgroup of version 2."""
        folder = f"sys/fs/cgroup{path}"
        self.write(f"{folder}/memory.events", f"low 0\nhigh 0\nmax 7\noom 1\noom_kill {kills}\noom_group_kill 0\n")
        self.write(f"{folder}/memory.current", f"{current}\n")
        self.write(f"{folder}/memory.max", f"{limit}\n")

    def log(self, *lines: str) -> None:
        """Lines that the kernel's log gains."""
        with (self.root / "dev/kmsg").open("a") as file:
            file.writelines(f"4,{9 + n},{200 + n},-;{line}\n" for n, line in enumerate(lines))


class Watching:
    """A source that is looked at second by second."""

    def __init__(self, root: Path | None, checkpoints: Iterable[str] = ()) -> None:
        self._rang = threading.Event()
        if root is None:
            self.source = HostSource(self._rang.set)
        else:
            places = [str(root / name) for name in ("proc", "sys", "dev")]
            self.source = HostSource(self._rang.set, 1.0, 0, *places, checkpoints=checkpoints)

    def sample(self, now: float, step: int = -1, segment: int = 0, pids: Iterable[int] = ()) -> list[Item]:
        """What one sample at ``now`` gives."""
        self.source.set_processes(pids)
        items = self.source.drain(now, step, segment)
        assert self._rang.wait(_PATIENCE_S), "no sample came"
        self._rang.clear()
        return items + self.source.drain(now, step, segment)

    def seek(self, now: float, wanted: Callable[[Item], bool], step: int = -1) -> tuple[Item, float]:
        """The first such item, and when it came: seconds go by until it does."""
        ends = time.monotonic() + _PATIENCE_S
        while time.monotonic() < ends:
            now += 1.0
            for item in self.source.drain(now, step):
                if wanted(item):
                    return item, now
        raise AssertionError("it never came")
