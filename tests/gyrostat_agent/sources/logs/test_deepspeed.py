"""DeepSpeed's console: counts that only grow, overflows that say no step, timers, checkpoints that never got ready."""

import math

import pytest
from log_readers import long_lines_are_quick, mangled_are_read, prefixes_are_read, records, said, same, told

from gyrostat_agent.sources.logs.formats.deepspeed import DEEPSPEED
from gyrostat_agent.sources.logs.said import RESUMED, SAVED, SKIPPED, Fault, Note, Told

NAN = math.nan
STEP = (
    "[2026-01-02 03:04:05,678] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=4, lr=[8.8e-06], "
    "mom=[(0.9, 0.999)]"
)
OVERFLOW = (
    "[2026-01-02 03:04:05,700] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
    "Attempted loss scale: 65536, reducing to 32768"
)
HYSTERESIS = (
    "[2026-01-02 03:04:06,700] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
    "Attempted loss scale: 65536, but hysteresis is 2. Reducing hysteresis to 1"
)
TIMER = (
    "[2026-01-02 03:04:07,000] [INFO] [timer.py:259:stop] epoch=0/micro_step=20/global_step=10, "
    "RunningAvgSamplesPerSec=12.1, CurrSamplesPerSec=12.3, MemAllocated=10.1GB, MaxMemAllocated=31.2GB"
)
PIPE = "steps: 10 loss: 1.2345 iter time (s): 5.123 samples/sec: 12.345"
RATES = {
    "RunningAvgSamplesPerSec": 12.1,
    "CurrSamplesPerSec": 12.3,
    "MemAllocated": 10.1,
    "MaxMemAllocated": 31.2,
}
BEGUN, READY = (
    "[Torch] Checkpoint global_step{} is about to be saved!",
    "[Torch] Checkpoint global_step{} is ready now!",
)


def step(number: int, skipped: int) -> str:
    """The row of a step."""
    return f"[INFO] [logging.py:96:log_dist] [Rank 0] step={number}, skipped={skipped}, lr=[1e-05], mom=[(0.9, 0.999)]"


@pytest.mark.parametrize(
    ("line", "number", "values"),
    [
        pytest.param(STEP, 20, {"skipped": 4.0, "lr": 8.8e-06}, id="step"),
        pytest.param(STEP.replace("[8.8e-06]", "[4.9e-05, 4.9e-05]"), 20, {"skipped": 4.0, "lr": 4.9e-05}, id="groups"),
        pytest.param(STEP.replace("8.8e-06", "nan"), 20, {"skipped": 4.0, "lr": NAN}, id="lr-nan"),
        pytest.param(STEP.replace(", lr=[8.8e-06], mom=[(0.9, 0.999)]", ""), 20, {"skipped": 4.0}, id="no-lr"),
        pytest.param(TIMER, 10, RATES, id="timer"),
        pytest.param(TIMER.replace("epoch=0/micro_step=20/global_step=10", "0/30"), 30, RATES, id="old-timer"),
        pytest.param(TIMER.replace("12.3,", "220.69530887096045,"), 10,
                     {**RATES, "CurrSamplesPerSec": 220.69530887096045}, id="many-digits"),
        pytest.param(TIMER[: TIMER.index(", MemAllocated")], 10,
                     {"RunningAvgSamplesPerSec": 12.1, "CurrSamplesPerSec": 12.3}, id="half-a-timer"),
        pytest.param(PIPE, 10, {"loss": 1.2345, "iter time (s)": 5.123, "samples/sec": 12.345}, id="pipe"),
        pytest.param(PIPE.replace("1.2345", "nan"), 10, {"loss": NAN, "iter time (s)": 5.123, "samples/sec": 12.345},
                     id="pipe-nan"),
        pytest.param(PIPE.replace("1.2345", "inf"), 10,
                     {"loss": math.inf, "iter time (s)": 5.123, "samples/sec": 12.345}, id="pipe-inf"),
        pytest.param(PIPE.replace("1.2345", "tensor(1.5,device='cuda:0')"), 10,
                     {"loss": 1.5, "iter time (s)": 5.123, "samples/sec": 12.345}, id="pipe-tensor"),
        pytest.param("[default0]:" + PIPE, 10, {"loss": 1.2345, "iter time (s)": 5.123, "samples/sec": 12.345},
                     id="pipe-torchrun"),
        pytest.param(OVERFLOW, 1, {"loss_scale": 32768.0}, id="overflow"),
        pytest.param(HYSTERESIS, 1, {"loss_scale": 65536.0}, id="hysteresis"),
        pytest.param("[deepscale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 262144, reducing to 131072.0",
                     1, {"loss_scale": 131072.0}, id="deepscale"),
        pytest.param("[INFO] [logging.py:96:log_dist] [Rank 0] Overflow detected. Skipping step. Attempted loss scale: "
                     "8192.0, reducing to 4096.0", 1, {"loss_scale": 4096.0}, id="fused"),
        pytest.param("  0%|          | 0/2515 [00:00<?, ?it/s]" + OVERFLOW, 1, {"loss_scale": 32768.0},
                     id="behind-a-bar"),
        pytest.param("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1", 1,
                     {"loss_scale": 1.0}, id="at-the-floor"),
        pytest.param("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4294967296, reducing to "
                     "2147483648", 1, {"loss_scale": 2147483648.0}, id="at-the-start"),
    ],
)  # fmt: skip
def test_rows(line: str, number: int, values: dict[str, float]) -> None:
    """Each line's step and numbers."""
    [(found, _, read)] = told(DEEPSPEED, line)
    assert found == number and same(read, values)


