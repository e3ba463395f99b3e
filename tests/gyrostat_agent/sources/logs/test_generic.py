"""Any other trainer: what is a number of a step, and what is a path, a clock, a host or a setting."""

import time
from typing import Any

import pytest
from rl_log_runs import NAN, records, said, survives, told

from gyrostat_agent.sources.logs.formats.generic import GENERIC
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Step

INF = float("inf")
ROWS: dict[str, tuple[str, int | None, dict[str, Any]]] = {
    "equals": ("step=12 loss=0.31 grad_norm=0.2", 12, {"loss": 0.31, "grad_norm": 0.2}),
    "commas": ("step=12, loss=0.31, grad_norm=0.2", 12, {"loss": 0.31, "grad_norm": 0.2}),
    "blanks round it": ("step = 12 , loss = 0.31", 12, {"loss": 0.31}),
    "colons": ("step: 12 loss: 0.31 reward: 0.5", 12, {"loss": 0.31, "reward": 0.5}),
    "tight colons": ("step:12 loss:0.31", 12, {"loss": 0.31}),
    "bars": ("Step 12 | loss 0.31 | reward 0.5", 12, {"loss": 0.31, "reward": 0.5}),
    "of a total": ("Step 12/500 - loss: 0.31", 12, {"loss": 0.31}),
    "in brackets": ("[step 12] reward=0.5", 12, {"reward": 0.5}),
    "in brackets, of a total": ("Iter [ 12/500] loss=0.5", 12, {"loss": 0.5}),
    "iteration": ("iteration 12: loss = 2.34", 12, {"loss": 2.34}),
    "iter": ("iter 100: loss 2.34, time 12.3ms, mfu 1.2%", 100, {"loss": 2.34}),
    "update": ("update 5: ppo_kl 0.01 entropy 0.5", 5, {"ppo_kl": 0.01, "entropy": 0.5}),
    "epoch": ("Epoch 3/10 - loss: 0.31", 3, {"loss": 0.31}),
    "step before epoch": ("epoch 1 step 40 loss 0.31", 40, {"loss": 0.31}),
    "global step before step": ("step=3 global_step=43 loss=0.31", 43, {"loss": 0.31}),
    "an unknown name before it": ("my_metric=0.5 step=12", 12, {"my_metric": 0.5}),
    "a step grown together": ("step12: loss=0.3", 12, {"loss": 0.3}),
    "a step under a name": ("train/step=12 epoch=3 loss=0.31", 12, {"loss": 0.31}),
    "global step in words": ("Global step 43: loss=0.31", 43, {"loss": 0.31}),
    "behind a logger": (
        "2026-01-02 03:04:05,678 INFO [train.py:123] step: 12/500 | loss: 0.31 | grad norm: 0.2 | eta: 0:01:02",
        12, {"loss": 0.31, "grad norm": 0.2},
    ),
    "behind a level": ("INFO loss=0.3, kl=0.1", None, {"loss": 0.3, "kl": 0.1}),
    "two measures": ("loss: 0.31 - reward: 0.5", None, {"loss": 0.31, "reward": 0.5}),
    "an unknown name": ("step=12 my_metric=0.5", 12, {"my_metric": 0.5}),
    "a name with slashes": ("step=12 actor/loss=0.5", 12, {"actor/loss": 0.5}),
    "nan": ("step=12 loss=nan", 12, {"loss": NAN}),
    "capital nan": ("step=12 loss=NaN grad_norm=NAN", 12, {"loss": NAN, "grad_norm": NAN}),
    "minus nan": ("step=12 loss=-nan", 12, {"loss": NAN}),
    "inf": ("step=12 loss=inf reward=-inf", 12, {"loss": INF, "reward": -INF}),
    "infinity": ("step=12 loss: Infinity", 12, {"loss": INF}),
    "numpy": ("step=12 loss=np.float64(0.12)", 12, {"loss": 0.12}),
    "tensor": ("step=12 loss=tensor(nan, device='cuda:0')", 12, {"loss": NAN}),
    "exponent": ("step=12 lr=1e-06 loss=3.1E+02", 12, {"lr": 1e-6, "loss": 310.0}),
    "thousands": ("step=12 tokens=12,345 loss=1.0", 12, {"tokens": 12345.0, "loss": 1.0}),
    "scaled": ("step=12 tokens=1.2K loss=1.0", 12, {"tokens": 1200.0, "loss": 1.0}),
    "percent": ("step=12 clipped=50% loss=1.0", 12, {"clipped": 0.5, "loss": 1.0}),
    "a unit apart": ("step=12 memory: 61.2 GiB, loss: 0.5", 12, {"memory": 61.2, "loss": 0.5}),
    "json": ('{"step": 12, "loss": 0.31}', 12, {"loss": 0.31}),
    "json, nan": ('{"step": 12, "loss": NaN, "reward": Infinity}', 12, {"loss": NAN, "reward": INF}),
    "json behind a logger": ('INFO train: {"step": 12, "loss": 0.31}', 12, {"loss": 0.31}),
    "json in json": (
        '{"global_step": 7, "train": {"loss": 0.3, "x": {"y": 1}}}', 7, {"train/loss": 0.3, "train/x/y": 1.0},
    ),
    "json, quoted": ('{"step": "12", "loss": "0.31"}', 12, {"loss": 0.31}),
    "json, of a total": ('{"iteration": "7/900", "loss": 0.31}', 7, {"loss": 0.31}),
    "json, a step with a point": ('{"step": 12.0, "loss": 0.31}', 12, {"loss": 0.31}),
    "json, the trainer's step": ('{"trainer/global_step": 9, "loss": 0.31}', 9, {"loss": 0.31}),
    "json, an epoch's part": ('{"epoch": 0.04, "loss": 0.31, "reward": 0.1}', None, {"loss": 0.31, "reward": 0.1}),
    "json, clock and host": (
        '{"step": 1, "time": 169.5, "timestamp": 1767323045, "pid": 42, "rank": 3, "host": "n1", "loss": 0.5}',
        1, {"loss": 0.5},
    ),
    "json, words": ('{"step": 1, "loss": 0.5, "phase": "late", "ok": true, "xs": [1]}', 1, {"loss": 0.5}),
    "json, cut": ('{"step": 12, "loss": 0.31, "reward": 0.', 12, {"loss": 0.31}),
    "dict": ("{'loss': 0.3, 'kl': nan}", None, {"loss": 0.3, "kl": NAN}),
    "dict with a step before it": ("step 12: {'loss': 0.3}", 12, {"loss": 0.3}),
}  # fmt: skip


