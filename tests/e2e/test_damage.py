"""What lies on the disk and does not add up: record files, directives, checkpoints, the journal, a full disk."""

import json
import os
import signal
import sqlite3
import struct
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from zlib import crc32

import pytest
import xxhash
from histories import check_chain_and_replay, check_nothing_lost, entries, items, states
from processes import DEADLINE, Place, ended, gyrostat, until

from gyrostat.wire import Directive, Hello, KnobChange, Record
from gyrostat.wire.frames import HEADER
from gyrostat_rules.inputs import Answer

Places = Callable[..., Place]
ROLLBACK = "[{remedy: rollback, horizon: 3, irreversible: true}]"


# -- record files ------------------------------------------------------------------------------------------


def test_record_files_that_are_damaged_foreign_or_not_ours(place: Places) -> None:
    """Passed over, counted, said once each; all the rest is read."""
    run = place()
    assert run.trainer("--items", "30", "--every", "0").wait(DEADLINE) == 0
    file = next((run.run / "records").glob("trainer-*"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF  # one frame in the middle
    file.write_bytes(data[:-10])  # the goodbye, half of it
    other = file.with_name(file.name.replace("trainer-00000", "trainer-00001"))
    write(other, foreign(bytes(data[: HEADER.size])) * 5)
    write(file.with_name(file.name.replace("trainer-00000", "trainer-00002")), b"no frames at all" * 1000)
    open_to_all = file.with_name(file.name.replace("trainer-00000", "trainer-00003"))
    write(open_to_all, bytes(data), 0o666)
    agent = run.agent("--listen", "127.0.0.1:0")
    until(lambda: run.status().get("step") == 30, "the agent never read the last step")
    with urllib.request.urlopen(f"http://{run.status()['http']}/metrics", timeout=10) as answer:
        assert "gyrostat_frames_damaged_total 2.0" in answer.read().decode()
    until(lambda: len(entries(run.journal, "source")) >= 4, "not everything was said")
    assert ended(agent) == 0
    assert len([i for i in items(run.journal) if isinstance(i, Record)]) == 29
    texts = [e.text for e in entries(run.journal, "source")]
    for word in ("written by wire version 9", "damaged from byte", "mode 0666", "1 frames are missing"):
        assert sum(word in text for text in texts) >= 1, texts
    assert len(texts) == len(set(texts))
    said = run.said.read_text()
    assert all(said.count(text) == 1 for text in texts)
    check_chain_and_replay(run.journal)


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    path.write_bytes(data)
    path.chmod(mode)


def foreign(head: bytes) -> bytes:
    """The same header, of major version 9."""
    head = head[:4] + b"\x09" + head[5:-4]
    return head + struct.pack("<I", crc32(head))


# -- directives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed, mode, reason",
    [
        ({"knobs": (KnobChange("lr", 1.0, 0.5),)}, 0o600, "knob 'lr' is not offered; offered: lr_scale"),
        ({"knobs": (KnobChange("lr_scale", 1.0, 9.0),)}, 0o600, "outside its bounds 0.05 to 2"),
        ({"knobs": (KnobChange("lr_scale", 0.7, 0.5),)}, 0o600, "somebody else has turned it"),
        ({"expires_at": 1.0}, 0o600, "has expired"),
        ({"run": "theirs"}, 0o600, "is for run 'theirs'"),
        ({"procedure": "format_disk"}, 0o600, "procedure 'format_disk' is not offered"),
        ({}, 0o666, "mode 0666"),
    ],
    ids=[
        "unknown knob",
        "out of bounds",
        "not as expected",
        "expired",
        "another run",
        "unknown procedure",
        "open to all",
    ],
)
def test_a_directive_that_must_not_be_obeyed(place: Places, changed: dict[str, object], mode: int, reason: str) -> None:
    """Refused, and the reason stands in the journal; the trainer goes on to its end."""
    run = place()
    agent = run.agent()
    trainer = run.trainer("--items", "20", "--gates", "5")
    until(lambda: run.done("gate 5"), "the trainer never came to its gate")
    until(lambda: [i for i in items(run.journal) if isinstance(i, Hello)], "the agent never read Hello")
    hello = next(i for i in items(run.journal) if isinstance(i, Hello))
    directive = Directive(1, hello.run, "trainer", hello.incarnation, 0, "theirs", time.time() + 60)
    folder = run.run / "directives"
    write(folder / "1.json", directive._replace(**changed).encode(), mode)
    write(folder / "bell", (1).to_bytes(8, "little"))
    run.open_gate(5)
    assert trainer.wait(DEADLINE) == 0
    run.read_to_end()
    assert ended(agent) == 0
    acks = [i.ack for i in items(run.journal) if isinstance(i, Answer)]
    assert [(a.number, a.result) for a in acks] == [(1, "refused")] and reason in acks[0].reason
    assert run.done("ack 1 refused")


def test_a_directive_that_somebody_could_have_changed(place: Places) -> None:
    """Opened to all before the trainer reads it: refused, told with its reason, and the next rung mends."""
    skip = "{remedy: skip_data, horizon: 3, irreversible: true}"
    run = place(f"[{skip}, {skip}]")
    trainer = run.trainer("--items", "20", "--poison", "10")
    run.parked()
    trainer.send_signal(signal.SIGSTOP)
    agent = run.agent()
    until(lambda: run.rung() == 1, "the directive never came")
    (run.run / "directives" / "1.json").chmod(0o666)
    trainer.send_signal(signal.SIGCONT)
    until(lambda: run.done("ack 1 refused"), "the trainer never refused it")
    until(lambda: "1.json has mode 0666" in gyrostat("incidents", str(run.run)).stdout, "the reason is not shown")
    assert ended(agent) == 0


# -- checkpoints ---------------------------------------------------------------------------------------------


def test_a_spoilt_checkpoint_is_never_gone_back_to(place: Places) -> None:
    """A flipped byte, a missing shard, a NaN: passed over, each with why, and the next certified one is used."""
    run = place(ROLLBACK)
    trainer = run.trainer("--items", "20", "--poison", "9", "--gates", "8", "--every", "2", "--no-guard")
    until(lambda: run.done("gate 8"), "the trainer never came to its gate")
    steps = {int(p.name[5:13]): p for p in run.root.glob("step-*")}
    assert sorted(steps) == [2, 4, 6, 8]
    flip(steps[8] / "model.safetensors")
    (steps[6] / "model.safetensors").unlink()
    put_nan(steps[4])
    agent = run.agent()
    until(lambda: len(states(run.journal, "checkpoint")) == 4, "the checkpoints were never verified")
    run.open_gate(8)
    assert trainer.wait(DEADLINE) == 0
    until(lambda: set(states(run.journal, "incident").values()) == {"resolved"}, "the incident is not resolved")
    assert ended(agent) == 0
    assert [line.split()[3] for line in run.done("order ")] == [steps[2].name]
    assert [e.state for e in entries(run.journal, "action")].count("sent") == 1  # the others were not even asked for
    told = gyrostat("incidents", str(run.run)).stdout
    for words in ("step 2 chosen: verified", "step 8 not:", "step 6 not:", "step 4 not:", "missing", "not finite"):
        assert words in told, told


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def put_nan(folder: Path) -> None:
    """A NaN among the weights, with digests that match: it was written so."""
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-4:] = struct.pack("<f", float("nan"))
    (folder / "model.safetensors").write_bytes(weights)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["model.safetensors"]["digest"] = f"xxh3_128:{xxhash.xxh3_128_hexdigest(bytes(weights))}"
    (folder / "manifest.json").write_text(json.dumps(manifest))


