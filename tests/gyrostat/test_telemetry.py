"""Telemetry: it says what the trainer said, never raises, and counts what it drops."""

import os
import time
from pathlib import Path

import pytest
from sdk_runs import frames, missing, records

from gyrostat import Telemetry
from gyrostat.wire import Exit, Hello, Kind, KnobState


def test_a_record_says_what_the_trainer_said(run: Path) -> None:
    """Step, values, time, role, rank and segment arrive as they were; Hello and schema come first."""
    before = time.time()
    who = {"run": "r1", "role": "rollout", "rank": 3, "world": 8}
    telemetry = Telemetry(run, **who, checkpoint_root="/ckpt", units={"loss": "nats"})  # type: ignore[arg-type]
    telemetry.record(7, loss=1.5, grad_norm=2, finished=True)
    telemetry.close()
    hello, schema, _, bye = frames(run)
    told = Hello.decode(hello.body)
    assert told._asdict().items() >= {**who, "incarnation": telemetry.incarnation, "checkpoint_root": "/ckpt"}.items()
    assert told.pid == os.getpid()
    assert (schema.kind, bye.kind) == (Kind.SCHEMA, Kind.BYE)
    (record,) = records(run)
    assert record.values == {"loss": 1.5, "grad_norm": 2.0, "finished": 1.0}
    assert (record.role, record.rank, record.step) == ("rollout", 3, 7)
    assert before <= record.time <= time.time()


def test_new_names_grow_the_schema(run: Path) -> None:
    """A series that turns up later is read from then on, and what came before stays readable."""
    telemetry = Telemetry(run)
    said = [{"loss": 1.0}, {"loss": 2.0, "eval": 0.5}, {"loss": 3.0}, {"kl": 0.1, "loss": 4.0}]
    for step, values in enumerate(said):
        telemetry.record(step, **values)
    assert [r.values for r in records(run)] == said
    assert sum(f.kind == Kind.SCHEMA for f in frames(run)) == 3


def test_a_step_without_values_is_a_record(run: Path) -> None:
    """A heartbeat with nothing to say but its step, or only expert counts, arrives."""
    telemetry = Telemetry(run)
    telemetry.record(1)
    telemetry.record(2, expert_load=[3, 4])
    telemetry.record(3, loss=None)
    assert [(r.step, r.values) for r in records(run)] == [(1, {}), (2, {}), (3, {})]


class Rude:
    """A value whose every use raises."""

    def __float__(self) -> float:
        raise KeyError("rude")


@pytest.mark.parametrize("value", [Rude(), "nan", b"1", [1.0], {}, object(), 1j], ids=lambda v: type(v).__name__)
def test_what_is_no_number_costs_only_itself(run: Path, value: object) -> None:
    """A value that cannot be read is counted; the step's other values arrive."""
    telemetry = Telemetry(run)
    telemetry.record(1, odd=value, loss=2.0)
    assert records(run)[0].values == {"loss": 2.0}
    assert telemetry.counts.unreadable == 1


def test_an_integer_beyond_float_is_infinite(run: Path) -> None:
    """A counter that outgrew float64 shows as infinity, with its sign, not as a lost record."""
    telemetry = Telemetry(run)
    telemetry.record(1, tokens=10**400, debt=-(10**400))
    assert records(run)[0].values == {"tokens": float("inf"), "debt": float("-inf")}


@pytest.mark.parametrize("step", [None, "seven", 2**80, 1.5], ids=str)
def test_a_step_that_is_none_is_counted_and_said(run: Path, step: object) -> None:
    """A step number that cannot be written loses that record alone, shows as a gap, and is said in words."""
    telemetry = Telemetry(run)
    telemetry.record(1, loss=1.0)
    telemetry.record(step, loss=2.0)  # type: ignore[arg-type]
    assert telemetry.counts.dropped == 1
    assert "step" in telemetry.counts.fault
    telemetry.record(3, loss=3.0)
    assert [r.step for r in records(run)] == [1, 3]
    assert missing(frames(run)) == telemetry.counts.dropped == 1
    assert telemetry.counts.fault == ""


def test_without_a_run_directory_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A trainer that was not started under a sidecar runs as before."""
    monkeypatch.delenv("GYROSTAT_RUN_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    telemetry = Telemetry()
    telemetry.record(1, loss=1.0)
    telemetry.say()
    telemetry.flush()
    telemetry.close()
    assert telemetry.counts == (0, 0, 0, 0, 0, True, "")
    assert list(tmp_path.iterdir()) == []


def test_the_environment_names_run_and_rank(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started by a supervisor and torchrun, no argument is needed; a damaged variable does no harm."""
    for name, value in {"RUN_DIR": run, "RUN": "r9"}.items():
        monkeypatch.setenv(f"GYROSTAT_{name}", str(value))
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "four")
    telemetry = Telemetry()
    assert (telemetry.run, telemetry.rank, telemetry.world) == ("r9", 2, 1)
    assert telemetry.directory.path == str(run)


def test_hello_is_said_again_when_it_changed(run: Path) -> None:
    """Knobs, last directive and segment that change are told with the next frame, and once."""
    telemetry = Telemetry(run)
    telemetry.say()
    telemetry.say()
    telemetry.introduce((KnobState("lr", 0.5, 0.0, 1.0),), ("stop",), 4, 1)
    telemetry.record(1, loss=1.0)
    telemetry.record(2, loss=1.0)
    hellos = [Hello.decode(f.body) for f in frames(run) if f.kind == Kind.HELLO]
    assert [(h.knobs, h.procedures, h.last_directive, h.segment) for h in hellos] == [
        ((), (), 0, 0),
        ((KnobState("lr", 0.5, 0.0, 1.0),), ("stop",), 4, 1),
    ]
    assert [r.segment for r in records(run)] == [1, 1]


def test_a_hello_that_cannot_be_said_does_not_stop_the_records(run: Path) -> None:
    """Knobs that make no JSON leave the Hello before them, and a word in the counts."""
    telemetry = Telemetry(run)
    telemetry.introduce((KnobState("lr", 0.5, float("-inf"), 1.0),), (), 0, 0)
    assert "Hello cannot be said" in telemetry.counts.fault
    telemetry.record(1, loss=1.0)
    assert len(records(run)) == 1


def test_a_supervisor_tells_how_a_process_ended(run: Path) -> None:
    """An Exit arrives as it was said, behind the supervisor's own Hello."""
    died = Exit("trainer", 0, 4711, -9, False)
    Telemetry(run, role="supervisor").say(died)
    hello, told = frames(run)
    assert Hello.decode(hello.body).role == "supervisor"
    assert (told.kind, Exit.decode(told.body)) == (Kind.EXIT, died)


def test_a_role_that_does_not_exist_is_said_at_once(run: Path) -> None:
    """A spelling mistake shows when the trainer starts, not as silence."""
    with pytest.raises(ValueError, match="role 'trianer' is not one of trainer"):
        Telemetry(run, role="trianer")