@pytest.mark.parametrize(("line", "step", "values"), ROWS.values(), ids=ROWS.keys())
def test_what_counts(line: str, step: int | None, values: dict[str, Any]) -> None:
    """A line with a step, or with two known measures, is a row of numbers, however it is laid out."""
    assert told(GENERIC, line) == [(step, TRAIN, values)]


@pytest.mark.parametrize(
    "line",
    [
        "", "loss", "step 12", "loss: 0.31", "learning_rate: 1e-06", "lr=1e-6 batch_size=64", "kl_coef: 0.1",
        "Namespace(lr=1e-6, kl=0.1, loss=3, step=5)", "TrainConfig(loss=1.0, kl=0.1)", "config: loss=1 kl=0.1",
        "TrainingArguments(reward=1.0, kl=0.1,", "python train.py --loss 1.0 --kl 0.1 --step 12",
        "Num examples = 1000, Total optimization steps = 500", "max_steps=500 save_steps=100",
        "http://host:8080/?step=3&loss=1", "Saved /ckpt/step=40/loss=0.3.pt", "wrote out/step_40/loss_0.3.json",
        "[PID 4242] listening on 10.0.0.1:29500 port=29500", "pid=4242 rank=3 seed=17",
        "2026-01-02 03:04:05,678 - root - INFO - started", "elapsed: 0:01:02, eta: 3:04:05", "step time: 3.2",
        "Traceback (most recent call last):", '  File "train.py", line 12, in step', "ValueError: loss is 3",
        "version: 2.1.0", "torch==2.3.0 numpy=1.26.4", '{"lr": 1e-6, "beta": 0.1}', '{"level": "info", "ts": 1.5}',
        '{"event": "saved", "path": "/ckpt/step=3"}', "step=12 commit=4e51", "step=12 elapsed=3.2 pid=4",
        "Loading checkpoint shards: 100%|####| 2/2 [00:01<00:00,  1.5it/s]", "GET /metrics 200 12", "epoch: 0.04",
        "restarts: 2 (it died after step 21)",
    ],
)  # fmt: skip
def test_what_does_not_count(line: str) -> None:
    """Settings, paths, addresses, clocks, process numbers, versions and tracebacks are no numbers of a step."""
    assert told(GENERIC, line) == []


def test_evaluation_stands_apart() -> None:
    """By its names or by the line's beginning."""
    assert told(GENERIC, "validation step 20: loss=3.1") == [(20, EVAL, {"loss": 3.1})]
    assert told(GENERIC, "[eval] step=20 reward=0.4") == [(20, EVAL, {"reward": 0.4})]
    assert told(GENERIC, 'eval: {"step": 20, "loss": 3.1}') == [(20, EVAL, {"loss": 3.1})]
    assert records(GENERIC, "step 250: train loss 2.3, val loss 2.4\n") == [(250, {"loss": 2.3, "eval/val loss": 2.4})]
    assert told(GENERIC, "/data/test/run step=20 loss=3.1")[0][1] == TRAIN


