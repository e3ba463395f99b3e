"""Host source: what the kernel says of the machine that the run is on, as one record a second, and its faults in words;
how long checkpoints take to be saved, and what room there is for the next.

Drained by the loop. A record bears role ``host``, the machine's rank, and the id of its boot as the incarnation; as to
its step and to faults, what ``gpu`` says holds here too. All is read from /proc, /sys and the kernel's log, without
psutil: that knows one /proc for the whole process, and a sidecar may see its host's elsewhere.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from gyrostat.wire import Record
from gyrostat.wire.fields import clean
from gyrostat_agent.sources import xids
from gyrostat_agent.sources.checkpointfolder import Saved
from gyrostat_agent.sources.checkpointtimes import CheckpointTimes
from gyrostat_agent.sources.hosts import Host, HostSample
from gyrostat_agent.sources.sampler import Sampler
from gyrostat_agent.sources.xids import Xid
from gyrostat_rules.inputs import Item, SourceState, SourceWord

ROLE = "host"
_HANGS_SECONDS = 30.0
_KILLS = {"host_cgroup_oom_kills_total": "of the run's cgroup", "host_oom_kills_total": "of this machine"}


class HostSource:
    """One run's view of its machine, sampled every ``every`` seconds (1 at least).

    ``wake`` is called from another thread when a sample is worth draining; ``rank`` tells machines apart; ``proc``,
    ``sys`` and ``dev`` are where the kernel shows itself; ``checkpoints`` are folders that checkpoints are saved in.
    """

    def __init__(
        self,
        wake: Callable[[], None] = lambda: None,
        every: float = 1.0,
        rank: int = 0,
        proc: str = "/proc",
        sys: str = "/sys",
        dev: str = "/dev",
        checkpoints: Iterable[str] = (),
    ) -> None:
        self._host = Host(proc, sys, dev)
        self._sampler = Sampler(self._host.take, self._host.close, max(1.0, every), wake)
        self._times = CheckpointTimes(checkpoints)
        # Of its own: a file server that hangs must not hide the machine. What it has comes with the machine's next.
        self._looks = Sampler(self._times.look, lambda: None, max(1.0, every), lambda: None)
        self._rank, self._sequence = rank, 0
        self._said: dict[str, str] = {}
        self._xids: Counter[int] = Counter()
        self._told_xids: set[tuple[int, str]] = set()
        self._kills: dict[str, float] = {}

    def drain(self, now: float, step: int = -1, segment: int = 0) -> list[Item]:
        """What has been sampled since the last call, at once; ``now`` is Unix seconds.

        ``step`` is the newest that the trainer has told, -1 where it has told none, and ``segment`` its segment.
        """
        items: list[Item] = []
        for sample in self._sampler.drain(now):
            if isinstance(sample, Exception):
                items += self._say("", f"this machine cannot be read: {sample!r}")
            else:
                items += self._told(sample, max(step, -1) + 1, segment)
        if self._sampler.waiting(now) > _HANGS_SECONDS:
            items += self._say("", f"the kernel has not answered for {_HANGS_SECONDS:.0f} s: is a device hanging?")
        return [*items, *self._of_checkpoints(now, max(step, -1) + 1, segment)]

    def set_root(self, path: str) -> None:
        """Where the trainer says its checkpoints lie: they are timed there too."""
        self._times.set_root(path)

    def set_processes(self, pids: Iterable[int]) -> None:
        """Those of the run's processes, as they number themselves: what was never seen here is not counted."""
        self._host.pids = tuple(pids)

    def offsets(self) -> Mapping[str, int]:
        """Nothing can be read twice here."""
        return {}

    def close(self) -> None:
        """Let go of what is open."""
        self._sampler.close()
        self._looks.close()

    def _told(self, sample: HostSample, step: int, segment: int) -> Iterator[Item]:
        for part, fault in {"": "", **sample.faults}.items():
            yield from self._say(part, fault)
        for xid in sample.xids:
            yield from self._first(xid)
        yield from self._killed(sample.values)
        self._xids.update(xid.number for xid in sample.xids)
        yield self._record({**sample.values, **self._of_xids(sample.xids)}, step, segment, sample.at)

    def _record(self, values: dict[str, float], step: int, segment: int, at: float) -> Record:
        self._sequence += 1
        return Record(ROLE, self._rank, self._host.life, segment, self._sequence, step, at, values)

    def _of_checkpoints(self, now: float, step: int, segment: int) -> Iterator[Item]:
        if not self._times.roots:
            return
        for look in self._looks.drain(now):
            if isinstance(look, Exception):
                yield from self._say("checkpoints", f"checkpoints cannot be looked at: {look!r}")
                continue
            for root, fault in {"": "", **look.faults}.items():
                yield from self._say(clean(f"checkpoints {root}".rstrip()), fault)
            yield from (self._record(_values(saved), step, segment, look.at) for saved in look.saved)
            if look.room:
                yield self._record(look.room, step, segment, look.at)
        if self._looks.waiting(now) > _HANGS_SECONDS:
            fault = f"no answer for {_HANGS_SECONDS:.0f} s from the file system of the checkpoints: does it hang?"
            yield from self._say("checkpoints", fault)

    def _of_xids(self, new: tuple[Xid, ...]) -> dict[str, float]:
        told = {f"host_xid/{number}": float(count) for number, count in self._xids.items()}
        if told or not self._said.get("kernel log"):  # a log that cannot be read counts none, which is not 0
            told["host_xid_total"] = float(self._xids.total())
        return {**told, "host_xid": float(xids.gravest(x.number for x in new))} if new else told

    def _first(self, xid: Xid) -> Iterator[SourceState]:
        """An XID in words, the first of its number and GPU."""
        if (xid.number, xid.device) not in self._told_xids:
            self._told_xids.add((xid.number, xid.device))
            whose = f" on the GPU at {xid.device}" if xid.device else ""
            by = f", met by process {xid.pid}" if xid.pid >= 0 else ""
            source = f"{ROLE}/{self._rank} xid {xid.device}".rstrip()
            yield SourceState(source, SourceWord.DAMAGED, f"{xids.in_words(xid.number)}{whose}{by}")

    def _killed(self, values: dict[str, float]) -> Iterator[SourceState]:
        """Kills since the agent began: the first thing to know of a process that ended by SIGKILL."""
        before, self._kills = self._kills, {name: values[name] for name in _KILLS if name in values}
        new = {name: count - before[name] for name, count in self._kills.items() if name in before}
        name = next((name for name in _KILLS if new.get(name, 0) > 0), "")  # the run's own are the machine's too
        if name:
            count = "a process" if new[name] == 1 else f"{new[name]:.0f} processes"
            text = f"the kernel has killed {count} {_KILLS[name]} for want of memory ({values[name]:.0f} in all)"
            yield SourceState(f"{ROLE}/{self._rank} memory", SourceWord.DAMAGED, text)

    def _say(self, part: str, fault: str) -> Iterator[SourceState]:
        """A fault of one part, once; and once that it is over."""
        source = f"{ROLE}/{self._rank} {part}".rstrip()
        known, self._said[part] = self._said.get(part, ""), fault
        if fault != known:
            word = SourceWord.DAMAGED if fault else SourceWord.FRESH
            yield SourceState(source, word, fault or f"{part or 'the machine'} can be read again")


def _values(saved: Saved) -> dict[str, float]:
    told = {"checkpoint_seconds": saved.seconds, "checkpoint_bytes": float(saved.bytes)}
    return {**told, "checkpoint_bytes_per_second": saved.bytes / saved.seconds} if saved.seconds else told
