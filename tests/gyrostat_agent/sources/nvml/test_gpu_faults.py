"""GPUs and drivers that fail: each is told once, in words and as a number, and none silences the others."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from nvml_runs import LIBRARY, Looking, StandIn, compiled, records, words

from gyrostat_agent.sources.gpu import GpuSource

AGENT_ALONE = """
import sys, threading
from gyrostat_agent.sources.gpu import GpuSource
from gyrostat_rules.inputs import SourceState
rang = threading.Event()
source = GpuSource(rang.set)
for now in (100.0, 101.0, 161.0, 221.0):
    items = source.drain(now)
    assert rang.wait(20)
    rang.clear()
    for item in items + source.drain(now):
        print(item.state, item.detail) if isinstance(item, SourceState) else print(sorted(item.values))
source.close()
"""


def test_who_is_here_is_told_once(gpus: StandIn, looking: Looking) -> None:
    """The journal says which GPUs a run had."""
    gpus.set(count=8)
    first = looking.sample(100.0)
    assert words(first) == [("gpu", "fresh", "8 GPU NVIDIA H100 80GB HBM3, driver 580.95.05")]
    assert not words(looking.sample(101.0))
    assert sorted(records(first)) == list(range(8))
    assert {r.incarnation for r in records(first).values()} == {f"GPU-0000-{i}" for i in range(8)}


@pytest.mark.parametrize(("code", "how"), [(15, "is lost"), (16, "must be reset")], ids=["lost", "reset"])
def test_a_gpu_lost_in_mid_run_is_a_fault_of_its_own(gpus: StandIn, looking: Looking, code: int, how: str) -> None:
    """The one on call reads which GPU it is; rules see it as a number; its neighbours go on."""
    gpus.set(count=3)
    looking.sample(100.0)
    gpus.set({"1.lost": code})
    items = looking.sample(101.0)
    assert words(items) == [
        ("gpu/1", "damaged", f"GPU 1 (GPU-0000-1) {how}; take this node out: only a reset or a reboot brings it back")
    ]
    told = records(items)
    assert {i: r.values["gpu_lost"] for i, r in told.items()} == {0: 0.0, 1: 1.0, 2: 0.0}
    assert "gpu_temperature_celsius" not in told[1].values and told[2].values["gpu_temperature_celsius"] == 61.0
    later = looking.sample(102.0)
    assert not words(later) and records(later)[1].values["gpu_lost"] == 1.0


def test_a_lost_gpu_is_left_alone_for_a_minute_and_comes_back(gpus: StandIn, looking: Looking) -> None:
    """A GPU that was reset is seen again without a restart of the agent, and one that was not costs nothing."""
    gpus.set({"0.lost": 15})
    looking.sample(100.0)
    before = gpus.asked("nvmlDeviceGetHandleByIndex_v2")
    for second in range(1, 60):
        looking.sample(100.0 + second)
    assert gpus.asked("nvmlDeviceGetHandleByIndex_v2") == before
    gpus.unset("0.lost")
    items = looking.sample(160.0)
    assert words(items) == [("gpu/0", "fresh", "GPU 0 answers again")]
    assert records(items)[0].values["gpu_lost"] == 0.0
    assert records(items)[0].values["gpu_temperature_celsius"] == 61.0
    gpus.set({"0.xid.0": 13, "0.xids": 1})
    assert records(looking.sample(161.0))[0].values["gpu_xid"] == 13.0


def test_a_gpu_that_was_lost_before_we_came_is_told_too(gpus: StandIn, looking: Looking) -> None:
    """An agent that begins after the fault must not count one GPU less and call it well."""
    gpus.set({"count": 2, "0.lost": 15})
    items = looking.sample(100.0)
    assert [w[:2] for w in words(items)] == [("gpu", "fresh"), ("gpu/0", "damaged")]
    assert "1 GPU that does not answer, 1 GPU NVIDIA H100" in words(items)[0][2]
    assert records(items)[0].values["gpu_lost"] == 1.0 and records(items)[1].values["gpu_lost"] == 0.0


def test_a_gpu_that_answers_nothing_is_said_to(gpus: StandIn, looking: Looking) -> None:
    """Silence must not read as healthy."""
    every = ("UtilizationRates", "MemoryInfo", "MemoryInfo_v2", "TemperatureV", "Temperature", "PowerUsage",
             "ClockInfo", "TotalEccErrors", "PcieReplayCounter", "CurrentClocksEventReasons", "PcieThroughput",
             "CurrentClocksThrottleReasons", "EnforcedPowerLimit", "RemappedRows", "NvLinkState",
             "FieldValues")  # fmt: skip
    gpus.set({"count": 2, **{f"1.error.nvmlDeviceGet{question}": 999 for question in every}})
    items = looking.sample(100.0)
    assert ("gpu/1", "damaged", "GPU 1 (GPU-0000-1) tells nothing: Unknown Error") in words(items)
    assert "gpu_temperature_celsius" in records(items)[0].values
    gpus.unset(*(f"1.error.nvmlDeviceGet{question}" for question in every))
    assert words(looking.sample(101.0)) == [("gpu/1", "fresh", "GPU 1 answers again")]


def test_a_driver_that_goes_away_and_comes_back_is_told_twice(gpus: StandIn, looking: Looking) -> None:
    """A driver that is updated under a run is one line, and one when it is there again."""
    gpus.set(count=2)
    looking.sample(100.0)
    gpus.set({"all.error.nvmlDeviceGetPowerUsage": 1})
    items = looking.sample(101.0)
    assert words(items) == [
        ("gpu", "damaged", "the NVIDIA driver does not answer, so GPUs are not seen: it was shut down")
    ]
    assert not records(items)
    assert not looking.sample(102.0)
    gpus.unset("all.error.nvmlDeviceGetPowerUsage")
    assert not looking.sample(160.0)
    items = looking.sample(161.0)
    assert words(items) == [("gpu", "fresh", "2 GPU NVIDIA H100 80GB HBM3, driver 580.95.05")]
    assert sorted(records(items)) == [0, 1]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"init": 9}, "the NVIDIA driver does not answer, so GPUs are not seen: its kernel module is not loaded"),
        (
            {"init": 18},
            "it is not the version of its kernel module, so it was updated under it; load that anew, or reb",
        ),
        ({"init": 999}, "the NVIDIA driver does not answer, so GPUs are not seen: Unknown Error"),
        ({"count": 0}, "the NVIDIA driver sees no GPU here"),
    ],
    ids=["not loaded", "updated", "unknown", "no GPU"],
)
def test_no_driver_is_said_once(gpus: StandIn, looking: Looking, state: dict[str, int], why: str) -> None:
    """A machine without GPUs is told in one line, not in one a second; a driver that comes later is seen."""
    gpus.set(state)
    (said,) = words(looking.sample(100.0))
    assert said[:2] == ("gpu", "damaged") and why in said[2]
    for second in range(1, 180, 20):
        assert not looking.sample(100.0 + second)
    gpus.set(init=0, count=1)
    items = looking.sample(400.0)
    assert [w[:2] for w in words(items)] == [("gpu", "fresh")] and records(items)


def test_no_library_is_said_once(nvml_library: Path, tmp_path: Path) -> None:
    """So is a machine where the driver was never installed; the binding itself looks for the library here."""
    (tmp_path / LIBRARY).write_text("no library at all")  # found first, so that this holds on a machine with a driver
    said = _alone(tmp_path)
    assert said == ["damaged no NVIDIA driver is here (libnvidia-ml.so.1 is not found), so GPUs are not seen"]


def test_a_driver_of_some_years_ago_tells_what_it_can(tmp_path: Path) -> None:
    """Functions that it lacks are left out; where an older one says the same, that is asked."""
    library = compiled(tmp_path, "-DOLD")
    (tmp_path / "state").write_text("count 1\n")
    said = _alone(library.parent, STAND_IN_STATE=str(tmp_path / "state"))
    assert said[0].startswith("fresh 1 GPU")
    first = said[1]
    for name in ("gpu_temperature_celsius", "gpu_throttle_power_cap", "gpu_memory_used_bytes", "gpu_nvlink_links"):
        assert f"'{name}'" in first
    assert "gpu_remapped_rows" not in first


def test_without_the_binding_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent runs without nvidia-ml-py, and says once what it does not see."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    looking = Looking()
    assert words(looking.sample(100.0)) == [
        ("gpu", "damaged", "nvidia-ml-py is not installed, so GPUs are not seen: pip install 'gyrostat[gpu]'")
    ]
    assert not looking.sample(200.0)
    looking.source.close()


def test_another_module_of_that_name_is_a_fault_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw ends no loop: it is said, once, and looked for again."""
    monkeypatch.setitem(sys.modules, "pynvml", ModuleType("pynvml"))
    looking = Looking()
    (said,) = words(looking.sample(100.0))
    assert said[:2] == ("gpu", "damaged") and "the GPUs cannot be read" in said[2]
    assert [w[1] for w in words(looking.sample(101.0))] == ["damaged"]
    assert not looking.sample(102.0)
    looking.source.close()


