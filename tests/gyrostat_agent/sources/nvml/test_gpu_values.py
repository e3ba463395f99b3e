"""What is told of a GPU that is well, and of one that does not answer everything."""

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from nvml_runs import Looking, StandIn, records, words

from gyrostat_agent.sources import gpus as gpus_module
from gyrostat_agent.sources import gpuvalues, throttle

PAGE = Path(__file__).parents[4] / "docs/series.md"
GIB = 1 << 30


def test_every_number_is_told_in_its_unit(gpus: StandIn, looking: Looking) -> None:
    """A person reads bytes, watts, hertz and percent, and never NVML's milliwatts and megahertz."""
    gpus.set(
        {
            "0.util": 97, "0.copy": 41, "0.used": 60 * GIB, "0.celsius": 61, "0.milliwatts": 655250, "0.clock.sm": 1980,
            "0.throttle": 0x44, "0.ecc.uncorrected.volatile": 1, "0.ecc.corrected.volatile": 2,
            "0.ecc.uncorrected.aggregate": 3, "0.ecc.corrected.aggregate": 4, "0.rows.corrected": 5,
            "0.rows.uncorrected": 6, "0.rows.pending": 1, "0.replays": 7, "0.links": 18, "0.link.4": 0,
            "0.field.38": 8, "0.field.45": 9, "0.field.52": 10, "0.field.59": _bits(11.0), "0.field.160": 12,
            "0.field.197": 5_000_000, "0.field.198": 7_000_000,
        }
    )  # fmt: skip
    before = gpus.asked("nvmlDeviceGetPcieThroughput")
    told = dict(records(looking.sample(100.0))[0].values)
    assert gpus.asked("nvmlDeviceGetPcieThroughput") == before  # it is counted here, and need not be measured
    gpus.set({"0.field.197": 5_000_000 + 4_000, "0.field.198": 7_000_000 + 6_000})
    told |= {n: v for n, v in records(looking.sample(102.0))[0].values.items() if "pcie" in n}
    flags = {throttle.PREFIX + name: 0.0 for name in (*throttle.REASONS.values(), throttle.OTHER)}
    assert told == {
        **flags,
        "gpu_throttle_power_cap": 1.0,
        "gpu_throttle_hardware_thermal": 1.0,
        "gpu_utilization": 97.0,
        "gpu_memory_copy_utilization": 41.0,
        "gpu_memory_used_bytes": 60.0 * GIB,
        "gpu_memory_total_bytes": 85520809984.0,
        "gpu_temperature_celsius": 61.0,
        "gpu_power_watts": 655.25,
        "gpu_power_limit_watts": 700.0,
        "gpu_sm_clock_hertz": 1.98e9,
        "gpu_memory_clock_hertz": 2.619e9,
        "gpu_ecc_uncorrected_volatile_total": 1.0,
        "gpu_ecc_corrected_volatile_total": 2.0,
        "gpu_ecc_uncorrected_aggregate_total": 3.0,
        "gpu_ecc_corrected_aggregate_total": 4.0,
        "gpu_remapped_rows_correctable": 5.0,
        "gpu_remapped_rows_uncorrectable": 6.0,
        "gpu_remapped_rows_pending": 1.0,
        "gpu_remapped_rows_failed": 0.0,
        "gpu_pcie_replay_total": 7.0,
        "gpu_pcie_transmit_bytes_per_second": 2000.0,
        "gpu_pcie_receive_bytes_per_second": 3000.0,
        "gpu_nvlink_links": 18.0,
        "gpu_nvlink_links_active": 17.0,
        "gpu_nvlink_crc_errors_total": 17.0,
        "gpu_nvlink_replays_total": 10.0,
        "gpu_nvlink_recoveries_total": 11.0,
        "gpu_nvlink_ecc_errors_total": 12.0,
        "gpu_lost": 0.0,
        "gpu_xid_total": 0.0,
    }


