"""NeMo-RL: a block of bulleted lines a step."""

from typing import Any

import pytest
from rl_log_runs import NAN, read, records, said, segments, survives, told

from gyrostat_agent.sources.logs.formats.nemo_rl import NEMO_RL
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, TRAIN, Note, Step

HEAD = "========================= Step 12/500 ========================="
RESULTS, TIMING, CHECKED = "📊 Training Results:", "⏱️  Timing:", "📊 Validation Results:"
BLOCK = f"""{HEAD}
▶ Preparing batch...
▶ Generating responses for batch of size 64...
▶ Training policy...

{RESULTS}
  • Loss: 0.0123
  • Generation KL Error: 0.0008
  • Avg Reward: 0.4414
  • Mean Generation Length: 811.2000

{TIMING}
  • Total step time: 61.40s
  • policy_training: 22.10s (36.0%)
  • reward_calculation: 1.10s (2.0%)

🔍 Performance Metrics:
  • Mean Total Tokens per Sample: 951.20
    - E2E (Samples/sec): 1.04
Saving checkpoint for step 12...
"""

BULLETS: dict[str, tuple[str, dict[str, Any]]] = {
    "loss": ("  • Loss: 0.0123", {"Loss": 0.0123}),
    "negative": ("  • Loss: -0.0123", {"Loss": -0.0123}),
    "nan": ("  • Loss: nan", {"Loss": NAN}),
    "inf": ("  • Loss: inf", {"Loss": float("inf")}),
    "minus inf": ("  • Loss: -inf", {"Loss": float("-inf")}),
    "unrounded": ("  • Loss: 0.012345678901", {"Loss": 0.012345678901}),
    "exponent": ("  • Loss: 1.2e-05", {"Loss": 1.2e-5}),
    "numpy": ("  • Loss: np.float64(0.25)", {}),
    "mismatch": ("  • Generation KL Error: 0.0008", {"Generation KL Error": 0.0008}),
    "mismatch, nan": ("  • Generation KL Error: nan", {"Generation KL Error": NAN}),
    "reward": ("  • Avg Reward: 0.4414", {"Avg Reward": 0.4414}),
    "filtered": ("  • Avg Filtered Reward: 0.5", {"Avg Filtered Reward": 0.5}),
    "total": ("  • Avg Total Reward: 0.3", {"Avg Total Reward": 0.3}),
    "length": ("  • Mean Generation Length: 811.2000", {"Mean Generation Length": 811.2}),
    "hyphen": ("  - Loss: 0.5", {"Loss": 0.5}),
    "no indent": ("• Loss: 0.5", {"Loss": 0.5}),
    "bracketed share": ("  • Kept: 48.00 (75.0%)", {"Kept": 48.0}),
    "percent": ("  • Truncated: 25.0%", {"Truncated": 0.25}),
    "thousands": ("  • Tokens: 12,345", {"Tokens": 12345.0}),
    "no number": ("  • Loss: n.d.", {}),
    "no colon": ("  • Loss 0.5", {}),
    "empty": ("  • Loss:", {}),
}


@pytest.mark.parametrize(("line", "values"), BULLETS.values(), ids=BULLETS.keys())
def test_every_bullet_is_read(line: str, values: dict[str, Any]) -> None:
    """A name, a colon and a number; what spells no number says nothing."""
    assert told(NEMO_RL, HEAD, RESULTS, line) == ([(12, TRAIN, values)] if values else [])


@pytest.mark.parametrize(
    ("text", "seconds"), [("61.40s", 61.4), ("22.10s (36.0%)", 22.1), ("0.00s (0.0%)", 0.0), ("1,061.40s", 1061.4)]
)
def test_how_long_things_took(text: str, seconds: float) -> None:
    """Timings bear a prefix, so that ``reward`` among them is no reward."""
    assert told(NEMO_RL, HEAD, TIMING, f"  • reward: {text}") == [(12, TRAIN, {"timing/reward": seconds})]


def test_a_block_is_one_step() -> None:
    """All sections of a block are one record, under canonical names."""
    [(number, values)] = records(NEMO_RL, BLOCK)
    assert number == 12
    assert values == {
        "loss": 0.0123, "mismatch_kl": 0.0008, "reward": 0.4414, "response_length": 811.2, "step_time": 61.4,
        "timing/policy_training": 22.1, "timing/reward_calculation": 1.1,
        "performance/Mean Total Tokens per Sample": 951.2, "performance/E2E (Samples/sec)": 1.04,
    }  # fmt: skip
    assert Note(SAVED, 12) in read(NEMO_RL, BLOCK)


