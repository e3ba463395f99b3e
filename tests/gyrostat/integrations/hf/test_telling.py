"""What a real TRL or Transformers run tells under the callback, and that it trains as it would without.

One process trains all of it (tell_grpo.py); each test looks at one thing that must hold.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sdk_runs import frames, records
from trl_runs import need_trl, results

from gyrostat.integrations.hf.names import NAMES
from gyrostat.wire import Kind, Record
from gyrostat_rules.series import POISON, UNDEFINED, meaning

pytestmark = pytest.mark.trl


class Told:
    """What each part came to, and the records it wrote."""

    def __init__(self, folder: Path) -> None:
        self.runs = folder / "runs"
        self.parts = results("tell_grpo.py", folder)

    def steps(self, name: str) -> list[Record]:
        """One record a step: what is told in two is one."""
        joined: dict[int, Record] = {}
        for record in records(self.runs / name):
            first = joined.get(record.step)
            values = {**first.values, **record.values} if first else record.values
            joined[record.step] = record._replace(values=values, load=record.load or (first.load if first else None))
        return list(joined.values())


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """All parts, trained once."""
    need_trl()
    yield Told(tmp_path_factory.mktemp("trl"))


def test_it_trains_as_it_would_without(told: Told) -> None:
    """Six steps give the same weights, bit by bit: alone, with the callback and no run directory, and watched."""
    alike = told.parts["alike"]
    assert alike["weights"] == alike["alone"]
    assert alike["idle"] == alike["alone"]


def test_without_a_run_directory_it_does_nothing(told: Told) -> None:
    """Started by hand, the trainer's methods and reward functions are its own."""
    assert told.parts["alike"]["untouched"]


def test_the_trainer_is_left_as_it_was(told: Told) -> None:
    """After training nothing of ours is left on the trainer, and the user's list of functions is the user's."""
    assert not told.parts["alike"]["replaced"]
    assert not {"_get_grad_norm", "_save_checkpoint", "reward_funcs"} & set(told.parts["alike"]["left"])
    assert told.parts["odd_rewards"]["mine"]


def test_our_own_errors_harm_nothing(told: Told) -> None:
    """Where everything of ours throws, the weights are the same still, and each failure is said once."""
    part = told.parts["throwing"]
    assert part["weights"] == told.parts["alike"]["alone"]
    lines = part["said"].splitlines()
    assert len(lines) == len(set(lines)) == 7
    assert all("training goes on without it (ZeroDivisionError: ours)" in line for line in lines)


def test_a_healthy_run_has_nothing_to_say(told: Told) -> None:
    """Versions that were tried, and a trainer that shows everything: not a line on stderr."""
    assert told.parts["alike"]["said"] == ""


def test_each_step_says_what_the_trainer_measured(told: Told) -> None:
    """With a log line a step, what is told is what is logged, under the names that the rules know."""
    logs = {line["step"]: line for line in told.parts["alike"]["log"] if "loss" in line}
    steps = told.steps("alike")
    assert [record.step for record in steps] == [0, 1, 2, 3, 4, 5, 6]
    for record in steps[1:]:
        for name, value in logs[record.step].items():
            if name not in ("step", "epoch", "step_time"):
                assert record.values[NAMES.get(name, name)] == pytest.approx(value, abs=1e-6), name
        assert record.values["step_applied"] == record.values["params_finite"] == 1.0
        assert record.values["step_seconds"] > 0


def test_the_weights_are_looked_at_before_the_first_step(told: Told) -> None:
    """A checkpoint that is broken already is found before it generates."""
    assert told.steps("alike")[0].values == {"params_finite": 1.0}


def test_a_checkpoint_is_told(told: Told) -> None:
    """The record of its step says that one is to be written, the one behind it that it is, and how long it took."""
    third = [record.values for record in records(told.runs / "alike") if record.step == 3]
    assert [values["checkpoint_busy"] for values in third] == [1.0, 0.0]
    assert third[1]["checkpoint_seconds"] > 0


def test_it_says_hello_and_goodbye(told: Told) -> None:
    """A training that ends is no silence."""
    kinds = [frame.kind for frame in frames(told.runs / "alike")]
    assert kinds[0] == Kind.HELLO
    assert kinds[-1] == Kind.BYE