def test_nvlink_errors_are_added_up_where_they_are_told_link_by_link(gpus: StandIn, looking: Looking) -> None:
    """Newer GPUs count for each link; one that flaps must show all the same."""
    gpus.set({"0.links": 3, "0.field.161.0": 1, "0.field.161.1": 2, "0.field.161.2": 4, "0.field.162.1": 5,
              "0.field.163.2": 6, "0.field.208.0": 7})  # fmt: skip
    told = records(looking.sample(100.0))[0].values
    assert {n: v for n, v in told.items() if "nvlink" in n} == {
        "gpu_nvlink_links": 3.0,
        "gpu_nvlink_links_active": 3.0,
        "gpu_nvlink_replays_total": 7.0,
        "gpu_nvlink_recoveries_total": 5.0,
        "gpu_nvlink_crc_errors_total": 6.0,
        "gpu_nvlink_receive_errors_total": 7.0,
    }


def test_nvlink_errors_that_are_told_both_ways_are_counted_once(gpus: StandIn, looking: Looking) -> None:
    """The total is the total."""
    gpus.set({"0.links": 2, "0.field.52": 3, "0.field.161.0": 1, "0.field.161.1": 2})
    assert records(looking.sample(100.0))[0].values["gpu_nvlink_replays_total"] == 3.0


def test_pcie_traffic_of_a_gpu_that_does_not_count_it_is_measured(gpus: StandIn, looking: Looking) -> None:
    """Older GPUs measure it on demand, which takes 40 ms: seldom, and told in bytes a second too."""
    gpus.set({"0.pcie.sent": 250, "0.pcie.received": 750})
    before = gpus.asked("nvmlDeviceGetPcieThroughput")
    told = records(looking.sample(100.0))[0].values
    assert told["gpu_pcie_transmit_bytes_per_second"] == 250e3
    assert told["gpu_pcie_receive_bytes_per_second"] == 750e3
    for second in range(1, gpuvalues.SELDOM):
        assert "gpu_pcie_receive_bytes_per_second" not in records(looking.sample(100.0 + second))[0].values
    assert gpus.asked("nvmlDeviceGetPcieThroughput") - before == 2


@pytest.mark.parametrize(("bit", "name"), throttle.REASONS.items(), ids=throttle.REASONS.values())
def test_each_reason_for_throttling_has_a_name(bit: int, name: str) -> None:
    """Heat, power and idleness ask for different people."""
    told = dict(throttle.flags(bit))
    assert [n for n, v in told.items() if v] == [f"gpu_throttle_{name}"]


def test_a_reason_that_a_newer_driver_knows_is_not_lost() -> None:
    """A GPU that is throttled for a reason without a name here is throttled all the same."""
    assert dict(throttle.flags(1 << 40))["gpu_throttle_other"] == 1.0


def test_a_number_that_the_driver_does_not_have_is_not_told(gpus: StandIn, looking: Looking) -> None:
    """NVML says all ones for "not available"; 4 million watts would fire every rule there is."""
    gpus.set({"0.milliwatts": 0xFFFFFFFF, "0.ecc.uncorrected.volatile": 2**64 - 1})
    told = records(looking.sample(100.0))[0].values
    assert "gpu_power_watts" not in told and "gpu_ecc_uncorrected_volatile_total" not in told
    assert told["gpu_temperature_celsius"] == 61.0


def test_a_number_that_is_none_is_not_told(gpus: StandIn, looking: Looking) -> None:
    """A NaN of the driver's is no NaN of the run's."""
    gpus.set({"0.field.52": 1, "0.field.59": _bits(math.nan)})
    told = records(looking.sample(100.0))[0].values
    assert "gpu_nvlink_recoveries_total" not in told and told["gpu_nvlink_replays_total"] == 1.0


