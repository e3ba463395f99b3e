"""slime: steps, and rollouts that have ids of their own."""

from typing import Any

import pytest
from rl_log_runs import NAN, read, records, said, segments, survives, told

from gyrostat_agent.sources.logs.formats.slime import SLIME
from gyrostat_agent.sources.logs.said import EVAL, SKIPPED, TRAIN, Note

HEAD = "(MegatronTrainRayActor pid=77) [2026-01-02 03:04:05] model.py:918 - step 96: "
STEP = HEAD + (
    "{'train/loss': 0.0021, 'train/pg_loss': 0.0022, 'train/entropy_loss': 0.31, 'train/pg_clipfrac': 0.01, "
    "'train/ppo_kl': 0.0, 'train/train_rollout_logprob_abs_diff': 0.011, 'train/grad_norm': 0.12, "
    "'train/lr-pg_0': 1e-06, 'train/step': 96}"
)
ROLLOUT = (
    "(RolloutManager pid=78) [2026-01-02 03:03:40] train_metric_utils.py:135 - rollout 12: "
    "{'rollout/response_lengths': 2011.4, 'rollout/rewards': 0.01, 'rollout/raw_reward': 0.44, "
    "'rollout/truncated': 0.06, 'rollout/rollout_log_probs': -0.214, 'rollout/log_probs': -0.216}"
)
PERF = (
    "(RolloutManager pid=78) [2026-01-02 03:03:41] rollout_metrics.py:268 - perf 12: "
    "{'perf/rollout_time': 88.1, 'perf/tokens_per_gpu_per_sec': 911.0, 'rollout/zero_std/count_0': 5, "
    "'rollout/zero_std/count_1': 7, 'rollout/repetition_frac': 0.0, 'rollout/truncated_ratio': 0.06}"
)
EVALUATION = "[2026-01-02 03:09:00] rollout_metrics.py:90 - eval 12: {'eval/aime': 0.21, 'eval/aime/truncated': 0.1}"


def step(number: int, **more: str) -> str:
    """A step's line with these values."""
    return HEAD.replace("96", str(number)) + "{" + ", ".join(f"'train/{n}': {v}" for n, v in more.items()) + "}"


def rollout(number: int, reward: float, kind: str = "rollout") -> str:
    """A rollout's line."""
    return f"[2026-01-02 03:03:40] data.py:135 - {kind} {number}: {{'rollout/raw_reward': {reward}}}"


ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("{'train/loss': 0.5}", {"train/loss": 0.5}),
    "nan": ("{'train/loss': nan, 'train/ppo_kl': 0.1}", {"train/loss": NAN, "train/ppo_kl": 0.1}),
    "inf": ("{'train/loss': inf}", {"train/loss": float("inf")}),
    "minus inf": ("{'train/loss': -inf, 'train/a': 1}", {"train/loss": float("-inf"), "train/a": 1.0}),
    "none": ("{'train/loss': None}", {"train/loss": NAN}),
    "numpy": ("{'train/loss': np.float64(nan), 'train/a': np.float32(0.5)}", {"train/loss": NAN, "train/a": 0.5}),
    "tensor": ("{'train/loss': tensor(0.5, device='cuda:3'), 'train/a': 2}", {"train/loss": 0.5, "train/a": 2.0}),
    "quoted": ("{'train/loss': '0.5'}", {"train/loss": 0.5}),
    "its own step": ("{'train/loss': 0.5, 'train/step': 96}", {"train/loss": 0.5}),
    "tiny": ("{'train/loss': 1.4901161193847656e-08}", {"train/loss": 1.4901161193847656e-08}),
    "cut in a value": ("{'train/loss': 0.5, 'train/grad_norm': 0.1", {"train/loss": 0.5}),
    "cut in a name": ("{'train/loss': 0.5, 'train/gr", {"train/loss": 0.5}),
    "a word": ("{'train/loss': 0.5, 'train/stage': 'late'}", {"train/loss": 0.5}),
    "a list": ("{'train/loads': [1, 2, 3], 'train/loss': 0.5}", {"train/loss": 0.5}),
}


@pytest.mark.parametrize(("text", "values"), ROWS.values(), ids=ROWS.keys())
def test_every_spelling_of_a_row_is_read(text: str, values: dict[str, Any]) -> None:
    """What is whole in the dict is read; what is cut is not guessed."""
    assert told(SLIME, HEAD + text) == [(96, TRAIN, values)]


def test_a_rollout_is_told_with_its_step() -> None:
    """The id of a rollout is no step: reward, lengths and mismatch are those of the step trained on it."""
    [(number, values)] = records(SLIME, f"{ROLLOUT}\n{PERF}\n{STEP}\n")
    assert number == 96
    assert values == {
        "loss": 0.0021, "train/pg_loss": 0.0022, "entropy": 0.31, "clip_fraction": 0.01, "ppo_kl": 0.0,
        "mismatch_diff": 0.011, "grad_norm": 0.12, "learning_rate": 1e-6, "response_length": 2011.4,
        "rollout/rewards": 0.01, "reward": 0.44, "truncated_fraction": 0.06, "rollout/rollout_log_probs": -0.214,
        "rollout/log_probs": -0.216, "perf/rollout_time": 88.1, "throughput": 911.0, "rollout/zero_std/count_0": 5.0,
        "rollout/zero_std/count_1": 7.0, "rollout/repetition_frac": 0.0,
    }  # fmt: skip


def test_the_normalised_reward_is_no_reward() -> None:
    """``rollout/rewards`` is about zero in a healthy run: without the raw one there is no reward."""
    [(_, values)] = records(SLIME, ROLLOUT.replace("'rollout/raw_reward': 0.44, ", "") + "\n")
    assert "reward" not in values and values["rollout/rewards"] == 0.01


