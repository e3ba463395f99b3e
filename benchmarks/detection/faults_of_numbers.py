"""Faults of the numbers: values that are not finite, gradients and losses that explode, scales at their floor."""

import math
from random import Random

from course import Columns, Course, Fault, numbered, resumed, times, usual
from curves import first_above, growth, weight
from kinds import KINDS
from loudness import factor, onset
from noise import shaken
from pretraining import course_of, mixture, tuning
from rlvr import TRAINERS, policy

NAN, INF = math.nan, math.inf


def _base(dice: Random, rows: int) -> Columns:
    return dice.choice((tuning, policy, mixture))(dice, rows)


def _course(dice: Random, columns: Columns) -> Course:
    return numbered(dice.choice(TRAINERS), columns) if "reward" in columns else course_of(dice, columns)


def nan_for_good(dice: Random, rows: int) -> tuple[Course, Fault]:
    """Loss and gradient norm are NaN or infinite from one row to the next, and all that follows from them."""
    columns, at = _base(dice, rows), onset(dice, rows, 8)
    odd = dice.choice((NAN, NAN, INF))
    for name in ("loss", "grad_norm", "kl", "entropy", "ppo_kl"):
        if name in columns:
            columns[name] = [v if row < at else odd if row == at else NAN for row, v in enumerate(columns[name])]
    return _course(dice, columns), Fault("nan_inf", at, at, ("loss", "grad_norm"), "not finite from one row on")