def test_time_and_rank() -> None:
    """The time that a line bears, and the rank that overflowed."""
    first, second = said(DEEPSPEED, STEP, OVERFLOW.replace("Rank 0", "Rank 3"))[:2]
    assert isinstance(first, Told) and first.at == pytest.approx(1767323045.678)
    assert isinstance(second, Told) and second.rank == 3


def test_canonical_names() -> None:
    """Step, timer and pipeline line of one step are one record."""
    [one] = records(DEEPSPEED, STEP, TIMER.replace("=10,", "=20,"), PIPE.replace("10", "20", 1))
    assert one.step == 20 and one.values["loss"] == 1.2345 and one.values["learning_rate"] == 8.8e-06
    assert one.values["throughput"] == 12.3 and one.values["step_time"] == 5.123 and one.values["skipped_steps"] == 4.0


def test_skipped_is_a_running_count() -> None:
    """``skipped=4`` on each line is four steps in all, not four each time."""
    found = records(DEEPSPEED, step(10, 4), step(20, 4), step(30, 6))
    assert [one.values["skipped_steps"] for one in found] == [4.0, 0.0, 2.0]


def test_overflows_are_steps_that_were_not_applied() -> None:
    """Overflows before the first line that says a step: each is one step, and was not applied."""
    found = records(DEEPSPEED, OVERFLOW, OVERFLOW, step(3, 2), step(4, 2), OVERFLOW, step(5, 3), step(6, 3))
    assert [(one.step, one.values.get("step_applied")) for one in found] == [
        (1, 0.0), (2, 0.0), (3, None), (4, None), (5, 0.0), (6, None),
    ]  # fmt: skip
    assert {one.segment for one in found} == {0} and found[0].values["loss_scale"] == 32768.0


def test_an_overflow_is_noted() -> None:
    """What is skipped is told as such, with the line."""
    note = said(DEEPSPEED, STEP, OVERFLOW)[-1]
    assert isinstance(note, Note) and (note.kind, note.step) == (SKIPPED, 21) and "32768" in note.text


