"""ms-swift: rows of logging.jsonl, of the console and of Megatron-swift."""

import math
import random

import pytest

from gyrostat_agent.sources.logs.formats.swift import SWIFT, SwiftReader
from gyrostat_agent.sources.logs.lines import Lines
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, Note, Said, Told

NAN = math.nan
ROW = (
    '{"loss": 0.0, "grad_norm": 0.05, "learning_rate": 1e-06, "completions/mean_length": 211.4, '
    '"rewards/Acc/mean": 1.0, "rewards/Acc/std": 0.0, "reward": 1.0, "reward_std": 0.0, "frac_reward_zero_std": 1.0, '
    '"kl": 0.04, "clip_ratio/region_mean": 0.0, "entropy/mean": 0.55, "epoch": 0.1, "global_step/max_steps": "7/900", '
    '"elapsed_time": "1m 2s", "remaining_time": "3h 4m 1s", "memory(GiB)": 61.2, "train_speed(s/it)": 12.4}'
)
MEGATRON = (
    '{"loss": 1.2345, "grad_norm": 0.3, "load_balancing_loss": 1.02, "iteration": "12/500", "elapsed_time": "1m", '
    '"remaining_time": "1h", "memory(GiB)": 61.2, "train_speed(s/it)": 5.1}'
)
CONSOLE = ROW.replace('"', "'")
BAR = "Train:   1%|          | 7/900 [01:00<39:00,  8.90s/it]"
FINAL = '{"last_model_checkpoint": "/out/checkpoint-900", "best_metric": 1.5, "train_loss": 0.5, "memory": 61.2}'
TAIL = ', "global_step/max_steps": "7/900"}'


def said(*lines: str) -> list[Said]:
    """All that a log of these lines says."""
    reader, text = SwiftReader(), Lines()
    found = [*text.feed("\n".join(lines).encode()), *text.end()]
    return [*(one for line in found for one in reader.read(line)), *reader.end()]


ROWS: dict[str, tuple[str, int | None, dict[str, float]]] = {
    "grpo": (ROW, 7, {"loss": 0.0, "grad_norm": 0.05, "learning_rate": 1e-06, "reward": 1.0, "reward_std": 0.0}),
    "slashes": (ROW, 7, {"completions/mean_length": 211.4, "rewards/Acc/std": 0.0, "entropy/mean": 0.55}),
    "brackets": (ROW, 7, {"memory(GiB)": 61.2, "train_speed(s/it)": 12.4}),
    "megatron": (MEGATRON, 12, {"loss": 1.2345, "load_balancing_loss": 1.02, "train_speed(s/it)": 5.1}),
    "console": (CONSOLE, 7, {"loss": 0.0, "grad_norm": 0.05, "train_speed(s/it)": 12.4}),
    "behind-a-bar": (BAR + CONSOLE, 7, {"kl": 0.04}),
    "console-megatron": (MEGATRON.replace('"', "'"), 12, {"grad_norm": 0.3}),
    "bare-nan": ('{"loss": NaN, "grad_norm": NaN' + TAIL, 7, {"loss": NAN, "grad_norm": NAN}),
    "console-nan": ("{'loss': nan, 'grad_norm': inf" + TAIL.replace('"', "'"), 7, {"loss": NAN, "grad_norm": math.inf}),
    "infinity": ('{"loss": 1.0, "grad_norm": Infinity' + TAIL, 7, {"grad_norm": math.inf}),
    "null": ('{"loss": 1.0, "kl": null' + TAIL, 7, {"kl": NAN}),
    "quoted": ('{"loss": "0.25"' + TAIL, 7, {"loss": 0.25}),
    "evaluated": ('{"eval_loss": 1.5, "eval_runtime": 3.2' + TAIL, 7, {"eval_loss": 1.5}),
    "token-accuracy": ('{"loss": 1.0, "token_acc": 0.71' + TAIL, 7, {"token_acc": 0.71}),
    "percentage": ('{"loss": 1.0, "percentage": "0.78%"' + TAIL, 7, {"loss": 1.0}),
    "iter-per-second": ('{"loss": 1.0, "train_speed(iter/s)": 0.08' + TAIL, 7, {"train_speed(iter/s)": 0.08}),
    "step-as-a-number": ('{"loss": 1.0, "global_step": 7}', 7, {"loss": 1.0}),
    "step-first": ('{"iteration": "3/9", "loss": 1.0}', 3, {"loss": 1.0}),
    "mismatch": ('{"loss": 1.0, "rollout_correction/kl": 0.01' + TAIL, 7, {"rollout_correction/kl": 0.01}),
    "seconds-are-no-metric": ('{"loss": 1.0, "elapsed_time": "45s"' + TAIL, 7, {"loss": 1.0}),
    "cut-in-a-value": ('{"global_step/max_steps": "7/900", "loss": 1.5, "kl": 0.0', 7, {"loss": 1.5}),
    "cut-before-the-step": ('{"loss": NaN, "grad_norm": 0.5, "global_step/max_st', None, {"loss": NAN}),
    "negative": ('{"loss": -0.0000125' + TAIL, 7, {"loss": -0.0000125}),
    "torchrun": (f"[default7]:{MEGATRON}", 12, {"loss": 1.2345}),
    "ray": (f"(Worker pid=41) {CONSOLE}", 7, {"grad_norm": 0.05}),
    "colours": (f"\x1b[32m{ROW}\x1b[0m", 7, {"grad_norm": 0.05}),
}


