"""XIDs by the driver's events: whose, how often, in words once; and never by waiting."""

import pytest
from nvml_runs import Looking, StandIn, records, words

from gyrostat_agent.sources.xids import Xid, XidLines, gravest, in_words, is_of_the_node


def test_an_xid_is_told_of_its_gpu(gpus: StandIn, looking: Looking) -> None:
    """A GPU that falls off the bus is named, with what that means."""
    gpus.set(count=4)
    assert records(looking.sample(100.0))[2].values["gpu_xid_total"] == 0.0
    gpus.set({"2.xid.0": 79, "2.xids": 1})
    items = looking.sample(101.0)
    assert words(items) == [("gpu/2 xid", "damaged", "XID 79 (the GPU has fallen off the bus) on GPU 2")]
    told = records(items)
    assert told[2].values["gpu_xid"] == 79.0
    assert told[2].values["gpu_xid/79"] == told[2].values["gpu_xid_total"] == 1.0
    assert "gpu_xid" not in told[1].values and told[1].values["gpu_xid_total"] == 0.0
    after = records(looking.sample(102.0))[2].values
    assert "gpu_xid" not in after and after["gpu_xid/79"] == 1.0


def test_a_burst_of_xids_is_counted_and_the_gravest_leads(gpus: StandIn, looking: Looking) -> None:
    """A program that faults a hundred times beside one memory error must not hide it, nor fill the journal."""
    looking.sample(100.0)
    gpus.set({**{f"0.xid.{i}": 31 for i in range(100)}, "0.xid.40": 48, "0.xids": 100})
    items = looking.sample(101.0)
    told = records(items)[0].values
    assert (told["gpu_xid"], told["gpu_xid/31"], told["gpu_xid/48"], told["gpu_xid_total"]) == (48.0, 99.0, 1.0, 100.0)
    assert [w[2].partition(" (")[0] for w in words(items)] == ["XID 31", "XID 48"]
    gpus.set({**{f"0.xid.{i}": 31 for i in range(100, 150)}, "0.xids": 150})
    items = looking.sample(102.0)
    assert not words(items) and records(items)[0].values["gpu_xid/31"] == 149.0


def test_more_xids_than_one_sample_takes_come_with_the_next(gpus: StandIn, looking: Looking) -> None:
    """A storm keeps no GPU waiting, and none of it is lost."""
    looking.sample(100.0)
    gpus.set({**{f"0.xid.{i}": 13 for i in range(400)}, "0.xids": 400})
    first = records(looking.sample(101.0))[0].values["gpu_xid_total"]
    assert 0 < first < 400
    assert records(looking.sample(102.0))[0].values["gpu_xid_total"] == 400.0


def test_what_happened_before_we_came_is_not_this_runs(gpus: StandIn, looking: Looking) -> None:
    """Last week's XID is no news."""
    gpus.set({"0.xid.0": 79, "0.xids": 1})
    assert records(looking.sample(100.0))[0].values["gpu_xid_total"] == 0.0


def test_a_lost_gpu_is_told_with_the_xid_before_it(gpus: StandIn, looking: Looking) -> None:
    """The loss and its reason are one story."""
    looking.sample(100.0)
    gpus.set({"0.xid.0": 119, "0.xids": 1})
    looking.sample(101.0)
    gpus.set({"0.lost": 15})
    (said,) = words(looking.sample(102.0))
    assert "is lost after XID 119 (the GPU's own processor does not answer the driver); take this node out" in said[2]


def test_the_xids_of_others_are_told_while_one_gpu_is_lost(gpus: StandIn, looking: Looking) -> None:
    """A set of events with a lost GPU in it tells of nothing else: the loss must not make us blind to the next."""
    gpus.set(count=2)
    looking.sample(100.0)
    gpus.set({"0.lost": 15, "0.mute": 1})
    looking.sample(101.0)
    gpus.set({"1.xid.0": 74, "1.xids": 1})
    assert records(looking.sample(102.0))[1].values["gpu_xid"] == 74.0


def test_an_xid_that_comes_while_another_gpu_is_being_lost_is_told(gpus: StandIn, looking: Looking) -> None:
    """One board takes another with it: the second one's news must not fall between two sets of events."""
    gpus.set(count=2)
    looking.sample(100.0)
    gpus.set({"0.hang": 1})
    before = gpus.asked("nvmlDeviceGetUtilizationRates")
    looking.source.drain(101.0)
    gpus.until_asked("nvmlDeviceGetUtilizationRates", before)  # events have been taken, and GPU 0 hangs
    gpus.set({"1.xid.0": 74, "1.xids": 1, "0.lost": 15})
    gpus.unset("0.hang")
    looking.wait()
    first = records(looking.source.drain(101.0))
    assert first[0].values["gpu_lost"] == 1.0 and "gpu_xid" not in first[1].values
    assert records(looking.sample(102.0))[1].values["gpu_xid"] == 74.0