def test_ranks_that_overflow_together() -> None:
    """The same overflow on four ranks is one step, not four."""
    lines = [OVERFLOW.replace("Rank 0", f"Rank {rank}") for rank in (2, 0, 1, 3)]
    assert [one.step for one in records(DEEPSPEED, *lines, *lines)] == [1, 2]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."],
                     [Fault("loss_scale", "DeepSpeed: the loss scale is at its minimum and gradients still overflow")],
                     id="floor"),
        pytest.param(["[rank3]: Exception: Current loss scale already at minimum - cannot decrease scale anymore."],
                     [Fault("loss_scale", "DeepSpeed: the loss scale is at its minimum and gradients still overflow",
                            3)], id="floor-of-a-rank"),
        pytest.param([BEGUN.format(40), "[Torch] Saving /ck/global_step40/mp_rank_00_model_states.pt...",
                      "[Torch] Saved /ck/global_step40/mp_rank_00_model_states.pt.", *[READY.format(40)] * 8],
                     [Note(SAVED, 40)], id="saved-once-for-all-ranks"),
        pytest.param([BEGUN.format(40)], [], id="begun-is-not-saved"),
        pytest.param([BEGUN.format(40), BEGUN.format(80), READY.format(80)],
                     [Fault("checkpoint_failure",
                            "DeepSpeed: checkpoint global_step40 was begun and never became ready"),
                      Note(SAVED, 80)], id="never-ready"),
        pytest.param(["[Torch] Checkpoint best is ready now!"], [Note(SAVED, -1)], id="other-tag"),
        pytest.param(["[Torch] Loaded checkpoint from /ck/global_step40/mp_rank_00_model_states.pt.",
                      "[Torch] Loaded checkpoint from /ck/global_step40/zero_pp_rank_0_optim_states.pt."],
                     [Note(RESUMED, 40)], id="loaded-once"),
        pytest.param([step(7, 0), "[WARNING] [stage3.py:1850:step] 2 pytorch allocator cache flushes since last step. "
                      "this happens when there is high memory pressure"],
                     [Told({"skipped": 0.0, "lr": 1e-05}, 7), Told({"allocator cache flushes": 2.0}, 7)], id="flushes"),
    ],
)  # fmt: skip
def test_notes_and_faults(lines: list[str], expected: list[Note | Fault | Told]) -> None:
    """Checkpoints, the floor of the scale, memory pressure."""
    assert said(DEEPSPEED, *lines) == expected


@pytest.mark.parametrize(
    "line",
    [
        "[INFO] [config.py:1001:print]   steps_per_print .............. 10",
        "[INFO] [engine.py:1] DeepSpeed Flops Profiler Enabled: False",
        "[INFO] [logging.py:96:log_dist] [Rank 0] rank=0 time (ms) | fwd_microstep: 12.3 | bwd_microstep: 3.4",
        "[INFO] [fused_optimizer.py:348:_update_scale] Reducing dynamic loss scale from 8192.0 to 4096.0",
        "step=20",
        '    "loss_scale_window": 1000,',
        "2 pytorch allocator cache flushes since last step",
        "",
    ],
    ids=range(8),
)
def test_what_says_nothing(line: str) -> None:
    """Configuration and profilers are no rows."""
    assert said(DEEPSPEED, line) == []


@pytest.mark.parametrize(
    ("line", "sign"),
    [(STEP, 1), (TIMER, 1), (OVERFLOW, 1), (PIPE, 3), ("{'loss': 1.0, 'epoch': 0.1}", 0)],
    ids=["step", "timer", "overflow", "pipe", "hf"],
)
def test_sign(line: str, sign: int) -> None:
    """A trainer that uses DeepSpeed prints most of these too: they alone do not make it a log of DeepSpeed's."""
    assert DEEPSPEED.sign(line) == sign


def test_hostile_lines() -> None:
    """Cut or mangled, nothing raises; long, nothing is slow."""
    lines = [STEP, OVERFLOW, HYSTERESIS, TIMER, PIPE, BEGUN.format(4), READY.format(4)]
    assert prefixes_are_read(DEEPSPEED, lines) and mangled_are_read(DEEPSPEED, lines)
    assert long_lines_are_quick(DEEPSPEED, lines)