def test_the_driver_is_let_go_of(gpus: StandIn) -> None:
    """An agent that ends, or that failed to open the driver, keeps no hold of it: it could not be updated."""
    before = gpus.times_open()
    looking = Looking()
    gpus.set(counting=999)
    looking.sample(100.0)
    assert gpus.times_open() == before
    gpus.set(counting=0)
    looking.sample(160.0)
    assert gpus.times_open() == before + 1
    looking.source.close()
    assert gpus.times_open() == before


def test_a_driver_that_hangs_hangs_nobody_else(gpus: StandIn, looking: Looking) -> None:
    """A GPU that falls off its bus was seen to block its driver for minutes: the agent must decide meanwhile."""
    looking.sample(100.0)
    gpus.set({"0.hang": 1})
    began = time.monotonic()
    assert not looking.source.drain(101.0)
    assert not looking.source.drain(130.0)
    (said,) = words(looking.source.drain(132.0))
    assert said == ("gpu", "damaged", "the NVIDIA driver has not answered for 30 s")
    assert not looking.source.drain(190.0)
    assert time.monotonic() - began < 5.0
    gpus.unset("0.hang")
    looking.wait()
    items = looking.source.drain(191.0)
    assert words(items) == [("gpu", "fresh", "answers again")] and records(items)


def test_a_source_whose_driver_hangs_can_be_closed(gpus: StandIn) -> None:
    """An agent that is told to end ends."""
    gpus.set({"0.hang": 1})
    source = GpuSource()
    source.drain(100.0)
    began = time.monotonic()
    source.close()
    assert time.monotonic() - began < 5.0
    gpus.unset("0.hang")


def _alone(folder: Path, **more: str) -> list[str]:
    """What a source says in a process of its own, whose library is looked for in ``folder``."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **more}
    done = subprocess.run(
        [sys.executable, "-c", AGENT_ALONE], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert not done.stderr
    return done.stdout.splitlines()