def test_lines_under_a_step() -> None:
    """A step by itself, then a measure a line, is one step; settings among them are not taken."""
    log = "==== Step 12/50 ====\n  loss: 0.31\n  grad_norm = nan\nstep 13\nloss: 0.30\n"
    assert records(GENERIC, log) == [(12, {"loss": 0.31, "grad_norm": NAN}), (13, {"loss": 0.30})]
    assert said(GENERIC, "loss: 0.31", "--- step 3 ---", "batch_size: 64") == [Step(3)]


def test_null_is_nan_where_there_were_numbers() -> None:
    """JSON writers put null for NaN, but also for what was not measured: only the former had numbers before."""
    log = '{"step": 1, "loss": 0.5, "kl": null}\n{"step": 2, "loss": null, "kl": null}\n'
    assert records(GENERIC, log) == [(1, {"loss": 0.5}), (2, {"loss": NAN})]


@pytest.mark.parametrize(
    ("title", "steps"),
    [("Epoch {}", [12, 24, 132]), ("Train step of epoch {}", [12, 24, 132]), ("Epoch {}/3", [12, 24, 132])],
    ids=["alone", "in words", "of a total"],
)
def test_a_bar_of_an_epoch_tells_the_step(title: str, steps: list[int]) -> None:
    """All of an epoch's rows are not one step: the bar counts on, from epoch to epoch."""
    bars = [(0, 12, "0.5"), (0, 24, "0.4"), (1, 12, "nan")]
    lines = [f"{title.format(n)}:  10%|█ | {done}/120 [00:01<00:10, 8.9it/s, loss={loss}]" for n, done, loss in bars]
    found = records(GENERIC, "\r".join(lines))
    assert [step for step, _ in found] == steps
    assert [str(values["loss"]) for _, values in found] == ["0.5", "0.4", "nan"]


def test_names_are_canonical() -> None:
    """Whole words, never parts of them: a loss scale is no loss, a clip fraction of the norm no norm."""
    log = "step=1 train_loss=0.5 policy/entropy=0.3 loss_scale=65536 grad_norm_clip_fraction=0.1 rewards/mean=0.2\n"
    assert records(GENERIC, log) == [
        (1, {"loss": 0.5, "entropy": 0.3, "loss_scale": 65536.0, "grad_norm_clip_fraction": 0.1, "reward": 0.2}),
    ]  # fmt: skip


def test_a_log_of_rows_without_steps() -> None:
    """Rows are counted where none says its step."""
    log = "loss=0.5 kl=0.1\nloss=0.4 kl=0.1\nloss=nan kl=0.1\n"
    assert records(GENERIC, log) == [
        (0, {"loss": 0.5, "kl": 0.1}), (1, {"loss": 0.4, "kl": 0.1}), (2, {"loss": NAN, "kl": 0.1}),
    ]  # fmt: skip


def test_it_claims_no_log() -> None:
    """Any format that is sure comes first: it has no sign of its own."""
    assert {GENERIC.sign(line) for line, _, _ in ROWS.values()} == {0}


def test_nothing_in_a_line_raises() -> None:
    """Cut, damaged and mixed lines cost their line."""
    survives(GENERIC, (line for line, _, _ in ROWS.values()))
    assert said(GENERIC, '{"step": 1, "loss": ' + "[" * 5000) == []
    assert told(GENERIC, '{"step": 1, "loss": ' + "9" * 5000 + "}") == [(1, TRAIN, {"loss": INF})]


@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "a " * 100_000, "step " * 40_000, "loss=" * 40_000, "a.b/" * 50_000, "step=1 " * 30_000,
     "{" * 200_000, "'" * 200_000, '{"a":' * 40_000, "= " * 100_000, "((((" * 50_000, "1" * 200_000, " " * 200_000,
     "INFO " * 40_000, "a b c d e " * 20_000, "config" * 30_000,
     " 1" * 100_000, "a=1 " * 50_000, "a b c d 1 " * 20_000],
    ids=lambda text: text[:6],
)  # fmt: skip
def test_a_line_costs_no_more_than_its_length(text: str) -> None:
    """No line of 200 KB takes more than a quarter of a second, whatever it is made of: the scan never goes back far."""
    begin = time.process_time()
    said(GENERIC, text)
    assert time.process_time() - begin < 0.25
