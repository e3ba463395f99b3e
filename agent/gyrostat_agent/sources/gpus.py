"""GPUs: one sample of every GPU of this machine. One that fails is a fault of its own and silences no other.

Called by GpuSource, in the sampler's thread, which alone touches the driver. A driver that is not there, and a GPU that
is lost, are looked for again every minute: a GPU comes back with a reset, a driver with its installer.
"""

import math
from collections import Counter
from itertools import chain
from typing import NamedTuple

from gyrostat_agent.sources import gpuvalues, xids
from gyrostat_agent.sources.gpuevents import NOWHERE, GpuEvents
from gyrostat_agent.sources.nvml import Device, Driver, GpuLost, NoDriver
from gyrostat_agent.sources.rates import Rates

LOST, XID, XID_TOTAL = "gpu_lost", "gpu_xid", "gpu_xid_total"
_AGAIN_SECONDS = 60.0


class GpuReading(NamedTuple):
    """One GPU at one moment. ``fault`` is what is wrong with it, in words, or ''; ``xids`` are new ones."""

    rank: int
    uuid: str
    values: dict[str, float]
    fault: str = ""
    xids: tuple[int, ...] = ()


class GpuSample(NamedTuple):
    """All GPUs at one moment, Unix seconds. ``fault``: why none is seen, or ''; ``news``: who is here, told once.

    ``nowhere`` are XIDs of which the driver does not say whose they are.
    """

    at: float
    readings: tuple[GpuReading, ...] = ()
    fault: str = ""
    news: str = ""
    nowhere: tuple[int, ...] = ()


class _Gpu:
    """One GPU as it fares from sample to sample."""

    def __init__(self, device: Device) -> None:
        self.device, self.rates = device, Rates()
        self.lost = ""
        self.looked = -math.inf
        self.samples = 0
        self.xids: Counter[int] = Counter()


class Gpus:
    """All GPUs; opened with the first sample."""

    def __init__(self) -> None:
        self._driver: Driver | None = None
        self._events: GpuEvents | None = None
        self._gpus: list[_Gpu] = []
        self._looked = -math.inf
        self._why = ""
        self._changed = False  # which of them can be watched
        self._early: list[tuple[int, int]] = []  # XIDs for the next sample

    def take(self, now: float) -> GpuSample:
        """A sample of all of them, at ``now``."""
        news = ""
        try:
            if self._driver is None:
                if now - self._looked < _AGAIN_SECONDS:
                    return GpuSample(now, fault=self._why)
                self._looked, self._why = now, "the GPUs could not be looked for"
                news = self._open(now)
            new = self._new_xids()
            readings = tuple(self._read(gpu, now, [x for i, x in new if i == gpu.device.index]) for gpu in self._gpus)
            self._watch()
            return GpuSample(now, readings, "", news, tuple(x for i, x in new if i == NOWHERE))
        except NoDriver as error:
            self.close()
            self._looked, self._why = now, str(error)
            return GpuSample(now, fault=self._why)

    def close(self) -> None:
        """Let go of the driver."""
        if self._events is not None:
            self._events.close()
        if self._driver is not None:
            self._driver.close()
        self._driver = self._events = None

    def _open(self, now: float) -> str:
        self._driver = driver = Driver()
        if not driver.devices:
            raise NoDriver("the NVIDIA driver sees no GPU here")
        self._gpus = [_Gpu(device) for device in driver.devices]
        for gpu in self._gpus:
            self._find(gpu, now)
        self._events = GpuEvents(driver.library)
        self._watch()
        kinds = Counter(gpu.device.name or "that does not answer" for gpu in self._gpus)
        blind = "; XIDs are not told by this driver" if self._events.unwatched else ""
        return f"{', '.join(f'{n} GPU {name}' for name, n in kinds.items())}, driver {driver.version}{blind}"

    def _new_xids(self) -> list[tuple[int, int]]:
        before, self._early = self._early, []
        return before + (self._events.take() if self._events is not None else [])

    def _watch(self) -> None:
        """Watch those that are there now. What is told until then is taken first, and told with the next sample."""
        if self._changed and self._events is not None:
            self._changed, self._early = False, self._events.take()
            self._events.watch(self._there())

    def _there(self) -> list[Device]:
        return [gpu.device for gpu in self._gpus if gpu.device.handle is not None]

    def _read(self, gpu: _Gpu, now: float, new: list[int]) -> GpuReading:
        """Ask one GPU; what it told before it was lost is told still."""
        gpu.xids.update(new)
        values: dict[str, float] = {}
        fault = ""
        if gpu.device.handle is None and now - gpu.looked >= _AGAIN_SECONDS:
            self._find(gpu, now)
        try:
            if gpu.device.handle is not None:
                self._ask(gpu, now, values)
        except GpuLost as error:
            self._lose(gpu, now, str(error))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            fault = f"GPU {gpu.device.index} gives an answer that is none: {error!r}"
        fault = fault or self._fault(gpu, values)
        values[LOST] = float(bool(gpu.lost))
        values.update(_told(gpu.xids, new))
        return GpuReading(gpu.device.index, gpu.device.uuid, values, fault, tuple(new))

    @staticmethod
    def _ask(gpu: _Gpu, now: float, values: dict[str, float]) -> None:
        told = gpuvalues.each_time(gpu.device, gpu.rates, now)
        if gpu.samples % gpuvalues.SELDOM == 0:
            told = chain(told, gpuvalues.seldom(gpu.device))
        for name, value in told:  # one by one: what was answered before a loss is kept
            if math.isfinite(value):
                values[name] = value
        gpu.samples += 1

    def _find(self, gpu: _Gpu, now: float) -> None:
        gpu.looked, gpu.lost = now, ""
        try:
            gpu.device.find()
        except GpuLost as error:
            self._lose(gpu, now, str(error))
        self._changed = self._changed or gpu.device.handle is not None

    def _lose(self, gpu: _Gpu, now: float, how: str) -> None:
        gpu.lost, gpu.looked, gpu.device.handle = how, now, None
        self._changed = True

    @staticmethod
    def _fault(gpu: _Gpu, values: dict[str, float]) -> str:
        who = f"GPU {gpu.device.index}" + (f" ({gpu.device.uuid})" if gpu.device.uuid else "")
        if gpu.lost:
            before = f" after {xids.in_words(xids.gravest(gpu.xids))}" if gpu.xids else ""
            return f"{who} {gpu.lost}{before}; take this node out: only a reset or a reboot brings it back"
        return "" if values else f"{who} tells nothing: {gpu.device.trouble or 'no question of ours is supported'}"


def _told(counts: Counter[int], new: list[int]) -> dict[str, float]:
    told = {XID_TOTAL: float(counts.total()), **{f"{XID}/{number}": float(n) for number, n in counts.items()}}
    return {**told, XID: float(xids.gravest(new))} if new else told
