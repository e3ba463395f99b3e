"""Faults: each is brought about as it says, at its step, once in a life.

How reliably the training then goes wrong is measured by ``benchmarks/fault_gate.py``.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from reference_runs import RUN, digest, end, fingerprint, lay, ring, train, trainer_at

from gyrostat import Telemetry
from gyrostat.wire import Directive
from gyrostat.wire.messages import KnobChange
from gyrostat_reference.__main__ import DIED, main
from gyrostat_reference.arguments import read_arguments
from gyrostat_reference.data import PromptData
from gyrostat_reference.faults import FAULTS, strike
from gyrostat_reference.knobs import KnobValues, offered
from gyrostat_reference.misfortune import Misfortune
from gyrostat_reference.ranks import Alone
from gyrostat_reference.rollout import PolicyDestroyed
from gyrostat_reference.settings import Settings
from gyrostat_reference.trainer import Trainer

Rows = list[dict[str, float]]
HOUR = 3600.0


class Listener(Telemetry):
    """Telemetry that keeps what it is told. ``spreads``: CV of the experts' load, for each step."""

    def __init__(self) -> None:
        super().__init__("")
        self.rows: Rows = []
        self.spreads: list[float] = []

    def record(self, step: int, expert_load: object = None, **values: object) -> None:
        """Keep a step's values."""
        assert isinstance(expert_load, torch.Tensor)
        load = expert_load.sum((0, 1)).double()
        self.spreads.append(float(load.std(correction=0) / load.mean()))
        self.rows.append({name: float(value) for name, value in values.items()})  # type: ignore[arg-type]


def struck(fault: str, steps: int, **settings: object) -> tuple[Trainer, Listener]:
    """A trainer that a fault befell, after ``steps`` or its death."""
    listener = Listener()
    chosen = Settings(steps=steps, faults=(fault,), **settings)  # type: ignore[arg-type]
    trainer = Trainer(chosen, listener, say=lambda line: None)
    try:
        train(trainer, steps)
    except PolicyDestroyed:
        assert not listener.rows[-1]["params_finite"]
    return trainer, listener


