"""GPU values: what one GPU is asked, and under which names and units the answers are told.

Called by ``gpus``. docs/series.md lists every name; a test holds it to this. What changes from one second to the next
is asked each time, the rest SELDOM: on some GPUs each of those questions costs milliseconds.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gyrostat_agent.sources import throttle
from gyrostat_agent.sources.nvml import Device, never_will
from gyrostat_agent.sources.rates import Rates

SELDOM = 10  # samples from one such question to the next

_CORRECTED, _UNCORRECTED, _SINCE_BOOT, _EVER = 0, 1, 0, 1
_CORE, _SM, _MEMORY = 0, 1, 2  # a sensor; two clocks
_NOTHING = {0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF}  # NVML's word for a number that it does not have
_KINDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # of a field, by its type's number
_SENT, _RECEIVED = (197, 0), (198, 0)  # bytes over PCIe, where the GPU counts them

Told = Iterator[tuple[str, float]]
Field = tuple[int, int]  # number and scope, which for NVLink is the link


class _Plain(NamedTuple):
    """A question whose answer is one number; the first of several spellings that this driver knows."""

    name: str
    scale: float
    spellings: tuple[tuple[Any, ...], ...]


_EACH_TIME = (
    _Plain("gpu_temperature_celsius", 1.0, (("nvmlDeviceGetTemperatureV", _CORE), ("nvmlDeviceGetTemperature", _CORE))),
    _Plain("gpu_power_watts", 1e-3, (("nvmlDeviceGetPowerUsage",),)),
    _Plain("gpu_sm_clock_hertz", 1e6, (("nvmlDeviceGetClockInfo", _SM),)),
    _Plain("gpu_memory_clock_hertz", 1e6, (("nvmlDeviceGetClockInfo", _MEMORY),)),
    _Plain("gpu_ecc_uncorrected_volatile_total", 1.0, (("nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _SINCE_BOOT),)),
    _Plain("gpu_ecc_corrected_volatile_total", 1.0, (("nvmlDeviceGetTotalEccErrors", _CORRECTED, _SINCE_BOOT),)),
    _Plain("gpu_pcie_replay_total", 1.0, (("nvmlDeviceGetPcieReplayCounter",),)),
)
_SELDOM = (
    _Plain("gpu_power_limit_watts", 1e-3, (("nvmlDeviceGetEnforcedPowerLimit",),)),
    _Plain("gpu_ecc_uncorrected_aggregate_total", 1.0, (("nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _EVER),)),
    _Plain("gpu_ecc_corrected_aggregate_total", 1.0, (("nvmlDeviceGetTotalEccErrors", _CORRECTED, _EVER),)),
)
_REASONS = (("nvmlDeviceGetCurrentClocksEventReasons",), ("nvmlDeviceGetCurrentClocksThrottleReasons",))
_MEMORY_V2 = 0x2000028  # leaves out what the driver keeps for itself, as nvidia-smi does
_BYTES = (("nvmlDeviceGetMemoryInfo", _MEMORY_V2), ("nvmlDeviceGetMemoryInfo",))
_ROWS = ("correctable", "uncorrectable", "pending", "failed")
_LINKS = "gpu_nvlink_links"
# Which fields count what: for all links of a GPU or, on GPUs that have no such total, link by link.
_NVLINK = {
    "gpu_nvlink_crc_errors_total": ((38, 45), (163,)),
    "gpu_nvlink_replays_total": ((52,), (161,)),
    "gpu_nvlink_recoveries_total": ((59,), (162, 215)),
    "gpu_nvlink_ecc_errors_total": ((160,), ()),
    "gpu_nvlink_receive_errors_total": ((), (208,)),
}


def each_time(device: Device, rates: Rates, now: float) -> Told:
    """What is told of a GPU each second. Raises GpuLost, NoDriver."""
    if (use := device.ask("nvmlDeviceGetUtilizationRates")) is not None:
        yield "gpu_utilization", float(use.gpu)
        yield "gpu_memory_copy_utilization", float(use.memory)
    if (memory := _first(device, _BYTES)) is not None:
        yield "gpu_memory_used_bytes", float(memory.used)
        yield "gpu_memory_total_bytes", float(memory.total)
    yield from _plain(device, _EACH_TIME)
    if (bits := _first(device, _REASONS)) is not None:
        yield from throttle.flags(int(bits))
    counted = _fields(device, (_SENT, _RECEIVED))
    for field, name in ((_SENT, "transmit"), (_RECEIVED, "receive")):
        if field in counted and (rate := rates.of(name, counted[field], now)) is not None:
            yield f"gpu_pcie_{name}_bytes_per_second", rate


def seldom(device: Device) -> Told:
    """What hardly changes, and what is dear to ask. Raises GpuLost, NoDriver."""
    yield from _plain(device, _SELDOM)
    if (rows := device.ask("nvmlDeviceGetRemappedRows")) is not None:
        yield from ((f"gpu_remapped_rows_{word}", float(count)) for word, count in zip(_ROWS, rows, strict=False))
    for direction, (field, name) in enumerate(((_SENT, "transmit"), (_RECEIVED, "receive"))):
        # It measures for 20 ms, so only where nothing is counted. In KB a second.
        if _is_refused(device, field) and (rate := device.ask("nvmlDeviceGetPcieThroughput", direction)) is not None:
            yield f"gpu_pcie_{name}_bytes_per_second", 1e3 * rate
    yield from _nvlink(device)


def names() -> set[str]:
    """Every name that may be told here."""
    plain = {p.name for p in (*_EACH_TIME, *_SELDOM)}
    reasons = {throttle.PREFIX + r for r in (*throttle.REASONS.values(), throttle.OTHER)}
    memory = {"gpu_memory_used_bytes", "gpu_memory_total_bytes"}
    traffic = {f"gpu_pcie_{way}_bytes_per_second" for way in ("transmit", "receive")}
    links = {_LINKS, f"{_LINKS}_active", *_NVLINK}
    rows = {f"gpu_remapped_rows_{word}" for word in _ROWS}
    return plain | reasons | memory | traffic | links | rows | {"gpu_utilization", "gpu_memory_copy_utilization"}


def _plain(device: Device, questions: tuple[_Plain, ...]) -> Told:
    for name, scale, spellings in questions:
        answer = _first(device, spellings)
        if answer is not None and answer not in _NOTHING:
            yield name, scale * answer


def _first(device: Device, spellings: tuple[tuple[Any, ...], ...]) -> Any:
    """The answer to the first spelling that the driver has not refused."""
    for spelling in spellings:
        if (answer := device.ask(*spelling)) is not None:
            return answer
    return None


def _nvlink(device: Device) -> Told:
    states = {}
    for link in range(36):  # as many as NVML can name; each that this GPU has not is refused once
        if (state := device.ask("nvmlDeviceGetNvLinkState", link)) is not None:
            states[link] = bool(state)
    if not states:
        return
    yield _LINKS, float(len(states))
    yield f"{_LINKS}_active", float(sum(states.values()))
    wanted = [(number, 0) for totals, _ in _NVLINK.values() for number in totals]
    wanted += [(number, link) for _, single in _NVLINK.values() for number in single for link in states]
    counted = _fields(device, tuple(wanted))
    for name, (totals, single) in _NVLINK.items():
        found = [counted[n, 0] for n in totals if (n, 0) in counted]
        found = found or [counted[n, link] for n in single for link in states if (n, link) in counted]
        if found:
            yield name, sum(found)


def _fields(device: Device, wanted: tuple[Field, ...]) -> dict[Field, float]:
    """Those of the fields that this GPU has, in one question."""
    asked = tuple(w for w in wanted if not _is_refused(device, w))
    answers = device.ask("nvmlDeviceGetFieldValues", asked) if asked else None
    counted = {}
    for field, answer in zip(asked, answers or (), strict=False):
        if answer.nvmlReturn == 0 and answer.valueType < len(_KINDS):
            counted[field] = float(getattr(answer.value, _KINDS[answer.valueType]))
        elif never_will(answer.nvmlReturn):
            device.refuse("field", *field)
    return counted


def _is_refused(device: Device, field: Field) -> bool:
    return device.refuses("field", *field)
