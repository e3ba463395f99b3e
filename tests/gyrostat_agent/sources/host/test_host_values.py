"""What is told of a machine: from a tree in a test's hand, from one that was captured, and from the one we are on."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from host_trees import BOOT, Tree, Watching
from nvml_runs import records, words

from gyrostat.wire import Record
from gyrostat_agent.sources.diskroom import room
from gyrostat_rules.inputs import Item, SourceState

DISK = SimpleNamespace(f_frsize=1, f_blocks=9, f_bfree=5, f_bavail=5, f_files=9, f_favail=5)
PAGE = Path(__file__).parents[4] / "docs/series.md"


def test_a_captured_machine_is_read_as_it_was(tree: Tree, watching: Watching) -> None:
    """The kernel's own spelling, with all that stands around the numbers."""
    told = records(watching.sample(100.0))[0]
    assert (told.role, told.rank, told.incarnation, told.step) == ("host", 0, BOOT, 0)
    assert told.values == {
        "host_memory_total_bytes": 24684092 * 1024.0,
        "host_memory_used_bytes": told.values["host_memory_total_bytes"] - 1024.0 * _kib(tree, "MemAvailable"),
        "host_swap_total_bytes": 1024.0 * _kib(tree, "SwapTotal"),
        "host_swap_used_bytes": 1024.0 * (_kib(tree, "SwapTotal") - _kib(tree, "SwapFree")),
        "host_oom_kills_total": 0.0,
        "host_network_errors_total": 0.0,
        "host_network_drops_total": 0.0,
        "host_xid_total": 0.0,
    }


def test_processors_are_told_in_percent_of_all_of_them(tree: Tree, watching: Watching) -> None:
    """Waiting for a disk is not work, and is told beside it."""
    tree.cpu(100, 10, 50, 800, 40, 0, 0, 0)
    assert "host_cpu_utilization" not in records(watching.sample(100.0))[0].values
    tree.cpu(150, 20, 60, 900, 60, 5, 5, 0)  # 80 at work, 100 idle, 20 waiting
    told = records(watching.sample(101.0))[0].values
    assert told["host_cpu_utilization"] == pytest.approx(40.0) and told["host_cpu_iowait"] == pytest.approx(10.0)
    assert "host_cpu_utilization" not in records(watching.sample(102.0))[0].values  # no time has passed for them


def test_disks_are_told_without_what_would_count_twice(tree: Tree, watching: Watching) -> None:
    """Partitions, device mappers and loop devices are the same bytes again."""
    tree.disk(100, 2000, 300, 4000)
    watching.sample(100.0)
    tree.disk(110, 2400, 340, 4800)
    told = records(watching.sample(102.0))[0].values
    assert {n: v for n, v in told.items() if "disk" in n} == {
        "host_disk_reads_per_second": 5.0,
        "host_disk_read_bytes_per_second": 200 * 512.0,
        "host_disk_writes_per_second": 20.0,
        "host_disk_write_bytes_per_second": 400 * 512.0,
    }


def test_the_network_is_told_by_the_devices_that_lead_out(tree: Tree, watching: Watching) -> None:
    """The loopback, and a bridge over a card, are not traffic of their own."""
    tree.network(lo=(10**9, 10**9), eth0=(1000, 5000), bond0=(1000, 5000), vethab=(7, 7))
    watching.sample(100.0)
    tree.network(lo=(2 * 10**9, 2 * 10**9), eth0=(3000, 6000), bond0=(3000, 6000), vethab=(9, 9))
    told = records(watching.sample(102.0))[0].values
    assert told["host_network_receive_bytes_per_second"] == 1000.0
    assert told["host_network_transmit_bytes_per_second"] == 500.0
    assert told["host_network_errors_total"] == 3.0 and told["host_network_drops_total"] == 7.0


