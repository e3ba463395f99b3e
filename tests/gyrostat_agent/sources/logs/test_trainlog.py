"""train.log: pairs however they are written, NaN in numbers and in words, and what is no metric."""

import math
import random

import pytest

from gyrostat_agent.sources.logs.formats.trainlog import TRAIN_LOG, TrainLogReader
from gyrostat_agent.sources.logs.lines import Lines
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Said, Told

NAN = math.nan


def said(*lines: str) -> list[Said]:
    """All that a log of these lines says."""
    reader, text = TrainLogReader(), Lines()
    found = [*text.feed("\n".join(lines).encode()), *text.end()]
    return [*(one for line in found for one in reader.read(line)), *reader.end()]


ROWS: dict[str, tuple[str, int | None, dict[str, float]]] = {
    "equals": ("step=120 loss=0.41 grad_norm=0.9", 120, {"loss": 0.41, "grad_norm": 0.9}),
    "colons": ("step: 120 | loss: 0.41 | grad norm: 0.9", 120, {"loss": 0.41, "grad norm": 0.9}),
    "tight-colons": ("step:120 - loss:0.41 - kl:nan", 120, {"loss": 0.41, "kl": NAN}),
    "commas": ("step=120,loss=0.41,entropy=1.2,", 120, {"loss": 0.41, "entropy": 1.2}),
    "blanks": ("step = 120, loss = 0.41", 120, {"loss": 0.41}),
    "json": ('{"step": 120, "loss": 0.41, "grad_norm": NaN}', 120, {"loss": 0.41, "grad_norm": NAN}),
    "json-null": ('{"step": 120, "loss": null}', 120, {"loss": NAN}),
    "dict": ("{'step': 120, 'loss': '0.41'}", 120, {"loss": 0.41}),
    "nan": ("step=121 loss=nan grad_norm=inf", 121, {"loss": NAN, "grad_norm": math.inf}),
    "capital-nan": ("step=121 loss=NaN grad_norm=-Inf", 121, {"loss": NAN, "grad_norm": -math.inf}),
    "stamped": ("2026-01-02 03:04:05,678 INFO step=120 loss=0.41", 120, {"loss": 0.41}),
    "bracketed": ("[2026-01-02 03:04:05] [step 120] loss: 0.41 reward: -1.5", 120, {"loss": 0.41, "reward": -1.5}),
    "of-many": ("Step 120/5000 loss=0.41", 120, {"loss": 0.41}),
    "iteration": ("iteration 120: loss=0.41", 120, {"loss": 0.41}),
    "iter": ("iter: 120, loss: 0.41", 120, {"loss": 0.41}),
    "global-step": ("global_step=120 policy_entropy=0.5", 120, {"policy_entropy": 0.5}),
    "update": ("update 120 | reward/mean=0.5", 120, {"reward/mean": 0.5}),
    "hash": ("step #120 loss=0.41", 120, {"loss": 0.41}),
    "epoch-beside": ("epoch=1 step=120 loss=0.41", 120, {"epoch": 1.0, "loss": 0.41}),
    "exponent": ("step=120 loss=4.1E-01 lr=1e-06", 120, {"loss": 0.41, "lr": 1e-06}),
    "thousands": ("step=120 loss=0.41 tokens=1,234,567", 120, {"loss": 0.41, "tokens": 1234567.0}),
    "percent": ("step=120 loss=0.41 clip_fraction=5.5%", 120, {"clip_fraction": 0.055}),
    "sentence": ("At step 120 the loss: 0.41.", 120, {"loss": 0.41}),
    "no-step-two-measures": ("loss=0.41 grad_norm=0.9", None, {"loss": 0.41, "grad_norm": 0.9}),
    "no-step-sick": ("WARNING grad_norm=nan", None, {"grad_norm": NAN}),
    "words": ("grad norm became NaN at step 7", 7, {"grad_norm": NAN}),
    "words-loss": ("WARNING: loss is nan, step 7", 7, {"loss": NAN}),
    "words-inf": ("gradient norm is inf", None, {"grad_norm": math.inf}),
    "words-turned": ("step 9: NaN loss detected", 9, {"loss": NAN}),
    "words-found": ("NaN found in gradients at iteration 12", 12, {"grad_norm": NAN}),
    "not-a-setting-step": ("max step 5000 step 120 loss=0.41", 120, {"loss": 0.41}),
    "my-own": ("step=120 loss=0.41 my_thing=7", 120, {"loss": 0.41, "my_thing": 7.0}),
    "two-ranks": ("step=120 lo" + "step=120 loss=0.41", 120, {"loss": 0.41}),
    "cut": ("step=120 loss=0.41 grad_no", 120, {"loss": 0.41}),
}


