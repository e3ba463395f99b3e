"""Files, names and clients that mean no good, or are only damaged: the agent goes on, and is not led astray."""

import errno
import os
import socket
import struct
import threading
from pathlib import Path
from urllib.request import Request, urlopen
from zlib import crc32

import click
import pytest

from gyrostat import Telemetry
from gyrostat.bell import Bell
from gyrostat.wire import Directive, Record, RunDirectory
from gyrostat.wire.frames import Kind, pack
from gyrostat_agent.actuators.directivefiles import DirectiveFiles
from gyrostat_agent.cli.incidents import line
from gyrostat_agent.cli.run import _new_run_dir
from gyrostat_agent.errors import SetupError
from gyrostat_agent.rundir import Lock, held, prepare
from gyrostat_agent.server import Server
from gyrostat_agent.sources.commands import CommandFiles, give
from gyrostat_agent.sources.recordfiles import RecordFiles
from gyrostat_exporters.metrics import Latest
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import SourceState, SourceWord


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """An empty run directory."""
    return prepare(str(tmp_path / "run"))


def life(run: RunDirectory, steps: int = 1) -> Path:
    """A life of some steps; its file."""
    telemetry = Telemetry(run.path, run="run", rank=0, world=1)
    for step in range(1, steps + 1):
        telemetry.record(step, loss=1.0)
    telemetry.close()
    return max(Path(run.records).glob("trainer-*"))


@pytest.mark.parametrize("kind", [Kind.SCHEMA, Kind.HELLO], ids=["schema", "hello"])
def test_a_frame_that_cannot_be_read_does_not_end_the_next_agent(run: RunDirectory, kind: int) -> None:
    """What was damage when it was read is damage when an agent begins again behind it."""
    with life(run).open("ab") as out:
        out.write(pack(kind, 0, 0, 0, 9, 50, -1, 1, b'{"columns":3}'))
    first = RecordFiles(run, {})
    first.drain()
    again = RecordFiles(run, first.offsets())
    assert [i for i in again.drain() if isinstance(i, Record)] == []
    for each in (first, again):
        each.close()


def test_an_old_file_of_another_version_blinds_no_newer_life(run: RunDirectory) -> None:
    """An agent that finds both at once, and deletes the old one, must not stay blind for ever."""
    old = life(run)
    data = bytearray(old.read_bytes())
    data[4] = 2
    data[52:56] = struct.pack("<I", crc32(bytes(data[:52])))
    old.write_bytes(data)
    life(run)
    records = RecordFiles(run, {})
    words = [i.state for i in records.drain() if isinstance(i, SourceState) and i.source == old.name]
    assert words == [SourceWord.FOREIGN, SourceWord.FRESH]
    records.close()