def test_the_network_of_a_container_is_told_too(tree: Tree, watching: Watching) -> None:
    """There no interface is a device."""
    tree.network(lo=(0, 0), net1=(100, 100))
    watching.sample(100.0)
    tree.network(lo=(9, 9), net1=(600, 100))
    assert records(watching.sample(101.0))[0].values["host_network_receive_bytes_per_second"] == 500.0


def test_rdma_is_told_over_all_ports(tree: Tree, watching: Watching) -> None:
    """What passes the kernel by: data in words of four bytes, errors, links that went down, ports that are up."""
    tree.rdma("mlx5_0", 1, port_rcv_data=1000, port_xmit_data=2000, symbol_error=1, link_downed=1)
    tree.rdma("mlx5_1", 1, port_rcv_data=0, port_xmit_data=0, port_rcv_errors=2, link_downed=0)
    assert "host_rdma_receive_bytes_per_second" not in records(watching.sample(100.0))[0].values
    tree.rdma("mlx5_0", 1, port_rcv_data=1500, port_xmit_data=2250, symbol_error=4, link_downed=1)
    tree.rdma("mlx5_1", 1, "1: DOWN", port_rcv_data=500, port_xmit_data=0, port_rcv_errors=2, link_downed=3)
    told = records(watching.sample(101.0))[0].values
    assert {n: v for n, v in told.items() if "rdma" in n} == {
        "host_rdma_ports": 2.0,
        "host_rdma_ports_active": 1.0,
        "host_rdma_receive_bytes_per_second": 4000.0,
        "host_rdma_transmit_bytes_per_second": 1000.0,
        "host_rdma_errors_total": 6.0,
        "host_rdma_link_downed_total": 4.0,
    }


def test_a_counter_that_begins_anew_is_no_rate(tree: Tree, watching: Watching) -> None:
    """A driver that is loaded anew counts from 0: no negative and no enormous number is made of it."""
    tree.network(eth0=(10**12, 0))
    watching.sample(100.0)
    tree.network(eth0=(500, 0))
    assert "host_network_receive_bytes_per_second" not in records(watching.sample(101.0))[0].values
    tree.network(eth0=(1500, 0))
    assert records(watching.sample(102.0))[0].values["host_network_receive_bytes_per_second"] == 1000.0


def test_the_machine_we_are_on_is_told_as_psutil_tells_it(tmp_path: Path) -> None:
    """The real /proc and /sys, beside another's reading of them."""
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    watching, pids = Watching(None), [os.getpid()]
    disks, nics = psutil.disk_io_counters(), psutil.net_io_counters()
    watching.sample(100.0, pids=pids)
    _work_a_little(tmp_path / "written")
    told = records(watching.sample(101.0, pids=pids))[0].values
    watching.source.close()
    memory = psutil.virtual_memory()
    assert told["host_memory_total_bytes"] == memory.total
    assert told["host_memory_used_bytes"] == pytest.approx(memory.total - memory.available, abs=0.1 * memory.total)
    assert told["host_swap_total_bytes"] == psutil.swap_memory().total
    assert 0.0 < told["host_cpu_utilization"] <= 100.0 and 0.0 <= told["host_cpu_iowait"] <= 100.0
    assert told["host_run_processes_alive"] == 1.0
    assert told["host_run_memory_bytes"] == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    # Over the second that we told it by; psutil's look lies around ours and takes in every disk and interface.
    assert told["host_network_receive_bytes_per_second"] <= psutil.net_io_counters().bytes_recv - nics.bytes_recv
    if disks is not None:  # a container may see none
        assert told["host_disk_write_bytes_per_second"] <= psutil.disk_io_counters().write_bytes - disks.write_bytes


def test_a_process_is_told_by_the_real_kernel_until_it_has_ended() -> None:
    """One that has ended and was not yet reaped is no living process either."""
    watching = Watching(None)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        told = records(watching.sample(100.0, pids=[child.pid]))[0].values
        assert told["host_run_processes_alive"] == 1.0
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        told = records(watching.sample(101.0, pids=[child.pid]))[0].values
        assert (told["host_run_processes"], told["host_run_processes_alive"]) == (1.0, 0.0)
    finally:
        child.communicate()
        watching.source.close()