@pytest.mark.parametrize(("line", "step", "expected"), ROWS.values(), ids=ROWS)
def test_a_row_is_read(line: str, step: int | None, expected: dict[str, float]) -> None:
    """Its step and numbers."""
    [row] = said(line)
    assert isinstance(row, Told) and row.step == step
    assert {n: str(row.values.get(n)) for n in expected} == {n: str(v) for n, v in expected.items()}


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-02 03:04:05 INFO started pid=4242 port=29500",
        "lr=1e-06 warmup_steps=50 seed=42 batch_size=64",
        "max_steps=5000 save_steps=500 kl_coef=0.1",
        "loss: none, entropy: none, reward: null",
        "connecting to http://10.0.0.1:8080/a?loss=1",
        "saving /out/step=120/loss=0.4",
        "training for 5000 steps, total steps: 5000",
        "logging_nan_inf_filter=True",
        "check loss for nan: no nan in loss",
        "if the loss is nan the step is skipped",
        "step 120 done in 3.2s",
        "step=120 host=node-1 time=03:04:05",
        "grad_norm_clip: 1.0",
        "",
        "===",
    ],
)
def test_what_is_no_row(line: str) -> None:
    """Settings, timestamps, addresses, paths, process numbers, and talk of NaN where there is none."""
    assert said(line) == []


def test_numbers_that_are_none() -> None:
    """Beside a metric nothing else of the line is taken for one."""
    [row] = said(
        "2026-01-02 03:04:05 pid=42 rank=3 host=10.0.0.1:80 at=03:04:05 took=1.2s v=1.2.3 step=7 loss=0.5 d=2026-01-02"
    )
    assert isinstance(row, Told) and (row.step, row.values) == (7, {"loss": 0.5})


def test_phases() -> None:
    """A line of an evaluation is told as such."""
    rows = said("step=120 loss=0.41", "eval step=120 loss=0.6", "validation | step: 120 | loss: 0.6")
    assert [row.phase for row in rows if isinstance(row, Told)] == [TRAIN, EVAL, EVAL]


def test_names() -> None:
    """Names are read by what they measure, blanks and all."""
    read = {"grad norm": "grad_norm", "learning rate": "learning_rate", "policy loss": "loss", "reward/mean": "reward",
            "lr": "learning_rate", "loss_scale": "loss_scale"}  # fmt: skip
    names = Names(TRAIN_LOG.aliases)
    assert {name: names.of(name).canonical for name in read} == read


def test_half_and_broken_lines() -> None:
    """Any cut and any changed byte raises nothing."""
    random_ = random.Random(7)
    lines = [row[0] for row in ROWS.values()]
    for line in lines:
        for end in range(len(line)):
            said(line[:end], line[end:])
    for _ in range(2000):
        data = bytearray(random_.choice(lines).encode())
        for _ in range(random_.randint(1, 6)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        said(data.decode("utf-8", "replace"))


@pytest.mark.parametrize(
    "piece",
    ["a", "a ", "a=", "a: ", "step ", "step = ", "step [", "loss is ", "nan a ", "1", "grad ", "a.b/c-", "nan", " "],
)
def test_a_hostile_line_costs_no_more_than_its_length(piece: str) -> None:
    """A long line of what rows are made of is read as fast as any."""
    assert said("step=1 loss=nan " + piece * (200_000 // len(piece))) is not None


def test_how_it_is_recognised() -> None:
    """A little by each row; settings and prose are none."""
    assert TRAIN_LOG.sign("step=120 loss=0.41") == TRAIN_LOG.sign("iter: 3, grad norm: nan") == 1
    assert [TRAIN_LOG.sign(one) for one in ("lr=1e-6 seed=3", "step 3 done", "grad norm became NaN at step 7")] == [
        0
    ] * 3