def nan_filtered(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The trainer's filter shows a loss of 0.0 or the running mean where it is NaN: the gradient norm alone tells."""
    columns, at = tuning(dice, rows), onset(dice, rows, 8)
    shown = dice.choice((0.0, usual(columns["loss"], at)))
    columns["loss"] = [v if row < at else shown for row, v in enumerate(columns["loss"])]
    columns["grad_norm"] = [v if row < at else NAN for row, v in enumerate(columns["grad_norm"])]
    return course_of(dice, columns, "hf_trainer"), Fault("nan_inf", at, at, ("grad_norm",), "the loss is filtered")


def nan_vanished(dice: Random, rows: int) -> tuple[Course, Fault]:
    """A NaN loss is left out of the line, and only the gradient norm beside it says why."""
    columns, at = mixture(dice, rows), onset(dice, rows, 8)
    columns["loss"] = [v if row < at else None for row, v in enumerate(columns["loss"])]
    columns["grad_norm"] = [v if row < at else NAN for row, v in enumerate(columns["grad_norm"])]
    return course_of(dice, columns, "megatron"), Fault("nan_inf", at, at, ("grad_norm",), "the loss is left out")


def nan_after_blowup(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The gradient norm explodes over a few rows before nothing is finite any more."""
    columns, at, gap = _base(dice, rows), onset(dice, rows, 24), dice.randrange(2, 7)
    columns["grad_norm"] = times(columns["grad_norm"], growth(rows, at, 10.0 ** dice.uniform(2.0, 6.0), gap))
    for name in ("loss", "grad_norm"):
        columns[name] = [v if row < at + gap else NAN for row, v in enumerate(columns[name])]
    fault = Fault("nan_inf", at, at + gap, ("grad_norm", "loss"), f"the gradient grows for {gap} rows, then NaN")
    return _course(dice, columns), fault


def grad_jump(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The gradient norm is ten to a thousand times its usual, at once and for good."""
    columns, at = _base(dice, rows), onset(dice, rows, 24)
    by = factor(dice, columns["grad_norm"], at, 1.5 * KINDS["grad_explosion"].limit, 1000.0)
    columns["grad_norm"] = times(columns["grad_norm"], growth(rows, at, by, 0))
    return _course(dice, columns), Fault("grad_explosion", at, at, ("grad_norm",), f"{by:.3g} times its usual at once")


def grad_growth(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The gradient norm grows by the same share each row, until it is far beyond everything before."""
    columns, at = _base(dice, rows), onset(dice, rows, 24)
    by, over = factor(dice, columns["grad_norm"], at, 40.0, 3000.0), dice.randrange(5, 30)
    way = growth(rows, at, by, over)
    columns["grad_norm"] = times(columns["grad_norm"], way)
    plain = first_above(way, max(KINDS["grad_explosion"].limit, by**0.6), at)
    fault = Fault("grad_explosion", at, plain, ("grad_norm",), f"to {by:.3g} times its usual over {over} rows")
    return _course(dice, columns), fault


def loss_jump(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The loss jumps and stays there, or comes back so slowly that the batches are lost."""
    columns, at = dice.choice((tuning, mixture))(dice, rows), onset(dice, rows, 30)
    by = factor(dice, columns["loss"], at, KINDS["loss_spike"].limit, 8.0)
    back = dice.choice((math.inf, dice.uniform(20.0, 80.0)))
    factors = [1.0 if row < at else 1.0 + (by - 1.0) * math.exp(-(row - at) / back) for row in range(rows)]
    columns["loss"] = times(columns["loss"], factors)
    columns["grad_norm"] = times(columns["grad_norm"], [f ** dice.uniform(0.5, 2.0) for f in factors])
    return course_of(dice, columns), Fault("loss_spike", at, at, ("loss",), f"{by:.3g} times its usual at once")


def scale_to_its_floor(dice: Random, rows: int) -> tuple[Course, Fault]:
    """fp16: every step overflows, the scale halves each time until it is 1, and nothing is updated any more."""
    columns, at = tuning(dice, rows), onset(dice, rows, 24)
    first = dice.randrange(10, 22)
    exponents = [first if row < at else max(0, first - (row - at)) for row in range(rows)]
    columns["loss_scale"] = [2.0**exponent for exponent in exponents]
    columns["skipped_steps"] = [float(max(0, row - at + 1)) for row in range(rows)]
    shown = dice.choice((None, INF))
    columns["grad_norm"] = [v if row < at else shown for row, v in enumerate(columns["grad_norm"])]
    columns["loss"] = [v if row < at else None for row, v in enumerate(columns["loss"])]
    fault = Fault("loss_scale_floor", at, at + first, ("loss_scale",), f"from 2**{first} to 1, halved each row")
    return course_of(dice, columns, dice.choice(("megatron", "deepspeed"))), fault


def memory_leak(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The device's memory grows row by row until it is out: by a run of small leaks, or by some larger ones."""
    columns, at = dice.choice((tuning, mixture))(dice, rows), onset(dice, rows, 60)
    full = usual(columns["gpu_mem_gb"], at)
    over, coarse = dice.randrange(40, max(41, min(250, rows - at))), dice.choice((1, 1, 8))
    share = weight(rows, at, over)
    grown = [share[row - (row - at) % coarse] if row >= at else 0.0 for row in range(rows)]
    columns["gpu_mem_gb"] = [(v or 0.0) + (79.1 - full) * s for v, s in zip(columns["gpu_mem_gb"], grown, strict=True)]
    out = at + over
    fault = Fault("oom", at, min(out, rows - 1), ("gpu_mem_gb",), f"{79.1 - full:.3g} GiB over {over} rows")
    return course_of(dice, columns), fault


def loader_stalls(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The step waits for data from some row on, longer than it takes itself."""
    columns, at = tuning(dice, rows), onset(dice, rows, 24)
    seconds = usual(columns["step_time"], at)
    waits = shaken(dice, [dice.uniform(1.5, 12.0) * seconds] * rows, 0.25, 0.3)
    late = [0.0 if row < at else wait for row, wait in enumerate(waits)]
    for name in ("data_time", "step_time"):
        columns[name] = [(v or 0.0) + wait for v, wait in zip(columns[name], late, strict=True)]
    fault = Fault("stall_dataloader", at, at, ("data_time", "step_time"), "each step waits for its data")
    return course_of(dice, columns), fault


def optimizer_lost(dice: Random, rows: int) -> tuple[Course, Fault]:
    """A run is resumed without its optimizer's state: loss and gradient norm are higher than before, for good."""
    columns, at = tuning(dice, rows), onset(dice, rows, 40)
    by = factor(dice, columns["loss"], at, 1.2, 2.5)
    rises = dice.choice((0.0, 0.002))
    factors = [1.0 if row < at else by * (1.0 + rises * (row - at)) for row in range(rows)]
    columns["loss"] = times(columns["loss"], factors)
    columns["grad_norm"] = times(columns["grad_norm"], growth(rows, at, dice.uniform(1.5, 6.0), 0))
    course = resumed(course_of(dice, columns), at, dice.randrange(4, min(40, at // 2)))
    return course, Fault("resume_jump", at, at, ("loss", "grad_norm"), f"the loss is {by:.3g} times its usual")