# -- the journal and the ledger ---------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["hash", "given"], ids=["a hash", "an input"])
def test_a_journal_whose_chain_is_broken(place: Places, column: str) -> None:
    """Observe only, said in status; verify leaves with 4; after ``trust`` it acts again."""
    run = place()
    trainer = run.trainer("--items", "30", "--poison", "10,20", "--gates", "15")
    agent = run.agent()
    until(lambda: run.done("gate 15"), "the first item was never passed over")
    until(lambda: run.status().get("step", 0) >= 16, "the agent never read the step before the gate")
    assert ended(agent) == 0
    spoil(run.journal, column)
    assert gyrostat("journal", "verify", str(run.run)).returncode == 4
    run.open_gate(15)
    run.parked()
    agent = run.agent()
    run.watched(agent)
    shown = gyrostat("status", str(run.run)).stdout
    assert "observes only: the journal's chain is broken at turn" in shown, shown
    until(lambda: "held" in states(run.journal, "incident").values(), "the second action is not held back")
    assert trainer.poll() is None and run.rung() == 1
    assert gyrostat("trust", str(run.run), "--reason", "looked into").returncode == 0
    assert trainer.wait(DEADLINE) == 0
    assert ended(agent) == 0
    assert "trusted again" in gyrostat("incidents", "--all", str(run.run)).stdout
    assert [line.split()[1] for line in run.done("order ")] == ["10", "20"]