def test_blocks_follow_one_another() -> None:
    """The header comes before its block; a run that was resumed goes back without a fault."""
    again = BLOCK.replace("Step 12/", "Step 13/").replace("0.4414", "nan")
    assert [(n, v["reward"]) for n, v in records(NEMO_RL, BLOCK + again)] == [(12, 0.4414), (13, NAN)]
    assert segments(NEMO_RL, BLOCK + again + BLOCK) == [(0, 12), (0, 13), (1, 12)]


def test_the_reward_of_dynamic_sampling() -> None:
    """Of all that was drawn, not of what was kept: groups of one reward were filtered out of that."""
    log = f"{HEAD}\n{RESULTS}\n  • Avg Filtered Reward: 0.6\n  • Avg Total Reward: 0.3\n"
    assert records(NEMO_RL, log) == [(12, {"Avg Filtered Reward": 0.6, "reward": 0.3})]


def test_validation_stands_apart() -> None:
    """Its numbers, and its timings, are no training's."""
    lines = [HEAD, CHECKED, "  • Accuracy: 0.5", "  • Average response length: 800.0 tokens", "⏱️  Validation Timing:",
             "  • Total validation time: 9.00s", RESULTS, "  • Loss: 0.1"]  # fmt: skip
    assert [(phase, values) for _, phase, values in told(NEMO_RL, *lines)] == [
        (EVAL, {"Accuracy": 0.5}), (EVAL, {"Average response length": 800.0}),
        (EVAL, {"timing/Total validation time": 9.0}), (TRAIN, {"Loss": 0.1}),
    ]  # fmt: skip
    [(_, values)] = records(NEMO_RL, "\n".join(lines))
    assert values["loss"] == 0.1 and values["eval/Accuracy"] == 0.5 and "step_time" not in values


def test_bullets_outside_a_section_are_none() -> None:
    """The set-up is printed with bullets as well: nothing before the first section is a number of a step."""
    assert said(NEMO_RL, "  • Loss: 0.1", HEAD, "  • Loss: 0.2") == [Step(12)]


def test_a_log_that_begins_in_a_block() -> None:
    """Without a header the step is counted, and the numbers are there."""
    assert records(NEMO_RL, f"{RESULTS}\n  • Loss: 0.1\n  • Avg Reward: 0.2\n") == [(0, {"loss": 0.1, "reward": 0.2})]


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("Saving checkpoint for step 12...", Note(SAVED, 12)),
        ("Resuming from checkpoint results/grpo/step_40", Note(RESUMED, 40)),
        ("Loading weights from results/grpo/step_40/policy", Note(RESUMED, 40)),
    ],
    ids=["saved", "resumed", "loaded"],
)
def test_checkpoints_are_noted(line: str, note: Note) -> None:
    """Saving and resuming are said, and are no fault."""
    assert said(NEMO_RL, line) == [note]


@pytest.mark.parametrize(
    "line",
    ["", "= Step 12", "===== Step 12 =====", "===== Step x/500 =====", "===== Epoch 1/2 =====", "Loss: 0.5",
     "▶ Training policy...", "Timing"],
)  # fmt: skip
def test_other_lines_say_nothing(line: str) -> None:
    """No step and no number is made of what is neither."""
    assert said(NEMO_RL, line) == []


def test_it_is_recognised() -> None:
    """Its headers and headings give it away; those of others do not."""
    assert [NEMO_RL.sign(line) for line in (HEAD, RESULTS, "▶ Preparing batch...", "  • Generation KL Error: 1")] == [
        2, 3, 3, 3,
    ]  # fmt: skip
    assert [NEMO_RL.sign(line) for line in ("step:1 - a:2", "===== Epoch 1/2 =====", "{'loss': 1}")] == [0, 0, 0]


def test_nothing_in_a_line_raises() -> None:
    """Cut, damaged and mixed lines cost their line."""
    survives(NEMO_RL, (line for line in (*BLOCK.splitlines(), *(text for text, _ in BULLETS.values())) if line))
