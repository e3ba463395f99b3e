"""Control: a directive is obeyed once, answered in the record file, and undone as one."""

import os
from pathlib import Path
from typing import Any

import pytest
from controlled import CHANGE, Trainer
from sdk_runs import acks, directive, frames, lay, ring, send

from gyrostat import Control, Knob, Telemetry
from gyrostat.wire import Ack, Hello, Kind, KnobChange


def test_a_directive_is_obeyed_and_answered(run: Path) -> None:
    """Knobs are set, the procedure is run, values are read back, and the Ack arrives in the record file."""
    trainer = Trainer(run)
    knobs = (*CHANGE, KnobChange("clip", 0.2, 0.3))
    send(run, directive(trainer.telemetry, 1, knobs=knobs, procedure="checkpoint", arguments={"keep": 2}))
    (answer,) = trainer.control.apply(41)
    assert answer == Ack(1, "a-1", Ack.APPLIED, 41, "", {"lr": 0.5, "clip": 0.3}, {"step": 30})
    assert acks(run) == [answer]
    assert trainer.values == {"lr": 0.5, "clip": 0.3}
    assert trainer.done == [{"keep": 2}]
    assert trainer.control.apply(42) == []
    hello = [Hello.decode(f.body) for f in frames(run) if f.kind == Kind.HELLO][-1]
    assert (hello.last_directive, {k.name: k.value for k in hello.knobs}) == (1, {"lr": 0.5, "clip": 0.3})


def test_a_bell_that_others_may_write_rings_for_nothing(run: Path) -> None:
    """Who may write the bell could make us read; such a bell is not heard."""
    trainer = Trainer(run)
    send(run, directive(trainer.telemetry, 1, knobs=CHANGE))
    (run / "directives" / "bell").chmod(0o622)
    assert trainer.control.apply(1) == []
    (run / "directives" / "bell").chmod(0o600)
    assert len(trainer.control.apply(2)) == 1


def test_a_damaged_bell_does_not_deafen(run: Path) -> None:
    """Noise in the bell is no number: the next directive is heard."""
    trainer = Trainer(run)
    ring(run, 2**64 - 1)
    assert trainer.control.apply(1) == []
    send(run, directive(trainer.telemetry, 1, knobs=CHANGE))
    assert [a.result for a in trainer.control.apply(2)] == [Ack.APPLIED]


def test_a_bell_that_was_replaced_is_found_again(run: Path) -> None:
    """A sidecar that lays a new bell is heard within 64 steps."""
    trainer = Trainer(run)
    ring(run, 0)
    trainer.control.apply(0)
    (run / "directives" / "bell").unlink()
    send(run, directive(trainer.telemetry, 1, knobs=CHANGE))
    assert [a.number for step in range(1, 66) for a in trainer.control.apply(step)] == [1]


def test_what_was_rung_before_the_start_is_not_for_us(run: Path) -> None:
    """A restarted trainer does not do again what its predecessor was told."""
    first = Trainer(run)
    send(run, directive(first.telemetry, 1, knobs=CHANGE))
    first.telemetry.close()
    second = Trainer(run)
    assert second.control.apply(1) == []
    send(run, directive(second.telemetry, 2, knobs=CHANGE))
    assert [(a.number, a.result) for a in second.control.apply(2)] == [(2, Ack.APPLIED)]


def test_directives_rung_together_are_answered_in_order(run: Path) -> None:
    """Two rung between two steps are both obeyed, the earlier one first; of a flood the newest sixteen are read."""
    trainer = Trainer(run)
    lay(run, 1, directive(trainer.telemetry, 1, knobs=CHANGE).encode())
    lay(run, 2, directive(trainer.telemetry, 2, knobs=(KnobChange("lr", 0.5, 0.25),)).encode())
    ring(run, 2)
    assert [(a.number, a.result) for a in trainer.control.apply(1)] == [(1, Ack.APPLIED), (2, Ack.APPLIED)]
    ring(run, 1000)
    assert [a.number for a in trainer.control.apply(2)] == list(range(985, 1001))


def test_a_directive_for_another_role_is_passed_over(run: Path) -> None:
    """What is meant for the rollout workers is not answered by the trainer."""
    trainer = Trainer(run)
    send(run, directive(trainer.telemetry, 1, role="rollout", knobs=CHANGE))
    assert trainer.control.apply(1) == []
    assert acks(run) == []


def test_an_undo_goes_back_in_one_stride(run: Path) -> None:
    """What several directives had changed, an undo of the first sets back at once; any other value may not leap."""
    trainer = Trainer(run)
    turned = [(1, 1.0, 0.5, 0), (2, 0.5, 0.25, 0), (3, 0.25, 0.9, 1), (4, 0.25, 1.0, 2), (5, 0.25, 1.0, 1)]
    results = []
    for number, expect, value, undo_of in turned:
        send(run, directive(trainer.telemetry, number, knobs=(KnobChange("lr", expect, value, undo_of),)))
        results += [a.result for a in trainer.control.apply(number)]
    assert results == [Ack.APPLIED, Ack.APPLIED, Ack.REFUSED, Ack.REFUSED, Ack.APPLIED]
    assert trainer.values["lr"] == 1.0