def test_experts_count_completion_and_prompt_once(told: Told) -> None:
    """Each layer's counts are two experts a token of the batch: no generation, no padding, nothing twice."""
    before = 0.0
    for record in told.steps("alike")[1:]:
        tokens, before = record.values["num_tokens"] - before, record.values["num_tokens"]
        assert record.load is not None
        assert (record.load.layers, record.load.experts) == (2, 8)
        assert [sum(counts) for _, _, counts in record.load.rows()] == [2 * tokens, 2 * tokens]


def test_micro_batches_are_one_step(told: Told) -> None:
    """Losses are summed as Transformers sums them, metrics averaged as TRL averages them, experts added up."""
    logs = {line["step"]: line for line in told.parts["accumulated"]["log"] if "loss" in line}
    before = 0.0
    for record in told.steps("accumulated")[1:]:
        for name in ("loss", "entropy", "aux_loss", "reward"):
            assert record.values[name] == pytest.approx(logs[record.step][name], abs=1e-6), name
        tokens, before = record.values["num_tokens"] - before, record.values["num_tokens"]
        assert record.load is not None
        assert sum(record.load.rows()[0][2]) == 2 * tokens


def test_a_nan_is_told_that_the_log_hides(told: Told) -> None:
    """Transformers logs no NaN (its filter is on); the record of that very step has it, and that it was skipped."""
    part = told.parts["nan_loss"]
    assert all(math.isfinite(line["loss"]) for line in part["log"] if "loss" in line)
    steps = told.steps("plain")
    assert [math.isfinite(r.values["loss"]) for r in steps[1:]] == [True, True, False, True, True, True]
    assert [r.values["step_applied"] for r in steps[1:]] == [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    assert steps[1].values["loss"] == pytest.approx(sum(part["losses"][:2]), abs=1e-6)
    assert math.isnan(steps[3].values["grad_norm"])


def test_the_gradient_is_measured_where_nothing_is_clipped(told: Told) -> None:
    """``max_grad_norm=0`` clips nothing; the norm is told all the same."""
    assert told.steps("plain")[1].values["grad_norm"] > 0


def test_weights_that_are_lost_are_told_before_generation_dies(told: Told) -> None:
    """The last record says that a parameter is not finite; TRL's next step raises, and logs no NaN at all."""
    part = told.parts["nan_weights"]
    assert "probability tensor contains" in part["error"]
    last = told.steps("weights")[-1]
    assert (last.step, last.values["params_finite"]) == (3, 0.0)
    assert all(math.isfinite(v) for line in part["log"] for v in line.values())


def test_a_reward_function_that_is_lost_is_poison(told: Told) -> None:
    """TRL sums it away, and its reward is finite; what the function returned is told, and reads as poison."""
    third = told.steps("rewards")[3].values
    assert math.isfinite(third["reward"])
    assert math.isnan(third["returned/lost/rewards"])
    assert meaning("returned/lost/rewards") == POISON
    assert [r.values["returned/lost/rewards"] for r in told.steps("rewards")[1:3]] == [1.0, 1.0]


def test_a_single_nan_of_a_reward_function_is_seen(told: Told) -> None:
    """One completion's NaN shows in the span and in the share that is missing; it is not the whole function's."""
    third = told.steps("rewards")[3].values
    assert third["returned/once/rewards"] == pytest.approx((28 - 1) / 7)
    assert math.isnan(third["returned/once/min"])
    assert meaning("returned/once/min") == UNDEFINED
    assert (third["reward_finite"], third["reward_missing_fraction"]) == ((8 + 7) / 24, 1.0)


def test_an_asynchronous_reward_function_is_seen(told: Told) -> None:
    """It is awaited as ever, and its values are told."""
    assert [r.values["returned/later/rewards"] for r in told.steps("rewards")[1:]] == [0.25] * 4


def test_a_function_that_says_nothing_is_no_nan(told: Told) -> None:
    """None of a completion is TRL's way to say so; the NaN that its log makes of that is not told."""
    assert not [name for r in told.steps("rewards") for name in r.values if "silent" in name]


def test_it_costs_less_than_half_a_percent(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """Processor time of our own code by that of the steps it stands in, of a model that is small still."""
    cost: dict[str, Any] = told.parts["cost"]
    share = cost["ours"] / cost["all"]
    with capsys.disabled():
        ours, step = (cost[key] / cost["steps"] * 1e3 for key in ("ours", "all"))
        print(f"\nSDK {ours:.2f} ms a step of {step:.0f} ms: {share:.2%}")
    assert share < 0.005
