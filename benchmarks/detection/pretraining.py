"""Healthy runs of supervised training: fine-tuning, and the pretraining of a mixture of experts.

A batch of eight makes a loss that swings by thirty percent; warm-up throws gradient norms twentyfold; fp16 searches its
scale and loses a step now and then; a bad row is skipped and forgotten; the data change, and the loss with them.
"""

import math
from collections.abc import Mapping
from itertools import accumulate
from random import Random

from course import Column, Columns, Course, now_and_then, numbered, resumed, times
from curves import growth, level, rates, settle
from noise import shaken, wander
from rlvr import paced

NAN = math.nan


def tuning(dice: Random, rows: int) -> Columns:
    """All columns of a fine-tuning run that learns, for a fault to be put into."""
    last = dice.uniform(0.4, 1.6)
    way = settle(rows, last * dice.uniform(1.2, 2.5), last, dice.uniform(0.03, 0.25) * rows)
    size = math.exp(dice.uniform(math.log(0.1), math.log(8.0)))
    norm = shaken(dice, settle(rows, 2.0 * size, size, 0.05 * rows), dice.uniform(0.06, 0.3), dice.uniform(0.0, 0.6), 4)
    warm_up = dice.randrange(3, 40)
    return {
        "loss": [*shaken(dice, way, dice.uniform(0.01, 0.07), dice.uniform(0.0, 0.8), 5, most=0.35)],
        "grad_norm": [*norm],
        "learning_rate": [*rates(rows, dice.choice((1e-5, 2e-5, 1e-4)), warm_up, dice.choice((0, rows)))],
        **loaded(dice, rows),
        **paced(dice, rows),
    }


def loaded(dice: Random, rows: int) -> Columns:
    """Seconds that the step waited for data, and memory of the device: full after a few rows, and then level."""
    full = dice.uniform(35.0, 68.0)
    memory = settle(rows, full - dice.uniform(1.0, 6.0), full, dice.uniform(3.0, 40.0))
    return {
        "data_time": [*shaken(dice, level(rows, dice.uniform(0.005, 0.1)), 0.4, 0.3, 4)],
        "gpu_mem_gb": [value + by for value, by in zip(memory, wander(dice, rows, 0.15, 0.3), strict=True)],
        "gpu_mem_total_gb": [*level(rows, 79.1)],
    }


def course_of(dice: Random, columns: Columns, trainer: str = "") -> Course:
    """A course of a trainer that logs every step, or every tenth."""
    named = trainer or dice.choice(("hf_trainer", "trl", "ms-swift", "megatron", "torchtitan"))
    return numbered(named, columns, dice.choice((1, 1, 1, 10)))


def tunes(dice: Random, rows: int) -> Course:
    """A loss that falls and flattens, with memory in its noise."""
    return course_of(dice, tuning(dice, rows))


def small_batches(dice: Random, rows: int) -> Course:
    """A batch of eight: the loss swings by thirty percent from step to step, and that is all."""
    columns = tuning(dice, rows)
    way = settle(rows, dice.uniform(0.9, 1.5), dice.uniform(0.5, 0.85), 0.2 * rows)
    columns["loss"] = [*shaken(dice, way, dice.uniform(0.12, 0.18), 0.1, 8, most=0.7)]
    return course_of(dice, columns)


