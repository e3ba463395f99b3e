"""Machines that are ill, and kernels that tell less: kills for want of memory, XIDs, files that cannot be read."""

import math
import os

import pytest
from host_trees import Tree, Watching
from nvml_runs import records, words


def test_a_kill_in_the_runs_cgroup_is_told_in_words(tree: Tree, watching: Watching) -> None:
    """A process that ended by SIGKILL with no word of its own: here stands why."""
    tree.process(41)
    tree.cgroup("/pod/trainer", kills=3, current=7000, limit="8192")
    first = watching.sample(100.0, pids=[41])
    assert not words(first) and records(first)[0].values["host_cgroup_oom_kills_total"] == 0.0  # 3 were before us
    tree.remove("proc/41/stat")
    tree.cgroup("/pod/trainer", kills=4, current=100, limit="8192")
    items = watching.sample(101.0, pids=[41])
    text = "the kernel has killed a process of the run's cgroup for want of memory (1 in all)"
    assert words(items) == [("host/0 memory", "damaged", text)]
    told = records(items)[0].values
    assert told["host_cgroup_oom_kills_total"] == 1.0 and told["host_run_processes_alive"] == 0.0
    assert told["host_cgroup_memory_bytes"] == 100.0 and told["host_cgroup_memory_limit_bytes"] == 8192.0
    assert not words(watching.sample(102.0, pids=[41]))


def test_kills_are_told_after_the_processes_are_forgotten(tree: Tree, watching: Watching) -> None:
    """The kernel kills, the supervisor reaps, and only then is the question asked."""
    tree.process(41)
    tree.cgroup("/pod/trainer", kills=0)
    watching.sample(100.0, pids=[41])
    tree.cgroup("/pod/trainer", kills=2)
    (said,) = words(watching.sample(101.0, pids=[]))
    assert "killed 2 processes of the run's cgroup" in said[2]


def test_a_new_cgroups_history_is_not_this_runs(tree: Tree, watching: Watching) -> None:
    """A trainer that begins anew in another cgroup brings that one's past, not kills of now."""
    tree.process(41)
    tree.cgroup("/pod/trainer", kills=0, current=10)
    watching.sample(100.0, pids=[41])
    tree.process(42, cgroup="/pod/second")
    tree.cgroup("/pod/second", kills=9, current=30)
    items = watching.sample(101.0, pids=[41, 42])
    assert not words(items)
    told = records(items)[0].values
    assert told["host_cgroup_oom_kills_total"] == 0.0 and told["host_cgroup_memory_bytes"] == 40.0
    assert "host_cgroup_memory_limit_bytes" not in told  # neither has one


def test_a_kill_elsewhere_on_the_machine_is_told_as_such(tree: Tree, watching: Watching) -> None:
    """Memory was short, and somebody else paid."""
    watching.sample(100.0)
    tree.write("proc/vmstat", "nr_free_pages 12\noom_kill 5\n")
    (said,) = words(watching.sample(101.0))
    assert said == ("host/0 memory", "damaged",
                    "the kernel has killed 5 processes of this machine for want of memory (5 in all)")  # fmt: skip


@pytest.mark.parametrize("cgroup", ["/../cri-containerd-4242.scope", "/gone (deleted)"], ids=["elsewhere", "deleted"])
def test_a_cgroup_that_cannot_be_seen_is_not_told(tree: Tree, watching: Watching, cgroup: str) -> None:
    """The sidecar's own cgroup must not be shown as the trainer's."""
    tree.cgroup("/", kills=1)
    tree.process(41, cgroup=cgroup)
    told = records(watching.sample(100.0, pids=[41]))[0].values
    assert told["host_run_processes_alive"] == 1.0
    assert not [name for name in told if "cgroup" in name]


def test_processes_that_live_are_counted(tree: Tree, watching: Watching) -> None:
    """Dead, reaped, unreaped and replaced ones are not; names may hold anything."""
    for pid in (1, 2, 3, 4):
        tree.process(pid, pages=10, name="a) S (b")
    told = records(watching.sample(100.0, pids=[1, 2, 3, 4]))[0].values
    assert (told["host_run_processes"], told["host_run_processes_alive"]) == (4.0, 4.0)
    assert told["host_run_memory_bytes"] == 40.0 * os.sysconf("SC_PAGE_SIZE")
    tree.remove("proc/1/stat")
    tree.process(2, state="Z")
    tree.process(3, began=9999)
    told = records(watching.sample(101.0, pids=[1, 2, 3, 4]))[0].values
    assert (told["host_run_processes"], told["host_run_processes_alive"]) == (4.0, 1.0)


def test_processes_of_another_namespace_are_not_called_dead(watching: Watching) -> None:
    """A trainer in another container tells PIDs that mean nothing here."""
    told = records(watching.sample(100.0, pids=[31, 32]))[0].values
    assert not [name for name in told if name.startswith("host_run")]


