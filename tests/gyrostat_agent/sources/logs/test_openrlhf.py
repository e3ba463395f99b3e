"""OpenRLHF: its Global step lines, its evaluations, and its bars where nothing sums them up."""

from typing import Any

import pytest
from rl_log_runs import NAN, records, said, survives, told

from gyrostat_agent.sources.logs.formats.openrlhf import OPENRLHF
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, TRAIN, Note

HEAD = "INFO 01-02 03:04:05 ppo_trainer.py:547] ✨ Global step 40: "
WHOLE = HEAD + (
    "{'policy_loss': -0.0102, 'entropy_loss': 0.51, 'actor_lr': 5e-07, 'actor_grad_norm': 0.31, 'ppo_clip_ratio': "
    "0.01, 'ppo_kl': 0.0004, 'vllm_kl': 0.0012, 'kl': 0.004, 'reward': 0.41, 'return': 0.40, 'response_length': "
    "803.1, 'total_length': 951.2, 'timing/step_total': 95.0}"
)
SICK = (
    "INFO 01-02 03:05:40 ppo_trainer_async.py:244] Global step 41: "
    "{'policy_loss': nan, 'actor_grad_norm': nan, 'reward': 0.0}"
)
BAR = (
    "(ActorModelRayActor pid=99) Train epoch [1/1]:  50%|#####     | 4/8 [00:10<00:10, act_loss=-0.01, reward=0.41, "
    "return=0.4, gen_len=803, tot_len=951, kl=0.004, act_lr=5e-7, grad_norm=0.31]"
)
EVALUATION = "✨ Evaluation completed in 00:01:10, global_step 40, eval_metrics: {'eval_math_pass1': 0.41}"

ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("{'policy_loss': 0.5}", {"policy_loss": 0.5}),
    "two": ("{'policy_loss': 0.5, 'kl': 1e-05}", {"policy_loss": 0.5, "kl": 1e-5}),
    "nan": ("{'policy_loss': nan, 'kl': 0.1}", {"policy_loss": NAN, "kl": 0.1}),
    "capital nan": ("{'policy_loss': NaN, 'kl': 0.1}", {"policy_loss": NAN, "kl": 0.1}),
    "minus nan": ("{'policy_loss': -nan}", {"policy_loss": NAN}),
    "inf": ("{'actor_grad_norm': inf}", {"actor_grad_norm": float("inf")}),
    "minus inf": ("{'policy_loss': -inf}", {"policy_loss": float("-inf")}),
    "none": ("{'policy_loss': None, 'kl': 0.1}", {"policy_loss": NAN, "kl": 0.1}),
    "numpy": ("{'policy_loss': np.float64(0.25), 'kl': np.float32(nan)}", {"policy_loss": 0.25, "kl": NAN}),
    "tensor": ("{'policy_loss': tensor(0.25), 'kl': 0.1}", {"policy_loss": 0.25, "kl": 0.1}),
    "tensor on a device": ("{'kl': tensor(nan, device='cuda:0'), 'reward': 1.0}", {"kl": NAN, "reward": 1.0}),
    "quoted": ("{'policy_loss': '0.0123', 'kl': '0.1'}", {"policy_loss": 0.0123, "kl": 0.1}),
    "whole": ("{'reward': 1, 'kl': 0}", {"reward": 1.0, "kl": 0.0}),
    "signed": ("{'reward': +1.5, 'kl': -2.5E+3}", {"reward": 1.5, "kl": -2500.0}),
    "a word among them": ("{'reward': 1.0, 'stage': 'warm up, then', 'kl': 0.1}", {"reward": 1.0, "kl": 0.1}),
    "a list among them": ("{'generated_samples': ['a, b', 0.5], 'kl': 0.1}", {"kl": 0.1}),
    "cut in a value": ("{'policy_loss': 0.5, 'kl': 0.00", {"policy_loss": 0.5}),
    "cut in a name": ("{'policy_loss': 0.5, 'k", {"policy_loss": 0.5}),
    "cut behind a comma": ("{'policy_loss': 0.5, ", {"policy_loss": 0.5}),
    "no blanks": ("{'policy_loss':0.5,'kl':0.1}", {"policy_loss": 0.5, "kl": 0.1}),
    "with a slash": ("{'rollout/reward_std': 0.3}", {"rollout/reward_std": 0.3}),
}


@pytest.mark.parametrize(("text", "values"), ROWS.values(), ids=ROWS.keys())
def test_every_spelling_of_a_row_is_read(text: str, values: dict[str, Any]) -> None:
    """What is whole in the dict is read, whoever spelt the numbers; what is cut is not guessed."""
    assert told(OPENRLHF, HEAD + text) == [(40, TRAIN, values)]


def test_names_are_canonical() -> None:
    """One rule serves all trainers: loss, gradient norm, mismatch; nothing of the critic or the clock among them."""
    [(step, values)] = records(OPENRLHF, WHOLE + "\n")
    assert step == 40
    assert values == {
        "loss": -0.0102, "entropy": 0.51, "learning_rate": 5e-7, "grad_norm": 0.31, "clip_fraction": 0.01,
        "ppo_kl": 0.0004, "mismatch_kl": 0.0012, "kl": 0.004, "reward": 0.41, "return": 0.4,
        "response_length": 803.1, "total_length": 951.2, "step_time": 95.0,
    }  # fmt: skip


