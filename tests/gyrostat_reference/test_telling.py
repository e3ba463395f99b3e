import math
from pathlib import Path

import pytest
from reference_runs import end, train, trainer_at

from gyrostat.wire import Hello, Kind, Record, scan
from gyrostat_reference.data import PromptData
from gyrostat_reference.faults import Fuse
from gyrostat_reference.knobs import LIMITS, KnobValues, turned
from gyrostat_reference.measures import averaged
from gyrostat_reference.rollout import PolicyDestroyed


def told(folder: Path) -> tuple[list[Hello], list[Record]]:
    """What a run directory says: its Hellos and its records."""
    from gyrostat.wire.records import Schema, decode_record

    hellos, records, schema = [], [], Schema(0, ())
    for path in sorted((folder / "run" / "records").glob("trainer-*")):
        for frame in scan(path.read_bytes()).frames:
            if frame.kind == Kind.HELLO:
                hellos.append(Hello.decode(frame.body))
            elif frame.kind == Kind.SCHEMA:
                schema = Schema.decode(frame.schema, frame.body)
            elif frame.kind == Kind.RECORD:
                records.append(decode_record(frame, schema, schema.layout(), "life"))
    return hellos, records


def test_a_run_tells_of_itself(tmp_path: Path) -> None:
    """Hello shows knobs, procedures and the checkpoint root; every step has its values and expert counts."""
    trainer = trainer_at(tmp_path, guard=True)
    train(trainer, 2)
    end(trainer)
    hellos, records = told(tmp_path)
    assert {k.name: k.value for k in hellos[0].knobs} == KnobValues()._asdict()
    assert hellos[0].procedures == ("skip_data", "pause", "resume", "stop", "rollback", "checkpoint")
    assert hellos[0].checkpoint_root == str(tmp_path / "checkpoints")
    assert [r.step for r in records] == [1, 2]
    assert [r.values["data_cursor"] for r in records] == [0.0, 16.0]
    assert records[0].values.keys() == KnobValues()._asdict().keys() | {
        "loss", "reward", "reward_std", "entropy", "grad_norm", "kl", "clip_fraction", "zero_advantage_fraction",
        "learning_rate", "response_length", "step_time", "data_cursor", "data_items", "params_finite",
        "step_applied", "guard_exhausted", "checkpoint_busy", "checkpoint_failed", "reward_average", "entropy_average",
        "reward_min", "reward_max", "reward_finite",
        "unique_fraction",
        "kl_k1", "mismatch_kl", "policy_lag", "router_confidence", "router_logit_rms", "route_overlap", "loop_update_1",
        "loop_update_2", "loop_update_3", "loop_update_4", "entropy_flow", "opefo_lambda", "entropy_bonus",
        "entropy_floor", "gepo_tau_lo", "gepo_tau_hi", "gepo_frac_easy", "gepo_frac_hard", "gepo_factor_positive",
        "gepo_factor_negative", "gepo_entropy_difficulty_corr",
    }  # fmt: skip
    load = records[0].load
    assert load is not None and (load.layers, load.loops, load.experts) == (1, 4, 16)
    assert {sum(counts) for _, _, counts in load.rows()} == {128 * 6 * 2}


def test_poison_is_told_as_it_is(tmp_path: Path) -> None:
    """The record says inf and NaN, names the item, and the next rollouts are the run's end."""
    item = PromptData().first_item_of_step(1)
    trainer = trainer_at(tmp_path, checkpoints=None, poison_item=item)
    with pytest.raises(PolicyDestroyed, match=r"^step 2: the policy's probabilities are not finite"):
        train(trainer, 3)
    end(trainer)
    values = told(tmp_path)[1][0].values
    assert values["reward"] == math.inf
    assert all(math.isnan(values[name]) for name in ("loss", "grad_norm", "reward_std", "clip_fraction"))
    assert (values["suspect_item"], values["step_applied"], values["params_finite"]) == (float(item), 1.0, 0.0)


def test_averages_leave_out_what_would_stay_for_ever() -> None:
    """An infinite reward is not averaged in; the entropy beside it is."""
    before = averaged({}, {"reward": 1.0, "entropy": 1.0})
    after = averaged(before, {"reward": math.inf, "entropy": 2.0})
    assert after == {"reward_average": 1.0, "entropy_average": pytest.approx(1.2)}


def test_every_knob_has_limits_that_hold_its_default() -> None:
    """The table and the values name the same knobs."""
    assert list(LIMITS) == list(KnobValues._fields)
    assert turned(KnobValues(), KnobValues()._asdict()) == KnobValues()


@pytest.mark.parametrize("text", ["step.recorded", "step.recorded:0", "step.recorded:x", "nowhere:1"])
def test_a_fuse_that_makes_no_sense_is_refused(text: str) -> None:
    """A typing error must not pass for a run that survived."""
    with pytest.raises(ValueError, match="point:count"):
        Fuse.read(text)