def warmed_up(dice: Random, rows: int) -> Course:
    """The first update throws the loss to twice its size, and warm-up the gradient norm twentyfold, a few times."""
    columns, warm = tuning(dice, rows), max(20, rows // 12)
    spikes = {dice.randrange(2, warm): dice.uniform(6.0, 24.0) for _ in range(dice.randrange(1, 5))}
    columns["grad_norm"] = _struck(columns["grad_norm"], spikes)
    columns["loss"] = _struck(columns["loss"], {1: dice.uniform(1.6, 2.4), 2: 1.25, 3: 1.05})
    columns["learning_rate"] = [*rates(rows, 3e-4, warm)]
    return course_of(dice, columns)


def restarted_rates(dice: Random, rows: int) -> Course:
    """Warm restarts: the rate goes down a cosine and begins anew, the loss gives back a little each time."""
    columns, period = tuning(dice, rows), max(50, rows // dice.randrange(3, 6))
    learning_rate = rates(rows, 1e-4, 10, period)
    columns["learning_rate"] = [*learning_rate]
    columns["loss"] = times(columns["loss"], [1.0 + 0.05 * rate / 1e-4 for rate in learning_rate])
    return course_of(dice, columns)


def other_data(dice: Random, rows: int) -> Course:
    """Another mix of data from some row on: loss and gradient norm at another level, at once or over some rows."""
    columns, at = tuning(dice, rows), dice.randrange(rows // 4, 3 * rows // 4)
    rows_long = dice.choice((0, 0, 30))
    for name, factor in (("loss", dice.choice((0.8, 1.1, 1.2))), ("grad_norm", dice.choice((0.7, 1.3, 1.5)))):
        columns[name] = times(columns[name], growth(rows, at, factor, rows_long))
    return course_of(dice, columns)


def bad_rows(dice: Random, rows: int) -> Course:
    """One NaN here and there, which the trainer skips and forgets: never two in a row."""
    columns = tuning(dice, rows)
    struck = {row + dice.randrange(20) for row in range(30, rows - 30, dice.randrange(200, 500))}
    name = dice.choice(("loss", "grad_norm"))
    columns[name] = [NAN if row in struck else v for row, v in enumerate(columns[name])]
    columns["step_applied"] = [0.0 if row in struck else 1.0 for row in range(rows)]
    return course_of(dice, columns)


def evaluated(dice: Random, rows: int) -> Course:
    """Evaluations in between: their loss in a column of its own, their pause in the time of the step."""
    columns, every = tuning(dice, rows), dice.choice((20, 50, 100))
    losses = shaken(dice, settle(rows, 1.6, dice.uniform(0.8, 1.2), 0.3 * rows), 0.01)
    columns["eval/loss"] = now_and_then(losses, every)
    columns["step_time"] = _struck(columns["step_time"], dict.fromkeys(range(every - 1, rows, every), 15.0))
    return course_of(dice, columns)


def loader_pauses(dice: Random, rows: int) -> Course:
    """The loader begins an epoch anew and the step waits for it, once; a slow node makes some steps longer."""
    columns, epoch = tuning(dice, rows), max(40, rows // dice.randrange(3, 9))
    wait = dice.uniform(5.0, 20.0)
    for name in ("data_time", "step_time"):
        columns[name] = [wait + (v or 0.0) if row % epoch == 0 else v for row, v in enumerate(columns[name])]
    return course_of(dice, columns)


def scaled(dice: Random, rows: int) -> Course:
    """fp16: the scale is searched downwards at first, doubles when all is well, and halves at an overflow."""
    columns, search = tuning(dice, rows), dice.randrange(4, 12)
    scale, clean, scales, skipped = 2.0**32, 0, list[float](), list[bool]()
    for row in range(rows):
        skipped.append(row < search or (clean > 30 and dice.random() < 0.004))
        scales.append(scale)
        clean = 0 if skipped[-1] else clean + 1
        grows = clean % 200 == 199 and scale < 2.0**26
        scale *= 0.5 if skipped[-1] else 2.0 if grows else 1.0
    columns["loss_scale"] = [*scales]
    columns["skipped_steps"] = [float(count) for count in accumulate(skipped)]
    for name in ("loss", "grad_norm"):  # neither is told of a step that was skipped
        columns[name] = [None if gone else v for gone, v in zip(skipped, columns[name], strict=True)]
    return course_of(dice, columns, dice.choice(("megatron", "deepspeed")))


def mixture(dice: Random, rows: int) -> Columns:
    """All columns of the pretraining of a mixture of experts, for a fault to be put into."""
    columns = tuning(dice, rows)
    columns["loss"] = [*shaken(dice, settle(rows, 11.5, dice.uniform(2.2, 4.0), 0.12 * rows), 0.012, 0.4, 5, most=0.2)]
    ideal = dice.uniform(0.998, 1.02)
    columns["load_balancing_loss"] = [*shaken(dice, settle(rows, 1.4, ideal, 0.03 * rows), 0.004, 0.3)]
    columns["z_loss"] = [*shaken(dice, settle(rows, 0.05, 0.013, 0.1 * rows), 0.05, 0.3)]
    return columns


def pretrains(dice: Random, rows: int) -> Course:
    """A mixture of experts: the balance loss begins high and settles at 1, warm-up throws the norm a time or two."""
    columns, warm = mixture(dice, rows), max(20, rows // 10)
    struck = {dice.randrange(8, warm): dice.uniform(8.0, 24.0) for _ in range(dice.randrange(0, 3))}
    columns["grad_norm"] = _struck(columns["grad_norm"], struck)
    return course_of(dice, columns, dice.choice(("megatron", "ms-swift", "olmo-core")))


def resumes(dice: Random, rows: int) -> Course:
    """A run that dies and is resumed from its checkpoint: some steps are told twice, the first row takes long."""
    columns = tuning(dice, rows)
    died = dice.randrange(rows // 3, 2 * rows // 3)
    columns["step_time"] = _struck(columns["step_time"], {died: 6.0})
    return resumed(course_of(dice, columns), died, dice.randrange(5, min(60, died // 2)))


def _struck(column: Column, factors: Mapping[int, float]) -> Column:
    """A column in which some rows are so many times what they were."""
    return times(column, [factors.get(row, 1.0) for row in range(len(column))])