def test_xids_are_read_from_the_kernels_log(tree: Tree, watching: Watching) -> None:
    """Where the driver is not asked, the log may be; each is told in words once, and counted."""
    tree.log("NVRM: Xid (PCI:0000:0a:00): 79, pid=1, from before")
    watching.source.close()
    watching = Watching(tree.root)
    assert records(watching.sample(100.0))[0].values["host_xid_total"] == 0.0
    tree.log(
        "usb 1-1: new device",
        "NVRM: Xid (PCI:0000:0a:00): 48, pid=4242, name=python, DBE",
        "NVRM: Xid (PCI:0000:0a:00): 45, pid=4242, name=python, Ch 00000008",
        "NVRM: Xid (PCI:0000:0a:00): 45, pid=4242, name=python, Ch 00000009",
    )
    items = watching.sample(101.0)
    source = "host/0 xid 0000:0a:00"
    assert words(items) == [
        (source, "damaged", "XID 48 (an uncorrectable memory error) on the GPU at 0000:0a:00, met by process 4242"),
        (source, "damaged", "XID 45 (work was cut off after an earlier error: look for that one) on the GPU at "
                            "0000:0a:00, met by process 4242"),
    ]  # fmt: skip
    told = records(items)[0].values
    assert (told["host_xid"], told["host_xid/45"], told["host_xid/48"], told["host_xid_total"]) == (48.0, 2.0, 1.0, 3.0)
    after = records(watching.sample(102.0))[0].values
    assert "host_xid" not in after and after["host_xid_total"] == 3.0
    watching.source.close()


def test_half_a_line_of_the_log_waits_for_its_end(tree: Tree, watching: Watching) -> None:
    """What was cut between two looks is one line."""
    watching.sample(100.0)
    log = tree.root / "dev/kmsg"
    with log.open("a") as file:
        file.write("4,9,9,-;NVRM: Xid (PCI:0000:0a:00): 1")
    assert records(watching.sample(101.0))[0].values["host_xid_total"] == 0.0
    with log.open("a") as file:
        file.write("19, pid=5\n SUBSYSTEM=pci;NVRM: Xid (PCI:0000:0a:00): 48\n")  # more of the one before, no message
    assert records(watching.sample(102.0))[0].values["host_xid"] == 119.0


def test_a_log_that_may_not_be_read_is_said_once(tree: Tree) -> None:
    """In a container it seldom may: that no XID is seen there is then no comfort."""
    tree.remove("dev/kmsg")
    watching = Watching(tree.root)
    items = watching.sample(100.0)
    (said,) = words(items)
    assert said[:2] == ("host/0 kernel log", "damaged") and "so XIDs are told by the driver alone" in said[2]
    assert "host_xid_total" not in records(items)[0].values
    assert not words(watching.sample(101.0))
    watching.source.close()


PARTS = {
    "stat": "host_cpu_utilization", "meminfo": "host_memory_total_bytes", "vmstat": "host_oom_kills_total",
    "diskstats": "host_disk_reads_per_second", "net/dev": "host_network_errors_total",
}  # fmt: skip


@pytest.mark.parametrize("file", PARTS)
def test_a_file_that_cannot_be_read_costs_what_stands_in_it(tree: Tree, watching: Watching, file: str) -> None:
    """The rest is told; the fault is said once, and once that it is over."""
    text = (tree.root / "proc" / file).read_text()
    tree.remove(f"proc/{file}")
    items = watching.sample(100.0)
    (said,) = words(items)
    assert said[1] == "damaged" and "No such file" in said[2]
    told = records(items)[0].values
    assert PARTS[file] not in told and len(told) > 3
    assert not words(watching.sample(101.0))
    tree.write(f"proc/{file}", text)
    assert [w[1] for w in words(watching.sample(102.0))] == ["fresh"]


JUNK = ["", "\n", "cpu\n", "cpu a b c d e f g h\n", "\0\0\0", "::::\n", "  1 2 nvme0n1 x y z 4 5 6 7 8 9 10\n",
        "eth0: 1 2 3\n", "MemTotal: many kB\n", "eth0: " + "x " * 16 + "\n", "9" * 5000 + "\n", "é\n"]  # fmt: skip


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_junk_in_any_file_ends_nothing(tree: Tree, watching: Watching, junk: str) -> None:
    """Another kernel's spelling costs a value, and never the sample."""
    tree.disk(1, 2, 3, 4)
    tree.cgroup("/pod/trainer", 0)
    tree.process(7)
    for file in (*PARTS, "7/stat", "7/cgroup", "sys/kernel/random/boot_id"):
        (tree.root / "proc" / file).write_text(junk)
    tree.rdma("mlx5_0", 1, junk.strip("\0"), port_rcv_data=1)
    (tree.root / "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error").write_text(junk)
    for name in ("memory.events", "memory.current", "memory.max"):
        (tree.root / "sys/fs/cgroup/pod/trainer" / name).write_text(junk)
    tree.log(junk)
    for second in range(3):
        items = watching.sample(100.0 + second, pids=[7])
        assert len(records(items)) == 1
        assert all(math.isfinite(value) for value in records(items)[0].values.values())


def test_a_number_beyond_all_numbers_is_not_told(tree: Tree, watching: Watching) -> None:
    """An infinity of a broken file's is none of the run's."""
    tree.process(7)
    tree.cgroup("/pod/trainer", 0, limit="9" * 400)
    told = records(watching.sample(100.0, pids=[7]))[0].values
    assert "host_cgroup_memory_limit_bytes" not in told and told["host_cgroup_memory_bytes"] == 4096.0


def test_another_boot_is_another_life(tree: Tree, watching: Watching) -> None:
    """After a reboot counters begin anew, and the engine takes nothing for a continuation."""
    first = records(watching.sample(100.0))[0]
    tree.write("proc/sys/kernel/random/boot_id", "another\n")
    rebooted = Watching(tree.root)
    assert records(rebooted.sample(200.0))[0].incarnation == "another" != first.incarnation
    rebooted.source.close()