def test_an_xid_that_the_driver_does_not_place_is_told(gpus: StandIn, looking: Looking) -> None:
    """Nameless news is news."""
    looking.sample(100.0)
    gpus.set({"0.nameless": 1, "0.xid.0": 79, "0.xids": 1})
    (said,) = words(looking.sample(101.0))
    assert said[0] == "gpu xid" and "XID 79" in said[2] and "does not say which" in said[2]


def test_a_driver_that_tells_no_xids_is_said_to(gpus: StandIn, looking: Looking) -> None:
    """Where XIDs cannot be seen, no XID is no comfort."""
    gpus.set({"0.error.nvmlDeviceRegisterEvents": 3})
    items = looking.sample(100.0)
    assert "XIDs are not told by this driver" in words(items)[0][2] and records(items)


def test_events_that_break_do_not_end_the_values(gpus: StandIn, looking: Looking) -> None:
    """A set of events that fails costs the XIDs of that second, no more."""
    looking.sample(100.0)
    gpus.set(wait=999)
    assert records(looking.sample(101.0))[0].values["gpu_temperature_celsius"] == 61.0
    gpus.unset("wait")
    gpus.set({"0.xid.0": 94, "0.xids": 1})
    assert records(looking.sample(102.0))[0].values["gpu_xid"] == 94.0


LINES = {
    "NVRM: Xid (PCI:0000:0a:00): 31, pid=4242, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE": (
        31, "0000:0a:00", 4242,
    ),
    "NVRM: Xid (PCI:0000:0a:00): 63, pid=4242, Row Remapper: New row marked for remapping, reset gpu to activate.": (
        63, "0000:0a:00", 4242,
    ),
    "NVRM: Xid (PCI:0000:0a:00): 64, pid='N/A', Row Remapper: Failed to remap row": (64, "0000:0a:00", -1),
    "NVRM: Xid (PCI:0000:b3:00): 79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus.": (
        79, "0000:b3:00", -1,
    ),
    "NVRM: Xid (PCI:0000:0a:00): 119, pid=77, name=python3, Timeout after 45s of waiting for RPC response": (
        119, "0000:0a:00", 77,
    ),
    "NVRM: Xid (PCI:0000:0a:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)": (
        154, "0000:0a:00", -1,
    ),
    "NVRM: Xid (0000:0a:00): 13, Graphics Exception": (13, "0000:0a:00", -1),
    "[12345.678] NVRM: Xid (PCI:0000:0A:00): 48, pid='1', DBE": (48, "0000:0A:00", 1),
}  # fmt: skip
OTHERS = [
    "NVRM: GPU at PCI:0000:0a:00: GPU-5f1c",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05",
    "Xid (PCI:0000:0a:00): 31",
    "NVRM: Xid (PCI:): x",
    "NVRM: Xid (",
    "",
]


@pytest.mark.parametrize(("line", "told"), LINES.items(), ids=[str(v[0]) + k[-8:] for k, v in LINES.items()])
def test_xids_are_read_in_every_spelling(line: str, told: tuple[int, str, int]) -> None:
    """The kernel's line says which GPU, and whose process met it."""
    assert XidLines().read(line) == Xid(*told)


@pytest.mark.parametrize("line", [*OTHERS, *(line[:cut] for line in LINES for cut in range(0, 22, 3))])
def test_other_lines_are_no_xids(line: str) -> None:
    """No half line and no news of the driver's start is called a fault."""
    assert XidLines().read(line) is None


def test_the_form_without_a_number_is_read_over_two_lines() -> None:
    """Where the driver finds the GPU gone as it starts, it says so without an XID."""
    lines = XidLines()
    assert lines.read("NVRM: The NVIDIA GPU 0000:0a:00.0") is None
    assert lines.read("NVRM: (PCI ID: 10de:2330) installed in this system has") is None
    assert lines.read("NVRM: fallen off the bus and is not responding to commands.") == Xid(79, "0000:0a:00.0")


def test_what_is_the_nodes_trouble_is_told_from_what_is_the_programs() -> None:
    """Draining a node for a program's own fault, or not draining it for a dead GPU, costs a night."""
    node = [n for n in range(200) if is_of_the_node(n)]
    assert node == [48, 64, 74, 79, 95, 119, 120, 154]
    assert gravest([79, 31, 45]) == 79 and gravest([13, 31]) == 31
    assert "look it up" in in_words(999)
