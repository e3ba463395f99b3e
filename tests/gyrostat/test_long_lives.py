"""What must hold over hours and restarts: a clock set back, a file taken away, steps gone back over."""

import math
import os
import struct
from pathlib import Path

import pytest

from gyrostat import StepGuard, Telemetry
from gyrostat.bell import Bell
from gyrostat.wire import Hello, MessageError
from gyrostat.wire.fields import clean
from gyrostat.wire.frames import Frame, Kind
from gyrostat.wire.records import Schema, decode_record


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An empty run directory."""
    return tmp_path / "run"


def test_a_clock_set_back_does_not_make_the_new_life_the_older_one(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names sort by life: the sidecar deletes what a life that is over has left."""
    first = Telemetry(run, run="run", rank=0, world=1)
    first.record(1, loss=1.0)
    first.close()
    monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000)
    assert Telemetry(run, run="run", rank=0, world=1).incarnation > first.incarnation


def test_a_file_taken_away_is_noticed_within_a_second(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a step a minute, 64 more writes into nothing would be an hour unseen."""
    now = [0.0]
    monkeypatch.setattr("gyrostat.recordfile.monotonic", lambda: now[0])
    telemetry = Telemetry(run, run="run", rank=0, world=1)
    telemetry.record(1, loss=1.0)
    (gone,) = run.glob("records/trainer-*")
    gone.unlink()
    now[0] += 60.0
    telemetry.record(2, loss=1.0)
    assert len(list(run.glob("records/trainer-*"))) == 1


def test_a_folder_that_comes_late_is_found_within_a_second(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that the dying trainer still holds must not cost the new one its first 64 steps, or its answer."""
    now = [0.0]
    monkeypatch.setattr("gyrostat.recordfile.monotonic", lambda: now[0])
    dying, new = (Telemetry(run, run="run", rank=0, world=1) for _ in range(2))
    dying.record(1, loss=1.0)
    new.record(1, loss=1.0)
    assert new.counts.dropped == 1
    dying.close()
    now[0] += 60.0
    new.record(2, loss=1.0)
    assert new.counts.written == 1


def test_a_bell_put_in_anothers_place_is_heard_within_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run directory made anew has a new bell."""
    now = [0.0]
    monkeypatch.setattr("gyrostat.bell.monotonic", lambda: now[0])
    path = tmp_path / "bell"
    bell = Bell(os.fspath(path))
    for number in (1, 2):
        path.unlink(missing_ok=True)
        path.write_bytes(struct.pack("<Q", number))
        path.chmod(0o600)
        assert bell.read() == number
        now[0] += 60.0


def test_the_guard_is_fresh_for_steps_gone_back_over() -> None:
    """Skips of steps that a rollback undid use nothing up; several of one step each count."""
    guard = StepGuard()
    assert [guard.allows(100, math.nan, 1.0) for _ in range(4)] == [False, False, False, True]
    assert not guard.allows(51, math.nan, 1.0)


@pytest.mark.parametrize("number", [-1, 2**62])
def test_a_directives_number_beyond_counting_is_damage(number: int) -> None:
    """The sidecar counts on from it."""
    with pytest.raises(MessageError, match="last_directive"):
        Hello.decode(Hello("run", "trainer", 0, 1, "a", last_directive=number).encode())


def test_text_commands_no_terminal() -> None:
    """Escapes, line breaks and half characters do not reach who reads a log; other scripts do."""
    assert clean("a\x1b[2Jb\nc\u2028d\x9be\ud800f") == "a?[2Jb c d?e?f"
    assert clean("ж 中\u3000\u200d é") == "ж 中\u3000\u200d é"


def test_counts_of_no_expert_are_no_counts() -> None:
    """A payload that claims billions of empty rows is not walked over."""
    schema = Schema(1, ())
    load = struct.pack("<BBHIII", 1, 4, 0, 1 << 31, 1 << 31, 0)
    frame = Frame(Kind.RECORD, 0, 0, 0, 1, 1, 1, 0, load)
    assert decode_record(frame, schema, schema.layout(), "a").load is None