def spoil(journal: Path, column: str) -> None:
    """Flip a bit of the first batch."""
    with closing(sqlite3.connect(journal)) as db:
        seq, blob = db.execute(f"SELECT seq, {column} FROM turns WHERE kind = 'Batch' ORDER BY seq").fetchone()
        db.execute(f"UPDATE turns SET {column} = ? WHERE seq = ?", (bytes([blob[0] ^ 1]) + blob[1:], seq))
        db.commit()


@pytest.mark.parametrize("ledger", [False, True], ids=["without a ledger", "with its ledger"])
def test_a_run_directory_that_lost_its_journal(place: Places, ledger: bool) -> None:
    """Without a ledger: observe only. With one: what was done is known, and the numbers go on behind it."""
    run = place()
    trainer = run.trainer("--items", "40", "--poison", "10,20", "--gates", "18")
    agent = run.agent()
    until(lambda: run.done("gate 18"), "the trainer never came to its gate")
    until(lambda: set(states(run.journal, "incident").values()) == {"resolved"}, "the incident is not resolved")
    assert ended(agent) == 0
    for file in (run.run / "agent").glob("journal.db*"):
        file.unlink()
    if not ledger:
        (run.root / ".gyrostat" / "ledger.json").unlink()
    run.open_gate(18)
    run.parked()
    agent = run.agent()
    if ledger:
        until(lambda: [e for e in entries(run.journal, "command") if e.subject == "ledger"], "no ledger was read")
        told = gyrostat("incidents", "--all", str(run.run)).stdout
        assert "1 actions so far, next directive 2" in told and "observe only" not in told, told
    else:
        until(lambda: "held" in states(run.journal, "incident").values(), "the incident is not held")
        assert "observes only: this run has a history" in gyrostat("status", str(run.run)).stdout
    assert run.rung() == 1 and trainer.poll() is None
    assert ended(agent) == 0


# -- a full disk ---------------------------------------------------------------------------------------------


@contextmanager
def small_disk(path: Path) -> Iterator[None]:
    """A file system of its own, so small that it can be filled."""
    path.mkdir(mode=0o700)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", str(path)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(path: Path) -> None:
    with open(path, "wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(4096))
        except OSError:
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_a_full_disk_under_the_journal(place: Places) -> None:
    """What cannot be written down is not done, and said; space comes back: it goes on, and nothing is lost."""
    run = place()
    with small_disk(run.run / "agent"):
        agent = run.agent("--listen", "127.0.0.1:0")
        trainer = run.trainer("--items", "60", "--poison", "30", "--gates", "20")
        until(lambda: run.done("gate 20") and run.status().get("step", 0) == 20, "the agent never read step 20")
        fill(run.run / "agent" / "filler")
        address = run.status()["http"]
        run.open_gate(20)
        run.parked()
        until(lambda: "cannot go on, trying again" in run.said.read_text(), "nobody said that the disk is full")
        with pytest.raises(urllib.error.HTTPError, match="503") as blind:
            urllib.request.urlopen(f"http://{address}/readyz", timeout=10)
        assert "full" in blind.value.read().decode()
        assert run.rung() == 0 and agent.poll() is None
        (run.run / "agent" / "filler").unlink()
        assert trainer.wait(DEADLINE) == 0
        run.read_to_end()
        with urllib.request.urlopen(f"http://{address}/healthz", timeout=10) as answer:
            assert answer.status == 200
        assert ended(agent) == 0
        assert run.done("order 30 skip_data") and run.said.read_text().count("cannot go on") == 1
        check_nothing_lost(run.journal)
        check_chain_and_replay(run.journal)
