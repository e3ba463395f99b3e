"""Resume: what a starting trainer is told to do is done once, or ignored where it is not for now."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from controlled import Trainer, deep, enormous, fifo, folder_open_to_others, gone, half, linked, open_to_others
from sdk_runs import acks, frames

from gyrostat import Control, Knob, Telemetry
from gyrostat.wire import Ack, Hello, Kind, Resume, RunDirectory


def left(run: Path, /, **changed: object) -> Resume:
    soon = time.time() + 3600
    message = Resume(7, "run-a", "/ckpt/step-30", "xxh3_128:ab", 30, soon, {"lr": 0.5}, (11, 12), "poison")
    message = message._replace(**changed)  # type: ignore[arg-type]
    path = Path(RunDirectory(str(run)).resume)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(message.encode())
    path.chmod(0o600)
    return message


def test_a_resume_is_honoured_once(run: Path) -> None:
    """A starting trainer gets the checkpoint to load, answers, and does not do it again once it is in a manifest."""
    message = left(run)
    trainer = Trainer(run)
    assert trainer.control.resume(last_applied=6) == message
    trainer.control.resumed(message, 30)
    assert acks(run) == [Ack(7, "", Ack.APPLIED, 30, "", {"lr": 1.0, "clip": 0.2})]
    assert Hello.decode([f for f in frames(run) if f.kind == Kind.HELLO][-1].body).last_directive == 7
    assert trainer.control.resume(last_applied=7) is None


def test_a_resume_that_failed_is_answered(run: Path) -> None:
    """A checkpoint that could not be loaded is said, with the reason."""
    trainer = Trainer(run)
    trainer.control.resumed(left(run), 0, "the digest does not match")
    assert [(a.result, a.reason) for a in acks(run)] == [(Ack.FAILED, "the digest does not match")]


@pytest.mark.parametrize(
    "changed", [{"expires_at": 1.0}, {"run": "run-b"}, {"number": 0}], ids=["expired", "another run", "old"]
)
def test_a_resume_that_is_not_for_now_is_ignored(run: Path, changed: dict[str, object]) -> None:
    """An old, expired or foreign resume changes nothing."""
    left(run, **changed)
    assert Trainer(run).control.resume() is None


@pytest.mark.parametrize("damage", [open_to_others, linked, fifo, gone, enormous, half, deep, folder_open_to_others])
def test_a_resume_that_cannot_be_believed_is_ignored(run: Path, damage: Callable[[Path], None]) -> None:
    """Whatever lies in its place, a starting trainer starts."""
    left(run)
    damage(Path(RunDirectory(str(run)).resume))
    assert Trainer(run).control.resume() is None


def test_without_a_run_directory_control_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer without a sidecar calls apply and resume at no risk."""
    monkeypatch.delenv("GYROSTAT_RUN_DIR", raising=False)
    control = Control(Telemetry(), [Knob("lr", lambda: 1.0, lambda v: None, 0.0, 1.0)])
    assert control.apply(1) == []
    assert control.resume() is None