def test_an_older_binding_tells_what_it_can(gpus: StandIn, looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-ml-py of some years ago lacks functions, and arguments of those that it has."""
    binding = pytest.importorskip("pynvml")
    newer = binding.nvmlDeviceGetMemoryInfo
    monkeypatch.setattr(binding, "nvmlDeviceGetMemoryInfo", lambda handle: newer(handle))
    monkeypatch.delattr(binding, "nvmlDeviceGetRemappedRows")
    monkeypatch.delattr(binding, "nvmlDeviceGetTemperatureV")
    items = looking.sample(100.0)
    told = records(items)[0].values
    assert told["gpu_memory_used_bytes"] == 61.0 * GIB and told["gpu_temperature_celsius"] == 61.0
    assert "gpu_remapped_rows_pending" not in told and [w[1] for w in words(items)] == ["fresh"]


def test_an_answer_that_is_none_costs_its_gpu_alone(
    gpus: StandIn, looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody foresaw is said of the GPU that did it, and the others are told."""
    binding = pytest.importorskip("pynvml")
    real = binding.nvmlDeviceGetPowerUsage
    gpus.set(count=2)
    looking.sample(100.0)
    asked: list[int] = []
    monkeypatch.setattr(
        binding, "nvmlDeviceGetPowerUsage", lambda h: asked.append(1) or ({} if len(asked) == 1 else real(h))
    )
    items = looking.sample(101.0)
    assert words(items)[0][:2] == ("gpu/0", "damaged") and "an answer that is none" in words(items)[0][2]
    assert records(items)[1].values["gpu_power_watts"] == 655.25
    assert [w[:2] for w in words(looking.sample(102.0))] == [("gpu/0", "fresh")]


NEVER = {"unsupported": 3, "forbidden": 4, "no such function": 13, "other version": 25}
ASKED = {
    "nvmlDeviceGetUtilizationRates": "gpu_utilization",
    "nvmlDeviceGetPowerUsage": "gpu_power_watts",
    "nvmlDeviceGetTotalEccErrors": "gpu_ecc_corrected_volatile_total",
    "nvmlDeviceGetRemappedRows": "gpu_remapped_rows_pending",
    "nvmlDeviceGetNvLinkState": "gpu_nvlink_links",
    "nvmlDeviceGetFieldValues": "gpu_nvlink_crc_errors_total",
}


@pytest.mark.parametrize("function", ASKED)
@pytest.mark.parametrize("code", NEVER.values(), ids=NEVER)
def test_what_is_not_supported_is_asked_once(gpus: StandIn, looking: Looking, function: str, code: int) -> None:
    """A workstation's GPU has no ECC and no NVLink: it is not asked for them 86,400 times a day."""
    gpus.set({f"0.error.{function}": code, "0.field.38": 1})
    told: set[str] = set()
    counts = []
    for second in range(2 * gpuvalues.SELDOM + 2):
        told |= records(looking.sample(100.0 + second))[0].values.keys()
        counts.append(gpus.asked(function))
    assert ASKED[function] not in told and "gpu_temperature_celsius" in told
    assert counts[-1] == counts[0]


@pytest.mark.parametrize("code", [999, 10, 20, 19], ids=["unknown", "timeout", "memory", "in use"])
def test_what_failed_once_is_asked_again(gpus: StandIn, looking: Looking, code: int) -> None:
    """A hiccup of the driver costs one value of one second."""
    gpus.set({"0.error.nvmlDeviceGetPowerUsage": code})
    assert "gpu_power_watts" not in records(looking.sample(100.0))[0].values
    gpus.unset("0.error.nvmlDeviceGetPowerUsage")
    assert records(looking.sample(101.0))[0].values["gpu_power_watts"] == 655.25


def test_what_one_gpu_does_not_support_is_asked_of_the_others(gpus: StandIn, looking: Looking) -> None:
    """Two kinds of GPU in one machine are two."""
    gpus.set({"count": 2, "0.error.nvmlDeviceGetPowerUsage": 3})
    looking.sample(100.0)
    told = records(looking.sample(101.0))
    assert "gpu_power_watts" not in told[0].values and told[1].values["gpu_power_watts"] == 655.25


def test_the_page_of_series_lists_what_is_told() -> None:
    """Who writes a rule finds every name on the page, and no name that is never told."""
    section = PAGE.read_text(encoding="utf-8").partition("## Told by the GPU source")[2].partition("\n## ")[0]
    listed = set(_expanded(re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)))
    own = {gpus_module.LOST, gpus_module.XID, gpus_module.XID_TOTAL, f"{gpus_module.XID}/<number>"}
    assert listed == gpuvalues.names() | own


def _bits(number: float) -> int:
    return int.from_bytes(struct.pack("<d", number), "little")


def _expanded(cells: list[str]) -> Iterator[str]:
    for cell in cells:
        yield from re.findall(r"`([^`]+)`", cell)
