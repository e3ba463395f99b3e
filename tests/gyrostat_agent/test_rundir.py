"""The run directory made ready, and one agent a run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gyrostat.wire import RunDirectory
from gyrostat_agent import rundir
from gyrostat_agent.errors import HeldError, SetupError
from gyrostat_agent.rundir import Lock, existing, held, network_kind, prepare, read_holder

MOUNTS = """22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw
40 22 0:30 / /mnt rw - {outer} server:/x rw
41 40 0:31 / /mnt/in\\040side rw shared:2 master:7 - {inner} none rw
nonsense
"""


@pytest.mark.parametrize(
    "path, outer, inner, kind",
    [
        ("/home/run", "nfs4", "tmpfs", ""),
        ("/mnt/run", "nfs4", "tmpfs", "nfs4"),
        ("/mnt/in side/run", "nfs4", "tmpfs", ""),
        ("/mnt/in side", "ext4", "lustre", "lustre"),
        ("/mnt/in sides", "ext4", "lustre", ""),
        ("/mnt/in side/run", "ext4", "fuse.juicefs", "fuse.juicefs"),
        ("/mnt/in side/run", "ext4", "fuse.encfs", ""),
    ],
    ids=["beside it", "on it", "local inside it", "its root", "a like name", "fuse over the network", "local fuse"],
)
def test_network_file_systems_are_told_apart(tmp_path: Path, path: str, outer: str, inner: str, kind: str) -> None:
    """The innermost mount counts, with odd letters in its name."""
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS.format(outer=outer, inner=inner))
    assert network_kind(path, str(table)) == kind


def test_off_linux_nothing_is_known(tmp_path: Path) -> None:
    """No table of mounts: no complaint."""
    assert network_kind("/x", str(tmp_path / "none")) == ""


def test_a_run_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Says which kind, and where it belongs instead."""
    table = tmp_path / "mountinfo"
    table.write_text(f"22 1 0:1 / {os.path.realpath(tmp_path)} rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(rundir, "network_kind", lambda path: network_kind(path, str(table)))
    with pytest.raises(SetupError, match="nfs4, a network file system; put the run directory on tmpfs or a local disk"):
        prepare(str(tmp_path / "run"))


def test_folders_are_made_for_us_alone(tmp_path: Path) -> None:
    """All of them, mode 0700; a second time changes nothing."""
    run = prepare(str(tmp_path / "run"))
    for folder in (run.path, run.records, run.directives, run.agent, os.path.join(run.agent, "commands")):
        assert os.stat(folder).st_mode & 0o777 == 0o700
    assert prepare(run.path) == run and os.listdir(run.agent) == ["commands"]


@pytest.mark.parametrize("part", ["", "records", "directives", "agent", "agent/commands"])
def test_a_folder_that_others_may_write(tmp_path: Path, part: str) -> None:
    """Wherever it is, it is named with its mode."""
    prepare(str(tmp_path / "run"))
    (tmp_path / "run" / part).chmod(0o770)
    with pytest.raises(SetupError, match="0770"):
        prepare(str(tmp_path / "run"))


def test_a_link_in_the_place_of_a_folder(tmp_path: Path) -> None:
    """Is not followed: it could lead anywhere by tomorrow."""
    (tmp_path / "run").mkdir(0o700)
    (tmp_path / "elsewhere").mkdir(0o700)
    (tmp_path / "run" / "records").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SetupError, match="not a link"):
        prepare(str(tmp_path / "run"))


def test_a_missing_parent_is_no_typo_to_be_made(tmp_path: Path) -> None:
    """A path whose parent is not there either is refused and nothing is made."""
    with pytest.raises(SetupError, match="make the folder"):
        prepare(str(tmp_path / "a" / "run"))
    assert not list(tmp_path.iterdir())


def test_existing_wants_a_journal(tmp_path: Path) -> None:
    """A folder without one is no run that an agent watched."""
    prepare(str(tmp_path / "run"))
    with pytest.raises(SetupError, match=r"no agent/journal\.db"):
        existing(str(tmp_path / "run"))


def test_one_agent_a_run(tmp_path: Path) -> None:
    """The second one is told who holds it; once the first lets go, the run is free."""
    run = prepare(str(tmp_path / "run"))
    assert held(run) == ""
    first = Lock(run)
    assert held(run) == read_holder(os.path.join(run.agent, "lock")) and f"process {os.getpid()} on" in held(run)
    with pytest.raises(HeldError, match=f"process {os.getpid()} "):
        Lock(run)
    first.release()
    assert held(run) == ""
    Lock(run).release()


def test_a_lock_goes_with_its_process(tmp_path: Path) -> None:
    """However the holder ended, its file left behind holds nobody up."""
    run = prepare(str(tmp_path / "run"))
    program = "import os, sys; from gyrostat_agent.rundir import *; lock = Lock(RunDirectory(sys.argv[1]));"
    program += "os.kill(os.getpid(), 9)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    assert subprocess.run([sys.executable, "-c", program, run.path], env=env, check=False).returncode == -9
    assert os.path.getsize(os.path.join(run.agent, "lock")) > 0
    Lock(run).release()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"pid": "x", "host": "h"}', "\0"], ids=repr)
def test_a_lock_file_that_says_nothing(tmp_path: Path, text: str) -> None:
    """Then it is another agent, unnamed."""
    (tmp_path / "lock").write_text(text)
    assert read_holder(str(tmp_path / "lock")) == "another agent"


def test_a_lock_that_is_no_file(tmp_path: Path) -> None:
    """A pipe in its place is named, not waited on."""
    run = RunDirectory(str(tmp_path))
    os.mkdir(run.agent)
    os.mkfifo(os.path.join(run.agent, "lock"))
    with pytest.raises(SetupError, match="not a regular file"):
        Lock(run)