@pytest.mark.parametrize(("text", "step"), [("lr_bomb", 20), ("lr_bomb@7", 7), ("router_lr", 1)])
def test_fault_is_asked_for_by_name_and_step(text: str, step: int) -> None:
    """Without a step it strikes when its kind does."""
    assert (strike(text).name, strike(text).step) == (text.partition("@")[0], step)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("flood", "no fault 'flood'; there are entropy_collapse,", id="unknown"),
        pytest.param("lr_bomb@0", "whole number of at least 1", id="step 0"),
        pytest.param("lr_bomb@-1", "whole number of at least 1", id="negative"),
        pytest.param("lr_bomb@", "whole number of at least 1", id="no step"),
        pytest.param("lr_bomb@soon", "whole number of at least 1", id="no number"),
    ],
)
def test_fault_that_is_none_is_refused(text: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line that says what there is."""
    with pytest.raises(SystemExit, match="2"):
        read_arguments(["--fault", text], {})
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.knobs])
def test_knobs_are_turned_at_the_step_and_not_before(name: str) -> None:
    """A careless edit in mid-run: without a directive, past all bounds, said aloud."""
    said: list[str] = []
    trainer = Trainer(Settings(faults=(name,)), Telemetry(), say=said.append)
    unlucky, before = Misfortune([strike(name)]), trainer.knobs
    unlucky.befall(trainer, 19)
    assert (trainer.knobs, said) == (before, [])
    unlucky.befall(trainer, 20)
    assert trainer.knobs == before._replace(**FAULTS[name].knobs)
    assert said == [f"fault {name}: {FAULTS[name].doc}"]


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.start])
def test_what_a_run_starts_with_is_there_from_its_first_step(name: str) -> None:
    """As if it had been configured so."""
    trainer = Trainer(Settings(faults=(name,)), Telemetry(), say=lambda line: None)
    assert trainer.knobs == KnobValues()._replace(**FAULTS[name].start)


def test_plain_grpo_is_the_mode_of_that_name() -> None:
    """The fault takes away what the mode GRPO does without."""
    from gyrostat_reference.settings import MODES

    assert dict(FAULTS["entropy_collapse"].start) == dict(MODES["GRPO"])


def test_unbalanced_base_is_sound_but_for_its_experts() -> None:
    """It answers about as well as it should, with as much entropy, and is its own reference; its experts are uneven."""
    _, unbalanced = struck("expert_imbalance", 1)
    _, usual = struck("reseed@9", 1)
    assert 0.35 < unbalanced.rows[0]["reward"] < 0.85
    assert unbalanced.rows[0]["entropy"] == pytest.approx(usual.rows[0]["entropy"], abs=0.3)
    assert unbalanced.rows[0]["kl"] == 0
    assert unbalanced.spreads[0] > 1 > 0.5 > usual.spreads[0]


def _lost(rows: Rows) -> bool:
    return not (math.isfinite(rows[-1]["loss"]) and rows[-1]["params_finite"])


SOON = [
    pytest.param("router_lr", 5, lambda heard: max(heard.spreads) > 1 > heard.spreads[0], id="router_lr"),
    pytest.param("nan_eps@2", 2, lambda heard: _lost(heard.rows) and not _lost(heard.rows[:1]), id="nan_eps"),
    pytest.param(
        "lr_bomb@2", 7, lambda heard: _lost(heard.rows) or heard.rows[-1]["reward"] < 0.1, id="lr_bomb"
    ),
    pytest.param(
        "divergence@2", 4, lambda heard: not _lost(heard.rows) and heard.rows[-1]["reward"] < 0.1, id="divergence"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "steps", "appears"), SOON)
def test_fault_appears(fault: str, steps: int, appears: Callable[[Listener], bool]) -> None:
    """The training really goes wrong, within steps; how reliably is the gate's to say."""
    assert appears(struck(fault, steps)[1])


def test_poisoned_item_is_the_first_of_its_steps_batch(capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line the fault's step says which; the run dies of it in that step, and waits for nothing."""
    arguments = ["--fault", "nan_data@2", "--steps", "4", "--seed", "3", "--run-dir", ""]
    assert read_arguments(arguments, {}).settings.poison_item == PromptData(seed=3).first_item_of_step(2)
    assert main(arguments) == DIED
    out, err = capsys.readouterr()
    assert [line.split()[:2] for line in out.splitlines()] == [["step", "1"], ["fault", "nan_data:"], ["step", "2"]]
    assert err.startswith("step 3: the policy's probabilities are not finite")


def test_poisoned_item_is_named_where_its_reward_is_infinite() -> None:
    """Settings made by a program name the item; the record of that step and no other names it again."""
    item = PromptData(seed=0).first_item_of_step(2)
    _, heard = struck("nan_data@2", 4, poison_item=item)
    assert [row.get("suspect_item") for row in heard.rows] == [None, item]
    assert math.isinf(heard.rows[1]["reward"]) and _lost(heard.rows)


def test_poison_without_an_item_is_refused() -> None:
    """A program that forgets to name the item is told, rather than shown a run that nothing is wrong with."""
    with pytest.raises(ValueError, match="nothing is poisoned: give the settings a poison_item"):
        struck("nan_data@1", 1)


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("workers", [0, 1], ids=["in process", "by a worker"])
def test_rollouts_stay_with_the_weights_of_their_step(at: int, workers: int) -> None:
    """A step more, a version further behind, and the policies drift apart; at the step itself they are the same."""
    trainer, heard = struck(f"stale_rollouts@{at}", at + 4, workers=workers)
    trainer.engine.close()
    assert [row["policy_lag"] for row in heard.rows] == [0.0] * at + [1.0, 2.0, 3.0, 4.0]
    drift = [row["mismatch_kl"] for row in heard.rows]
    assert max(drift[:at]) < 1e-3 < max(drift[at:])


def turn(trainer: Trainer, segment: int, number: int, change: KnobChange) -> None:
    """Lay a directive that turns a knob at the trainer's next boundary."""
    directive = Directive(
        number, RUN, "trainer", trainer.telemetry.incarnation, segment, f"action-{number}", time.time() + 60,
        knobs=(change,),
    )  # fmt: skip
    paths = trainer.telemetry.directory
    lay(Path(paths.directive(number)), directive.encode())
    lay(Path(paths.bell), number.to_bytes(8, "little"))


def turned_in_mid_run(folder: Path, *faults: str) -> Trainer:
    """A trainer after three steps, which a directive told before the third to halve its learning rate."""
    trainer = trainer_at(folder, faults=faults)
    control = train(trainer, 2)
    turn(trainer, control.segment, 1, KnobChange("lr_scale", 1.0, 0.5))
    assert train(trainer, 3, control).last_directive == 1
    return trainer


def test_inert_knob_reads_back_and_changes_nothing(tmp_path: Path) -> None:
    """The directive is acknowledged and read back; the training is, bit for bit, that of a twin nobody touched."""
    deaf = turned_in_mid_run(tmp_path / "deaf", "inert_knob@2")
    untouched, hearing = trainer_at(tmp_path / "untouched"), turned_in_mid_run(tmp_path / "hearing")
    train(untouched, 3)
    knob = next(knob for knob in offered(deaf) if knob.name == "lr_scale")
    assert (knob.get(), deaf.knobs) == (0.5, hearing.knobs)
    deaf.knobs = untouched.knobs
    assert fingerprint(deaf) == fingerprint(untouched)
    assert fingerprint(hearing)[0] != fingerprint(untouched)[0]  # it would have made a difference


def test_reseeded_twin_is_a_healthy_run_of_other_luck() -> None:
    """The same up to that step and other rollouts from it on, the same ones every time."""
    twin, again, usual = (struck(fault, 2)[1].rows for fault in ("reseed@2", "reseed@2", "reseed@9"))
    names = ("reward", "entropy", "loss", "grad_norm")
    told = [[[row[name] for name in names] for row in rows] for rows in (twin, again, usual)]
    assert told[0] == told[1]
    assert told[0][0] == told[2][0] and told[0][1] != told[2][1]


def test_fault_strikes_once_in_a_life(tmp_path: Path) -> None:
    """After a rollback behind its step the run passes that step again, and is left in peace."""
    said: list[str] = []
    trainer = trainer_at(tmp_path, said=said, faults=("divergence@3",))
    control = train(trainer, 3)
    assert trainer.knobs.lr_scale == 100
    folder = tmp_path / "checkpoints" / "step-00000002"
    ring(trainer, control, 1, "rollback", checkpoint=str(folder), digest=digest(folder))
    train(trainer, 5, control)
    assert (trainer.history.rollbacks, [step for step, _ in trainer.history.rewards]) == (1, [1, 2, 3, 3, 4, 5])
    assert trainer.knobs == KnobValues()
    assert sum(line.startswith("fault divergence") for line in said) == 1
    assert trainer.history.rewards[-1][1] > 0.3


def test_fault_does_not_strike_again_after_a_restart(tmp_path: Path) -> None:
    """A person's careless edit dies with the process: the next life starts before its step and is left in peace."""
    first = trainer_at(tmp_path, faults=("divergence@3",))
    train(first, 3)
    end(first)
    said: list[str] = []
    second = trainer_at(tmp_path, said=said, faults=("divergence@3",))
    train(second, 4)
    assert said[:2] == ["fault divergence: it has struck already", "resumed from step-00000002"]
    assert second.knobs.lr_scale == 1.0
    assert sum(line.startswith("fault") for line in said) == 1


class LastOfTwo(Alone):
    """The second of two ranks, as far as a fault can see."""

    rank, world = 1, 2


class FirstOfTwo(Alone):
    """The first of two."""

    rank, world = 0, 2


@pytest.mark.parametrize(
    ("name", "ranks", "seconds"),
    [
        *(pytest.param(name, Alone, [HOUR] * (name == "rank_stall"), id=name)
          for name, fault in FAULTS.items() if fault.act and name != "rank_killed"),
        pytest.param("rank_stall", LastOfTwo, [HOUR], id="rank_stall, the last rank"),
        pytest.param("rank_stall", FirstOfTwo, [], id="rank_stall, another rank"),
        pytest.param("rank_killed", FirstOfTwo, [], id="rank_killed, another rank"),
    ],
)  # fmt: skip
def test_only_a_stalled_rank_stalls(
    name: str, ranks: type[Alone], seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For an hour, and no other fault makes anybody wait."""
    trainer = Trainer(Settings(faults=(name,), poison_item=1), Telemetry(), say=lambda line: None)
    trainer.ranks = ranks()
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    Misfortune([strike(name)]).befall(trainer, 20)
    assert slept == seconds