def test_the_critic_is_not_the_actor() -> None:
    """A critic's gradient norm of hundreds is no gradient norm of the policy."""
    [(_, values)] = records(OPENRLHF, HEAD + "{'actor_grad_norm': 0.3, 'critic_grad_norm': 300.0, 'critic_lr': 9e-6}\n")
    assert values == {"grad_norm": 0.3, "critic_grad_norm": 300.0, "critic_lr": 9e-6}


def test_a_sick_step_is_seen_in_full() -> None:
    """Loss and gradient norm are NaN at the step that says so, and not before."""
    both = records(OPENRLHF, f"{WHOLE}\n{SICK}\n")
    assert [step for step, _ in both] == [40, 41]
    assert both[1][1] == {"loss": NAN, "grad_norm": NAN, "reward": 0.0}


def test_two_lines_in_one() -> None:
    """Where two processes wrote into one another, both are read, the torn value of the first is not."""
    rows = told(OPENRLHF, HEAD + "{'policy_loss': 0.5, 'kl': 0.0" + SICK)
    assert [(step, len(values)) for step, _, values in rows] == [(40, 1), (41, 3)]


def test_a_bar_waits_for_its_sum() -> None:
    """Micro-batches are no steps: the bar says nothing where a Global step line follows."""
    assert told(OPENRLHF, BAR, WHOLE)[0][0] == 40
    assert len(told(OPENRLHF, BAR, BAR.replace("4/8", "5/8"), WHOLE)) == 1


def test_the_last_bar_of_a_run_that_died() -> None:
    """What was said of the step that never ended is told as of the next."""
    *_, (step, _, values) = told(OPENRLHF, WHOLE, BAR)
    assert (step, values["act_loss"], values["grad_norm"]) == (41, -0.01, 0.31)


def test_a_sick_bar_is_told_at_once() -> None:
    """A NaN in a micro-batch need not wait for the step's end, and is part of that step."""
    log = f"{WHOLE}\n{BAR.replace('act_loss=-0.01', 'act_loss=nan')}\n{SICK}\n"
    assert [step for step, _ in records(OPENRLHF, log)] == [40, 41]
    assert told(OPENRLHF, *log.splitlines()[:2])[1] == (41, TRAIN, {"act_loss": NAN})


def test_old_releases_had_bars_alone() -> None:
    """Each epoch's last bar is a step where no line sums it up."""
    first, second = BAR.replace("4/8", "8/8"), BAR.replace("4/8", "1/8").replace("0.41", "0.52")
    both = records(OPENRLHF, f"{BAR}\n{first}\n{second}\n")
    assert [(step, values["reward"]) for step, values in both] == [(0, 0.41), (1, 0.52)]


def test_evaluation_stands_apart() -> None:
    """An evaluation's numbers are no training's."""
    assert told(OPENRLHF, EVALUATION) == [(40, EVAL, {"eval_math_pass1": 0.41})]
    assert records(OPENRLHF, f"{WHOLE}\n{EVALUATION}\n")[0][1]["eval/math_pass1"] == 0.41


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("Saved checkpoint to ckpt/global_step40", Note(SAVED, 40, "Saved checkpoint to ckpt/global_step40")),
        ("Saved best checkpoint", Note(SAVED, 40, "Saved best checkpoint")),
        ("Loaded the checkpoint: ckpt/_actor", Note(RESUMED, -1, "Loaded the checkpoint: ckpt/_actor")),
    ],
    ids=["saved", "best", "loaded"],
)
def test_checkpoints_are_noted(line: str, note: Note) -> None:
    """Saving and resuming are said, and are no fault."""
    assert said(OPENRLHF, WHOLE, line)[1:] == [note]


@pytest.mark.parametrize(
    "line",
    ["", "Global step", "Global step 3", "Global step 3: done", "Global step x: {'a': 1}", "loss: 3",
     "Episode [1/2]:  10%|#   | 1/9 [00:01<00:02,  1.00it/s]", "global_step 40, eval_metrics"],
)  # fmt: skip
def test_other_lines_say_nothing(line: str) -> None:
    """No number is made of what is no row."""
    assert said(OPENRLHF, line) == []


def test_it_is_recognised() -> None:
    """Its lines give it away; those of others do not."""
    assert [OPENRLHF.sign(line) for line in (WHOLE, SICK, BAR.partition(") ")[2], "step:1 - a:2", "{'loss': 1}")] == [
        3, 3, 1, 0, 0,
    ]  # fmt: skip


def test_nothing_in_a_line_raises() -> None:
    """Cut, damaged and mixed lines cost their line."""
    survives(OPENRLHF, (WHOLE, SICK, BAR, EVALUATION, *(HEAD + text for text, _ in ROWS.values())))