def test_a_procedure_that_raises_is_a_failed_answer(run: Path) -> None:
    """Its first line is the reason; the knobs of the directive stand where they stood."""
    trainer = Trainer(run)
    send(run, directive(trainer.telemetry, 1, knobs=CHANGE, procedure="break"))
    (answer,) = trainer.control.apply(1)
    assert (answer.result, answer.reason) == (Ack.FAILED, "RuntimeError: no such checkpoint")
    assert answer.values == trainer.values == {"lr": 1.0, "clip": 0.2}
    assert acks(run) == [answer]
    assert trainer.control.last_directive == 0


def test_a_knob_that_cannot_be_set_takes_the_others_back(run: Path) -> None:
    """Of a preset whose second knob fails, the first one is put back: a preset is changed as one."""
    trainer = Trainer(run)
    held = {"lr": 1.0}

    def refuse(value: float) -> None:
        raise ValueError("frozen")

    knobs = [Knob("lr", lambda: held["lr"], lambda v: held.update(lr=v), 0, 2), Knob("kl", lambda: 0.1, refuse, 0, 1)]
    control = Control(trainer.telemetry, knobs)
    send(run, directive(trainer.telemetry, 1, knobs=(KnobChange("lr", 1.0, 0.5), KnobChange("kl", 0.1, 0.2))))
    assert [(a.result, a.reason) for a in control.apply(1)] == [(Ack.FAILED, "ValueError: frozen")]
    assert held == {"lr": 1.0}


def test_a_knob_that_cannot_be_read_is_a_refusal(run: Path) -> None:
    """A getter that raises is answered in words; Hello leaves that knob out."""

    def broken() -> float:
        raise AttributeError("no optimizer yet")

    telemetry = Telemetry(run)
    control = Control(telemetry, [Knob("lr", broken, lambda v: None, 0, 2)])
    send(run, directive(telemetry, 1, knobs=CHANGE))
    assert [(a.result, a.reason) for a in control.apply(1)] == [(Ack.REFUSED, "lr cannot be read: no optimizer yet")]


def test_an_answer_is_not_lost_over_what_a_procedure_returned(run: Path) -> None:
    """What is no JSON is replaced by a word about it; the Ack arrives."""
    trainer = Trainer(run)
    send(run, directive(trainer.telemetry, 1, procedure="mumble"))
    (answer,) = trainer.control.apply(1)
    assert answer.result == Ack.APPLIED
    assert "is no JSON mapping" in acks(run)[0].detail["untold"]


def test_a_rollback_begins_a_segment(run: Path) -> None:
    """After a rollback records carry the next segment, and directives for the old one are refused."""
    trainer = Trainer(run)
    send(run, directive(trainer.telemetry, 1, procedure="rollback"))
    assert [a.result for a in trainer.control.apply(1)] == [Ack.APPLIED]
    trainer.telemetry.record(1, loss=1.0)
    assert frames(run)[-1].segment == trainer.control.segment == 1
    send(run, directive(trainer.telemetry, 2, knobs=CHANGE))
    assert "is for segment 0, this is 1" in trainer.control.apply(2)[0].reason


def test_a_failing_knob_after_a_rollback_still_tells_the_segment(run: Path) -> None:
    """The rollback was done, the knob failed: failed is the answer, and Hello has the new segment."""
    trainer = Trainer(run)
    trainer.values["lr"] = 1.0
    control = Control(
        trainer.telemetry,
        [Knob("lr", lambda: 1.0, lambda v: (_ for _ in ()).throw(ValueError("frozen")), 0, 2)],
        {"rollback": lambda _: None},
    )
    send(run, directive(trainer.telemetry, 1, procedure="rollback", knobs=CHANGE))
    assert [a.result for a in control.apply(1)] == [Ack.FAILED]
    assert Hello.decode([f for f in frames(run) if f.kind == Kind.HELLO][-1].body).segment == 1


def test_a_forked_child_obeys_nothing(run: Path) -> None:
    """A worker forked from the trainer does not run the trainer's procedures."""
    trainer = Trainer(run)
    send(run, directive(trainer.telemetry, 1, procedure="checkpoint"))
    child = os.fork()
    if child == 0:
        os._exit(len(trainer.control.apply(1)) + len(trainer.done))
    assert os.waitpid(child, 0)[1] == 0
    assert len(trainer.control.apply(1)) == 1


@pytest.mark.parametrize(
    ("knob", "says"),
    [
        ({"low": float("-inf")}, "bounds -inf to 2.0 must be finite and in order"),
        ({"low": 3.0}, "bounds 3.0 to 2.0 must be finite and in order"),
        ({"max_factor": 0.5}, "max_factor=0.5 must be 1 or more"),
        ({"max_step": float("nan")}, "max_step=nan must be 0 or more"),
    ],
    ids=["endless", "upside down", "factor below 1", "step nan"],
)
def test_a_knob_that_could_never_be_judged_is_said_at_once(run: Path, knob: dict[str, Any], says: str) -> None:
    """Bounds that make no sense show when the trainer starts."""
    plain = Knob("lr", lambda: 1.0, lambda v: None, 0.0, 2.0)
    with pytest.raises(ValueError, match=f"Knob 'lr': {says}"):
        Control(Telemetry(run), [plain._replace(**knob)])