def test_several_steps_of_one_rollout() -> None:
    """The first of them has its numbers; the others have their own alone."""
    lines = [rollout(3, 0.4), step(6, loss="0.1"), step(7, loss="0.2"), rollout(4, 0.5), step(8, loss="0.3")]
    assert records(SLIME, "\n".join(lines)) == [
        (6, {"loss": 0.1, "reward": 0.4}), (7, {"loss": 0.2}), (8, {"loss": 0.3, "reward": 0.5}),
    ]  # fmt: skip


def test_a_rollout_ahead_waits() -> None:
    """An asynchronous trainer draws one ahead: each keeps its own step, and nothing goes backwards."""
    lines = [rollout(0, 0.1), rollout(1, 0.2), step(0, loss="1"), rollout(2, 0.3), step(1, loss="1"), step(2, loss="1")]
    assert [(n, v["reward"]) for n, v in records(SLIME, "\n".join(lines))] == [(0, 0.1), (1, 0.2), (2, 0.3)]
    assert {segment for segment, _ in segments(SLIME, "\n".join(lines))} == {0}


def test_a_log_of_rollouts_alone() -> None:
    """The rollout process's own log has no steps: its ids are the steps, and none is lost."""
    lines = [rollout(number, number / 10) for number in range(6)]
    assert records(SLIME, "\n".join(lines)) == [(number, {"reward": number / 10}) for number in range(6)]


def test_how_long_steps_took_comes_after_them() -> None:
    """A perf line of the rollout just trained on is of the newest step."""
    perf = "[2026-01-02 03:05:40] train_metric_utils.py:1 - perf 3: {'perf/step_time': 9.5, 'perf/actor_train_time': 7}"
    assert told(SLIME, rollout(3, 0.4), step(6, loss="1"), perf)[1][0] == 6
    assert records(SLIME, "\n".join([rollout(3, 0.4), step(6, loss="1"), perf]))[0][1]["step_time"] == 9.5


def test_a_step_that_was_left_out_is_noted() -> None:
    """Its Megatron backend skips the update where the gradient is not finite, so that no harm was done."""
    found = read(SLIME, step(5, loss="0.1", grad_norm="nan") + "\n")
    assert Note(SKIPPED, 5) in found
    assert records(SLIME, step(5, loss="0.1", grad_norm="nan"))[0][1] == {
        "loss": 0.1, "grad_norm": NAN, "step_applied": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize("line", [step(5, grad_norm="nan").replace("model.py", "actor.py"), step(5, grad_norm="0.3")])
def test_no_skip_is_claimed_that_was_none(line: str) -> None:
    """The other backend applies what it got: nothing is said of a step left out."""
    assert not [one for one in said(SLIME, line) if isinstance(one, Note)]


def test_the_critic_is_not_the_actor() -> None:
    """A critic's loss and gradient norm keep their own names."""
    line = HEAD.replace(" step", " critic-step") + "{'train/critic-grad_norm': 300.0, 'train/critic-value_loss': 2.0}"
    assert records(SLIME, line) == [(96, {"train/critic-grad_norm": 300.0, "train/critic-value_loss": 2.0})]


def test_evaluation_stands_apart() -> None:
    """An evaluation counts rollouts: it is told with the newest step, under eval/."""
    assert told(SLIME, STEP, EVALUATION)[1][:2] == (96, EVAL)
    assert records(SLIME, f"{STEP}\n{EVALUATION}\n")[0][1]["eval/aime"] == 0.21


@pytest.mark.parametrize("kind", ["rollout", "perf", "multi_turn", "passrate"])
def test_every_kind_of_rollout_waits(kind: str) -> None:
    """What is said of a rollout under any heading goes with its step."""
    assert told(SLIME, rollout(12, 0.5, kind), step(96, loss="1"))[0][0] == 96


def test_two_ranks_in_one_line() -> None:
    """Where ranks wrote into one another, both are read, the torn value is not."""
    rows = told(SLIME, step(5, loss="0.1", grad_norm="0.3")[:-6] + step(6, loss="0.2"))
    assert [(number, values) for number, _, values in rows] == [(5, {"train/loss": 0.1}), (6, {"train/loss": 0.2})]


def test_old_releases_had_no_file_before_it() -> None:
    """The heading alone at the line's beginning is enough."""
    assert told(SLIME, "step 7: {'train/loss': 0.5}") == [(7, TRAIN, {"train/loss": 0.5})]


@pytest.mark.parametrize(
    "line",
    ["", "step 96", "step 96: {", "rollout 12: done", "warmup step 96: {'a': 1}", "model.py:918 - saved 12: {'a': 1}",
     "loss: {'a': 1}", "model.py:918 - step 96: {}"],
)  # fmt: skip
def test_other_lines_say_nothing(line: str) -> None:
    """No number is made of what is no row."""
    assert said(SLIME, line) == []


def test_it_is_recognised() -> None:
    """Its lines give it away; those of others do not."""
    mine = [line.rpartition(") ")[2] for line in (STEP, ROLLOUT, PERF)]
    assert [SLIME.sign(line) for line in mine] == [3, 3, 3]
    assert [SLIME.sign(line) for line in ("step:1 - a:2", "{'loss': 1}", "Global step 3: {'a': 1}")] == [0, 0, 0]


def test_nothing_in_a_line_raises() -> None:
    """Cut, damaged and mixed lines cost their line."""
    survives(SLIME, (STEP, ROLLOUT, PERF, EVALUATION, *(HEAD + text for text, _ in ROWS.values())))
