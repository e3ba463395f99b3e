"""How long a checkpoint took to be saved, where a trainer's own log says it: under one name, whatever the trainer."""

import pytest
from log_readers import records

from gyrostat_agent.sources.logs.table import FORMATS

TITAN = "[titan] 2026-01-02 03:04:05,678 - root - INFO - "
OLMO = "2026-01-02 03:0{}\tn01:0\tolmo_core.train:58\tINFO\t"
MEGATRON = (
    " iteration      250/    9000 | consumed samples:        16000 | grad norm: 0.777 | number of nan iterations:   0 |"
)
DEEPSPEED = "[2026-01-02 03:0{}] [INFO] [logging.py:96:log_dist] [Rank 0] "
LOGS: dict[str, tuple[str, list[str], int, float]] = {
    "verl": ("verl", ["step:12 - actor/pg_loss:0.1 - timing_s/save_checkpoint:np.float64(34.89)"], 12, 34.89),
    "megatron, of all ranks": (
        "megatron",
        [
            MEGATRON,
            "  successfully saved checkpoint from iteration     250 to /ck [ t 1/1, p 1/1 ]",
            "(min, max) time across ranks (ms):",
            "    save-checkpoint ................................: (81611.24, 81711.82)",
        ],
        250,
        81.71182,
    ),
    "megatron, of the slowest": (
        "megatron",
        [MEGATRON, "    save-checkpoint .................: 18512.90"],
        250,
        18.5129,
    ),
    "megatron, old": ("megatron", [MEGATRON, "time (ms) | save-checkpoint: 57514.53"], 250, 57.51453),
    "megatron, in one line": (
        "megatron",
        [
            MEGATRON,
            "  successfully saved checkpoint from iteration     250 to /ck [ t 1/1, p 1/1 ] (min, max) time across "
            "ranks (ms): save-checkpoint ................................: (24895.07, 24895.13)",
        ],
        250,
        24.89513,
    ),
    "slime": (
        "slime",
        [
            "[2026-01-02 03:04:05] model.py:918 - step 96: {'train/loss': 0.0021}",
            "[2026-01-02 03:05:40] train_metric_utils.py:1 - perf 96: {'perf/save_model_time': 101.5}",
            "[2026-01-02 03:06:05] model.py:918 - step 97: {'train/loss': 0.0021}",
        ],
        97,
        101.5,
    ),
    "prime-rl": (
        "prime_rl",
        ['{"step": 12, "time": 1767323045.5, "loss/mean": 0.1, "time/save_ckpt": 8.25}'],
        12,
        8.25,
    ),
    "nemo-rl": (
        "nemo_rl",
        [
            "========================= Step 12/500 =========================",
            "⏱️  Timing:",
            "  • Total step time: 35.70s",
            "  • checkpointing: 6.49s (18.2%)",
        ],
        12,
        6.49,
    ),
    "areal": (
        "areal",
        [
            "(AReaL) 20260102-03:04:05.678 StatsLogger INFO: Epoch 1/5 Step 12/100 Train step 12/500 done.",
            "│ timeperf/save                    │ 4.4140e+01 │ timeperf/train_step            │ 3.1000e+01 │",
        ],
        12,
        44.14,
    ),
    "torchtitan": (
        "torchtitan",
        [
            TITAN + "step: 12  loss:  3.14159  grad_norm:  0.1873  memory: 61.20GiB(77.41%)  tps: 1,530",
            TITAN + "Saving the checkpoint.",
            *[TITAN + "Finished saving the checkpoint in 12.30 seconds."] * 8,
        ],
        12,
        12.3,
    ),
    "torchtune": (
        "torchtune",
        ["Step 12 | loss:1.2345 lr:1e-05 ", "INFO:torchtune:Saving checkpoint took 21.05 secs"],
        12,
        21.05,
    ),
    "deepspeed": (
        "deepspeed",
        [
            DEEPSPEED.format("4:05,678") + "step=20, skipped=4, lr=[8.8e-06], mom=[(0.9, 0.999)]",
            DEEPSPEED.format("4:06,000") + "[Torch] Checkpoint global_step20 is about to be saved!",
            DEEPSPEED.format("4:30,500") + "[Torch] Checkpoint global_step20 is ready now!",
            DEEPSPEED.format("4:31,500") + "[Torch] Checkpoint global_step20 is ready now!",
        ],
        20,
        24.5,
    ),
    "olmo": (
        "olmo",
        [
            OLMO.format("4:05.678") + "[step=40/5000,epoch=1,eta=3h, 1m]",
            "    train/CE loss=3.142",
            OLMO.format("4:06.000") + "Saving checkpoint for step 40 to '/ck/step40'...",
            OLMO.format("4:10.000") + "[step=45/5000,epoch=1,eta=3h, 1m]",
            "    train/CE loss=3.140",
            OLMO.format("4:48.250") + "Checkpoint for step 40 saved successfully",
        ],
        45,
        42.25,
    ),
    "any other": ("generic", ["step=12 loss=0.3 timing/save_checkpoint=4.5"], 12, 4.5),
    "any other, in its own words": ("generic", ["step=12 loss=0.3 perf/save_checkpoint_seconds=4.5"], 12, 4.5),
}


