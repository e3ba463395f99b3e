"""GPU source: what the driver says of this machine's GPUs, as one record a GPU and second, and its faults in words.

Drained by the loop. A record bears role ``gpu``, the GPU's index as the driver counts them (in the order of their PCI
addresses: not CUDA's, where CUDA_VISIBLE_DEVICES is set), and its UUID as the incarnation: another GPU in the same slot
is another life. Its step is the one that the trainer is at, the one after the newest it has told: on that the GPU was
working. Several samples of one step are one record to the engine, in which the newest value stands.

No fault of ours ever blinds a rule: the state told is ``damaged``, never ``stale``, which holds actions back, nor
``gone``, which silences the stall rule at the very moment at which a lost GPU stalls the run.
"""

from collections.abc import Callable, Iterator, Mapping

from gyrostat.wire import Record
from gyrostat_agent.sources import xids
from gyrostat_agent.sources.gpus import GpuReading, Gpus, GpuSample
from gyrostat_agent.sources.sampler import Sampler
from gyrostat_rules.inputs import Item, SourceState, SourceWord

ROLE = "gpu"
_HANGS_SECONDS = 30.0


class GpuSource:
    """One run's view of the GPUs, sampled every ``every`` seconds (1 at least).

    ``wake`` is called from another thread when a sample is worth draining.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None, every: float = 1.0) -> None:
        gpus = Gpus()
        self._sampler = Sampler(gpus.take, gpus.close, max(1.0, every), wake)
        self._sequences: dict[int, int] = {}
        self._said: dict[str, str] = {}
        self._xids: set[tuple[int, int]] = set()

    def drain(self, now: float, step: int = -1, segment: int = 0) -> list[Item]:
        """What has been sampled since the last call, at once; ``now`` is Unix seconds.

        ``step`` is the newest that the trainer has told, -1 where it has told none, and ``segment`` its segment.
        """
        items: list[Item] = []
        for sample in self._sampler.drain(now):
            if isinstance(sample, Exception):
                items += self._say(ROLE, f"the GPUs cannot be read: {sample!r}", "are read again")
            else:
                items += self._told(sample, max(step, -1) + 1, segment)
        if self._sampler.waiting(now) > _HANGS_SECONDS:
            items += self._say(ROLE, f"the NVIDIA driver has not answered for {_HANGS_SECONDS:.0f} s", "answers again")
        return items

    def offsets(self) -> Mapping[str, int]:
        """Nothing can be read twice here."""
        return {}

    def close(self) -> None:
        """Let go of the driver; one that hangs is left behind."""
        self._sampler.close()

    def _told(self, sample: GpuSample, step: int, segment: int) -> Iterator[Item]:
        if sample.news:
            self._said[ROLE] = ""
            yield SourceState(ROLE, SourceWord.FRESH, sample.news)
        yield from self._say(ROLE, sample.fault, "answers again")
        for number in sample.nowhere:
            yield from self._first(-1, number, "a GPU, the driver does not say which")
        for reading in sample.readings:
            yield from self._reading(reading, sample.at, step, segment)

    def _reading(self, reading: GpuReading, at: float, step: int, segment: int) -> Iterator[Item]:
        index = reading.rank
        for number in reading.xids:
            yield from self._first(index, number, f"GPU {index}")
        yield from self._say(f"{ROLE}/{index}", reading.fault, f"GPU {index} answers again")
        sequence = self._sequences[index] = self._sequences.get(index, 0) + 1
        yield Record(ROLE, index, reading.uuid, segment, sequence, step, at, reading.values)

    def _say(self, source: str, fault: str, mended: str) -> Iterator[SourceState]:
        """A fault, once; and once that it is over."""
        known, self._said[source] = self._said.get(source, ""), fault
        if fault != known:
            word = SourceWord.DAMAGED if fault else SourceWord.FRESH
            yield SourceState(source, word, fault or mended)

    def _first(self, index: int, number: int, who: str) -> Iterator[SourceState]:
        """An XID in words, the first of its number: a program that faults without end must not fill the journal."""
        if (index, number) not in self._xids:
            self._xids.add((index, number))
            source = f"{ROLE}/{index} xid" if index >= 0 else f"{ROLE} xid"
            yield SourceState(source, SourceWord.DAMAGED, f"{xids.in_words(number)} on {who}")