def test_a_file_that_could_not_be_opened_is_tried_again(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many open files for a moment must not hide a rank until its file's folder changes."""
    path = life(run)
    records = RecordFiles(run, {})
    path.chmod(0o666)
    assert [i.state for i in records.drain() if isinstance(i, SourceState)] == [SourceWord.DAMAGED]
    path.chmod(0o600)
    assert [i.step for i in records.drain() if isinstance(i, Record)] == [1]
    records.close()


def test_a_clock_set_back_keeps_a_files_order(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps come in the order written, whatever their times say."""
    telemetry = Telemetry(run.path, run="run", rank=0, world=1)
    for step, at in ((1, 9), (2, 5), (3, 7)):
        monkeypatch.setattr("gyrostat.telemetry.time_ns", lambda at=at: at * 10**9)
        telemetry.record(step, loss=1.0)
    records = RecordFiles(run, {})
    assert [i.step for i in records.drain() if isinstance(i, Record)] == [1, 2, 3]
    records.close()
    telemetry.close()


@pytest.mark.parametrize("name", ["²5.json", f"{10**30}.json", "x.json"])
def test_a_name_that_is_no_number_is_none(run: RunDirectory, name: str) -> None:
    """A stray file in the folder neither ends the agent nor makes it count from beyond."""
    Path(run.directives, name).write_text("{}")
    assert DirectiveFiles(run).newest() == 0


def test_a_bell_that_is_damaged_rings_again(run: RunDirectory) -> None:
    """Eight bad bytes must not make the trainer deaf for the rest of the run."""
    Path(run.bell).write_bytes(b"\xff" * 8)
    Path(run.bell).chmod(0o600)
    files = DirectiveFiles(run)
    assert files.newest() == 0
    assert (
        files.carry_out("a", {"directive": Directive(1, "r", "trainer", "i", 0, "a", 1e12).encode().decode()}) is None
    )
    assert Bell(run.bell).read() == 1


def test_who_only_looks_at_the_lock_is_no_second_agent(run: RunDirectory) -> None:
    """`gyrostat status` in a loop must not keep an agent from starting."""
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            held(run)

    thread = threading.Thread(target=look)
    Lock(run).release()
    thread.start()
    try:
        for _ in range(300):
            Lock(run).release()
    finally:
        ended.set()
        thread.join()


def test_a_word_that_cannot_be_read_now_is_kept(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's approval is not thrown away because the disk answered with an error once."""

    def broken(path: str, limit: int) -> bytes:
        raise OSError(errno.EIO, "the disk is ill")

    path = Path(give(run, "pause", {"by": "ada"}))
    commands = CommandFiles(run)
    with monkeypatch.context() as ill:
        ill.setattr("gyrostat_agent.sources.commands.read_trusted", broken)
        assert commands.drain(1.0) == [] and path.exists()
    assert [c.verb for _, c in commands.drain(1.0)] == ["pause"]


def test_a_folder_that_somebody_made_first_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default run directory lies in a folder that nobody else may write in, or there is one clear line."""
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    home = tmp_path / f"gyrostat-{os.geteuid()}"
    assert _new_run_dir("a", make=True) == str(home / "a")
    home.chmod(0o777)
    with pytest.raises(SetupError, match=r"others may write it.*--run-dir"):
        _new_run_dir("a", make=True)
    home.rmdir()
    home.symlink_to(tmp_path)
    with pytest.raises(SetupError, match="not a folder"):
        _new_run_dir("a", make=True)


def test_what_a_trainer_says_commands_no_terminal() -> None:
    """An error message out of somebody's data can neither clear the screen nor forge a line."""
    said = line(
        Entry("1.0", 1.0, 1, "action", "i0001.1", "failed", "bad token \x1b]0;x\x07\n1.1  step 9  all is well", {})
    )
    assert click.unstyle(said) == said and "\n" not in said and "\x1b" not in said


def test_clients_that_never_finish_do_not_use_the_agent_up() -> None:
    """Sixty open connections cost no more than a few descriptors, and the page still answers."""
    server = Server("127.0.0.1:0", Latest(), lambda: "")
    host, _, port = server.address.rpartition(":")
    before = len(os.listdir("/proc/self/fd"))
    slow = [socket.create_connection((host, int(port))) for _ in range(60)]
    try:
        for each in slow:
            each.sendall(b"GET /healthz HTTP/1.1\r\n")
        with urlopen(f"http://{server.address}/healthz", timeout=10) as page:
            assert page.status == 200
        assert len(os.listdir("/proc/self/fd")) - before - len(slow) < 40
    finally:
        for each in slow:
            each.close()
        server.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9466", 200),
        ("localhost", 200),
        ("[::1]:9466", 200),
        ("evil.example:9466", 403),
        ("evil.example", 403),
    ],
)
def test_a_page_on_loopback_is_asked_for_by_address(host: str, status: int) -> None:
    """A web page whose name was made to mean this machine reads nothing."""
    server = Server("127.0.0.1:0", Latest(), lambda: "")
    try:
        asked = Request(f"http://{server.address}/healthz", headers={"Host": host})
        try:
            with urlopen(asked, timeout=10) as page:
                assert page.status == status
        except OSError as error:
            assert getattr(error, "code", 0) == status
            getattr(error, "close", lambda: None)()
    finally:
        server.close()