def test_a_sample_is_cheap() -> None:
    """The real machine, once a second: under 1 % of a core, which is 10 ms a sample. Bounded at twice that."""
    watching = Watching(None)
    watching.sample(0.0, pids=[os.getpid()])
    began = time.process_time()
    for second in range(1, 201):
        watching.sample(float(second), pids=[os.getpid()])
    spent = (time.process_time() - began) / 200
    watching.source.close()
    print(f"{1e3 * spent:.2f} ms of processor time a sample of this machine")
    assert spent < 0.020


@pytest.mark.parametrize("given", [True, False], ids=["given", "the trainer's own"])
def test_a_save_is_told_beside_the_machine(tree: Tree, given: bool) -> None:
    """Of a root that was given or that the trainer told, as records of the same life; a root that is none, in words."""
    told = _a_save(tree, given)
    assert (told.role, told.rank, told.incarnation, told.step) == ("host", 0, BOOT, 8)
    assert told.values == {
        "checkpoint_seconds": pytest.approx(0.5, abs=1e-6),
        "checkpoint_bytes": 1000.0,
        "checkpoint_bytes_per_second": pytest.approx(2000.0, rel=1e-5),
    }


def test_the_page_of_series_lists_what_is_told(tree: Tree, watching: Watching) -> None:
    """Who writes a rule finds every name on the page, and no name that is never told."""
    tree.process(7)
    tree.cgroup("/pod/trainer", 0, limit="8192")
    told = {*_a_save(tree, True).values, *room({"": 1}, lambda _: DISK)}
    for second in range(3):
        tree.cpu(10 * second, 0, 0, 10 * second, 0, 0, 0, 0)
        tree.rdma("mlx5_0", 1, port_rcv_data=second, port_xmit_data=0)
        tree.log(f"NVRM: Xid (PCI:0000:0a:00): 79, pid={second}")
        items = watching.sample(100.0 + second, pids=[7])
        told |= records(items)[0].values.keys()
    assert any("XID 79" in said[2] for said in words(items)) is False  # said once, with the first
    section = PAGE.read_text(encoding="utf-8").partition("## Told by the host source")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert listed == {name.replace("/79", "/<number>") for name in told}


def _a_save(tree: Tree, given: bool) -> Record:
    """What is told of a save of half a second and 1000 bytes."""
    root, none = tree.root / "checkpoints", tree.root / "none"
    none.write_text("")
    watching = Watching(tree.root, [str(none), *([str(root)] if given else [])])
    if not given:
        watching.source.set_root(str(root))

    def of_checkpoints(item: Item) -> bool:
        return isinstance(item, SourceState) and item.source == f"host/0 checkpoints {none}"

    def of_a_save(item: Item) -> bool:
        return isinstance(item, Record) and "checkpoint_seconds" in item.values

    said, now = watching.seek(100.0, of_checkpoints)  # so that there was a first look
    assert isinstance(said, SourceState) and "cannot be timed: Not a directory" in said.detail
    tree.write("draft/step-1/.metadata", "x" * 1000)
    os.utime(tree.root / "draft/step-1", (now + 0.25, now + 0.25))
    os.utime(tree.root / "draft/step-1/.metadata", (now + 0.75, now + 0.75))
    (tree.root / "draft").rename(root)
    told, _ = watching.seek(now, of_a_save, step=7)
    watching.source.close()
    assert isinstance(told, Record)
    return told


def _work_a_little(path: Path) -> None:
    """Half a second of a processor, and 4 MiB to a disk."""
    with path.open("wb") as file:
        file.write(os.urandom(4 << 20))
        os.fsync(file.fileno())
    ends = time.process_time() + 0.5
    while time.process_time() < ends:
        sum(range(10000))


def _kib(tree: Tree, name: str) -> float:
    text = (tree.root / "proc/meminfo").read_text()
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + ":")))