@pytest.mark.parametrize(("form", "lines", "step", "seconds"), LOGS.values(), ids=LOGS)
def test_how_long_a_save_took(form: str, lines: list[str], step: int, seconds: float) -> None:
    """In seconds, with the step that the trainer was at, and no step back because of it."""
    found = records(FORMATS[form], *lines)
    assert [(one.step, one.values["checkpoint_seconds"]) for one in found if "checkpoint_seconds" in one.values] == [
        (step, pytest.approx(seconds))
    ]
    assert {one.segment for one in found} == {0}


UNTOLD: dict[str, tuple[str, list[str]]] = {
    "megatron, of no lasting checkpoint": (
        "megatron",
        [MEGATRON, "    save-checkpoint-non-persistent .........: (3.1, 4.2)"],
    ),
    "megatron, cut": ("megatron", [MEGATRON, "    save-checkpoint ................................: (81611.24, 817"]),
    "megatron, asynchronous": (
        "megatron",
        [
            MEGATRON,
            "  scheduled an async checkpoint save at iteration     250 to /ck",
            "(min, max) time across ranks (ms):",
            "    save-checkpoint ................................: (611.24, 711.82)",
        ],
    ),
    "megatron, before any step": (
        "megatron",
        ["    save-checkpoint ................................: (81.2, 81.3)", MEGATRON],
    ),
    "prime-rl, nothing saved": (
        "prime_rl",
        ['{"step": 12, "time": 1767323045.5, "loss/mean": 0.1, "time/save_ckpt": 0}'],
    ),
    "torchtitan, staged": (
        "torchtitan",
        [
            TITAN + "step: 12  loss:  3.14159  grad_norm:  0.1873  memory: 61.20GiB(77.41%)  tps: 1,530",
            TITAN + "Staging the checkpoint.",
            TITAN + "Finished saving the checkpoint in 0.30 seconds.",
        ],
    ),
    "torchtune, asynchronous": (
        "torchtune",
        ["Step 12 | loss:1.2 ", "INFO:torchtune:Saving asynchronous checkpoint took 2.05 secs"],
    ),
    "deepspeed, no times": (
        "deepspeed",
        [
            "[INFO] [Rank 0] step=20, skipped=4, lr=[8.8e-06]",
            "[Torch] Checkpoint global_step20 is about to be saved!",
            "[Torch] Checkpoint global_step20 is ready now!",
        ],
    ),
    "deepspeed, a clock set back": (
        "deepspeed",
        [
            DEEPSPEED.format("4:05,678") + "step=20, skipped=4, lr=[8.8e-06], mom=[(0.9, 0.999)]",
            DEEPSPEED.format("4:06,000") + "[Torch] Checkpoint global_step20 is about to be saved!",
            DEEPSPEED.format("1:30,500") + "[Torch] Checkpoint global_step20 is ready now!",
        ],
    ),
    "olmo, begun before the log": (
        "olmo",
        [
            OLMO.format("4:10.000") + "[step=45/5000,epoch=1,eta=3h, 1m]",
            "    train/CE loss=3.140",
            OLMO.format("4:48.250") + "Checkpoint for step 40 saved successfully",
        ],
    ),
}


@pytest.mark.parametrize(("form", "lines"), UNTOLD.values(), ids=UNTOLD)
def test_what_is_no_time_of_a_save(form: str, lines: list[str]) -> None:
    """What is in memory only, or not known whole, is not told as one."""
    found = records(FORMATS[form], *lines)
    assert found and not any("checkpoint_seconds" in one.values for one in found)
