"""Control refuses what does not fit or cannot be believed: the Ack says why, and nothing is changed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from controlled import (
    CHANGE,
    Trainer,
    deep,
    enormous,
    fifo,
    folder_linked,
    folder_open_to_others,
    gone,
    half,
    infinite_value,
    knobs_are_words,
    linked,
    nan_literal,
    never_expires,
    open_to_others,
)
from sdk_runs import acks, directive, lay, ring

from gyrostat.wire import Ack, KnobChange

REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "unknown knob": ({"knobs": (KnobChange("momentum", 1, 1),)}, "knob 'momentum' is not offered; offered: lr, clip"),
    "below its bounds": ({"knobs": (KnobChange("lr", 1.0, 0.001),)}, "lr=0.001 is outside its bounds 0.01 to 2"),
    "above its bounds": ({"knobs": (KnobChange("lr", 1.0, 3.0),)}, "lr=3 is outside its bounds"),
    "too large a factor": (
        {"knobs": (KnobChange("lr", 1.0, 0.45),)},
        "lr 1 to 0.45 is more than its largest factor",
    ),
    "too large a step": ({"knobs": (KnobChange("lr", 1.0, 1.7),)}, "lr 1 to 1.7 is more than its largest step, 0.6"),
    "somebody turned it": (
        {"knobs": (KnobChange("lr", 0.9, 0.8),)},
        "lr reads 1, not 0.9: somebody else has turned it",
    ),
    "second of two unfit": (
        {"knobs": (*CHANGE, KnobChange("clip", 0.5, 0.4))},
        "clip reads 0.2, not 0.5: somebody else has turned it",
    ),
    "expired": ({"expires_at": 1.0}, "directive 1 has expired"),
    "expired by step": ({"expires_step": 40}, "directive 1 has expired"),
    "another run": ({"run": "run-b"}, "directive 1 is for run 'run-b', this is 'run-a'"),
    "another incarnation": ({"incarnation": "0ld"}, "directive 1 is for incarnation 0ld, this is"),
    "another segment": ({"segment": 3}, "directive 1 is for segment 3, this is 0"),
    "wrong number": ({"number": 2}, "the file of directive 1 holds number 2"),
    "unknown procedure": ({"procedure": "dance"}, "procedure 'dance' is not offered; offered: checkpoint, rollback"),
}


@pytest.mark.parametrize(("changed", "says"), REFUSED.values(), ids=REFUSED)
def test_a_directive_that_does_not_fit_is_refused(run: Path, changed: dict[str, object], says: str) -> None:
    """The Ack says why, in the record file, and neither a knob nor a procedure was touched."""
    trainer = Trainer(run)
    message = directive(trainer.telemetry, 1, **{"knobs": CHANGE, "procedure": "checkpoint", **changed})
    lay(run, 1, message.encode())
    ring(run, 1)
    (answer,) = trainer.control.apply(41)
    assert (answer.result, answer.step) == (Ack.REFUSED, 41)
    assert says in answer.reason
    assert acks(run) == [answer]
    assert (trainer.values, trainer.done) == ({"lr": 1.0, "clip": 0.2}, [])
    assert trainer.control.last_directive == 0


DAMAGE: dict[Callable[[Path], None], str] = {
    open_to_others: "mode 0666: others may write it; chmod go-w it",
    linked: "cannot be read: Too many levels of symbolic links",
    fifo: "is not a regular file",
    gone: "directive 1 cannot be read: No such file or directory",
    enormous: "has more than 1048576 bytes",
    half: "this directive is not JSON",
    deep: "this directive is not JSON",
    nan_literal: "NaN is not JSON",
    infinite_value: "lr=inf is outside its bounds",
    never_expires: "'expires_at' is nan, not a finite number",
    knobs_are_words: "'knobs' must be a list of mappings",
    folder_open_to_others: "mode 0777: others may write it",
    folder_linked: "is not a folder; give a real one, not a link",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda f: f.__name__)
def test_a_directive_that_cannot_be_believed_is_refused(run: Path, damage: Callable[[Path], None]) -> None:
    """Whoever wrote it, whatever lies there: nothing is changed, nothing is waited for, the Ack says why."""
    trainer = Trainer(run)
    ring(run, 0)
    trainer.control.apply(40)
    path = lay(run, 1, directive(trainer.telemetry, 1, knobs=CHANGE).encode())
    damage(path)
    with (run / ("real" if damage is folder_linked else "directives") / "bell").open("r+b") as bell:
        bell.write((1).to_bytes(8, "little"))
    (answer,) = trainer.control.apply(41)
    assert answer.result == Ack.REFUSED
    assert DAMAGE[damage] in answer.reason
    assert acks(run) == [answer]
    assert trainer.values == {"lr": 1.0, "clip": 0.2}