@pytest.mark.parametrize(("line", "step", "expected"), ROWS.values(), ids=ROWS)
def test_a_row_is_read(line: str, step: int | None, expected: dict[str, float]) -> None:
    """Its step and numbers, in JSON or as the console prints it."""
    [row] = said(line)
    assert isinstance(row, Told) and row.step == step
    assert {n: str(row.values[n]) for n in expected} == {n: str(v) for n, v in expected.items()}
    assert not {"elapsed_time", "remaining_time", "percentage", "iteration", "global_step"} & row.values.keys()


@pytest.mark.parametrize(
    "line", [FINAL, "{}", BAR, '{"train_runtime": 9.0, "loss": 1.0}', '{"seed": 42, "lr": 0.1}', ""]
)
def test_what_is_no_row(line: str) -> None:
    """The final row holds paths, and settings are none."""
    assert said(line) == []


def test_the_phase() -> None:
    """An evaluation stands apart."""
    [row] = said('{"eval_loss": 1.5' + TAIL)
    assert isinstance(row, Told) and row.phase == EVAL


def test_two_rows_in_a_line() -> None:
    """Two processes wrote at once: both are read."""
    assert [one.step for one in said(MEGATRON[:-20] + ROW) if isinstance(one, Told)] == [12, 7]


def test_checkpoints() -> None:
    """Saved and resumed, at which step."""
    assert said("Saving model checkpoint to /out/v0/checkpoint-50") == [Note(SAVED, 50)]
    assert said("  Continuing training from global step 50") == [Note(RESUMED, 50)]


def test_names() -> None:
    """The trainer's names under the canonical ones."""
    read = {
        "entropy/mean": "entropy", "train_speed(s/it)": "step_time", "frac_reward_zero_std": "zero_advantage_fraction",
        "load_balancing_loss": "balance_loss", "memory(GiB)": "", "completions/mean_length": "response_length",
        "rewards/Acc/mean": "", "entropy/max": "", "clip_ratio/region_mean": "clip_fraction",
    }  # fmt: skip
    names = Names(SWIFT.aliases)
    assert {name: names.of(name).canonical for name in read} == read


def test_half_and_broken_lines() -> None:
    """Any cut and any changed byte raises nothing."""
    random_ = random.Random(7)
    for line, _, _ in ROWS.values():
        for end in range(len(line)):
            said(line[:end], line[end:])
    for _ in range(2000):
        data = bytearray(random_.choice([ROW, MEGATRON, BAR + CONSOLE, FINAL]).encode())
        for _ in range(random_.randint(1, 6)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        said(data.decode("utf-8", "replace"))


@pytest.mark.parametrize("piece", ['{"', "{'", '"a": ', '"loss": 1,', ROW, "Resuming training from checkpoint "])
def test_a_hostile_line_costs_no_more_than_its_length(piece: str) -> None:
    """A long line of what a row is made of is read as fast as any."""
    assert said(piece * (200_000 // len(piece))) is not None


def test_how_it_is_recognised() -> None:
    """By where the step stands; Hugging Face's own rows are none of it."""
    assert [SWIFT.sign(line) for line in (ROW, MEGATRON, CONSOLE, BAR + CONSOLE)] == [3] * 4
    assert [SWIFT.sign(line) for line in ("{'loss': 1.0, 'epoch': 0.1}", FINAL, BAR)] == [0] * 3
