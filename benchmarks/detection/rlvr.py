"""Healthy runs of RL with verifiable rewards: one that learns, and what such runs show without anything being wrong.

Levels are those of published runs: entropy begins between 0.25 and 1.5 nats and settles above half of that, gradient
norms are log-normal with memory, KL climbs and flattens, one rare token throws the mean of a raw KL a thousandfold.
"""

import math
from random import Random

from course import Columns, Course, now_and_then, numbered, times
from curves import climb, level, line, rates, settle
from noise import shaken, shares, wander

TRAINERS = ("verl", "trl", "openrlhf", "slime", "prime-rl", "nemo-rl")
_OPTIONAL = ("ppo_kl", "clip_fraction", "truncated_fraction", "mismatch_kl", "unique_fraction", "reward_std")


def policy(dice: Random, rows: int) -> Columns:
    """All columns of a run that learns, for ``course_of`` or for a fault to be put into."""
    first, last = dice.uniform(0.15, 0.5), dice.uniform(0.55, 0.85)
    rate = climb(rows, first, last, dice.uniform(0.2, 0.6) * rows, dice.uniform(0.2, 0.8) * rows)
    columns: Columns = {
        **rewarded(dice, rate, dice.choice((128, 256, 512, 1024))),
        **_spread(dice, rows),
        **_updated(dice, rows),
        **_answered(dice, rows),
        **paced(dice, rows),
    }
    return columns


def course_of(dice: Random, columns: Columns, keep: tuple[str, ...] = ()) -> Course:
    """A course in which some trainers' optional columns are left out, but never those of ``keep``."""
    dropped = {name for name in _OPTIONAL if name not in keep and dice.random() < 0.25}
    return numbered(dice.choice(TRAINERS), {name: c for name, c in columns.items() if name not in dropped})


def rewarded(dice: Random, rate: list[float], of: int) -> Columns:
    """The reward of ``of`` completions that are right at ``rate``, and what follows from it."""
    right = shares(dice, rate, of, dice.uniform(0.0, 0.04), dice.uniform(0.0, 0.7))
    alike = [0.08 + 0.75 * (2.0 * chance - 1.0) ** 2 for chance in rate]
    zero = [min(0.88, z) for z in shares(dice, alike, max(16, of // 8), 0.02)]
    spread = shaken(dice, [0.8 * math.sqrt(max(0.01, c * (1.0 - c))) for c in rate], 0.05)
    return {"reward": [*right], "zero_advantage_fraction": [*zero], "reward_std": [*spread]}


def settling(dice: Random, rows: int) -> list[float]:
    """Entropy that falls at first, as it does in every healthy run, and comes to rest well above half its start."""
    start = math.exp(dice.uniform(math.log(0.25), math.log(1.5)))
    lowest = 0.65 if start < 0.6 else max(0.42 / start, 0.35)
    way = settle(rows, start, start * dice.uniform(lowest, 1.1), dice.uniform(0.05, 0.3) * rows)
    return shaken(dice, way, dice.uniform(0.01, 0.06), dice.uniform(0.2, 0.8))


def _spread(dice: Random, rows: int) -> Columns:
    unique = [min(1.0, u) for u in shaken(dice, line(rows, 0.95, dice.uniform(0.6, 0.9)), 0.03)]
    return {"entropy": [*settling(dice, rows)], "unique_fraction": [*unique]}


def _updated(dice: Random, rows: int) -> Columns:
    size = math.exp(dice.uniform(math.log(0.05), math.log(3.0)))
    norm = shaken(dice, settle(rows, 1.5 * size, size, 0.1 * rows), dice.uniform(0.08, 0.3), dice.uniform(0.1, 0.7), 4)
    away = math.exp(dice.uniform(math.log(3e-3), math.log(0.3)))
    kl = shaken(dice, settle(rows, 1e-3 * away, away, dice.uniform(0.1, 0.4) * rows), dice.uniform(0.05, 0.2), 0.6)
    return {
        "loss": [*wander(dice, rows, dice.uniform(0.003, 0.04), 0.2, 5)],
        "grad_norm": [*norm],
        "kl": [*(_rare_token(dice, kl) if dice.random() < 0.1 else kl)],
        "ppo_kl": [*shaken(dice, level(rows, math.exp(dice.uniform(-9.0, -6.5))), 0.5, 0.3, 5)],
        "clip_fraction": [*shaken(dice, level(rows, dice.uniform(1e-3, 0.03)), 0.3, 0.3)],
        "mismatch_kl": [*shaken(dice, level(rows, dice.uniform(2e-4, 1.5e-3)), 0.25, 0.5, 6, most=1.5)],
        "learning_rate": [*rates(rows, dice.choice((5e-7, 1e-6, 2e-6)), dice.randrange(5, 30))],
    }


def _rare_token(dice: Random, kl: list[float]) -> list[float]:
    """A raw k3 mean in which one token is next to impossible under the reference, once or twice a run."""
    struck = set(dice.sample(range(len(kl)), k=2))
    return [v * dice.uniform(200.0, 5000.0) if row in struck else v for row, v in enumerate(kl)]


def _answered(dice: Random, rows: int) -> Columns:
    first = math.exp(dice.uniform(math.log(150.0), math.log(2500.0)))
    length = shaken(dice, line(rows, first, first * dice.uniform(0.8, 1.7)), dice.uniform(0.02, 0.07), 0.4)
    cut_off = line(rows, dice.uniform(0.0, 0.05), dice.uniform(0.01, 0.08))
    return {"response_length": [*length], "truncated_fraction": [*shares(dice, cut_off, 256)]}


def paced(dice: Random, rows: int) -> Columns:
    """Seconds a step: log-normal, with evaluations and checkpoints that take longer now and then."""
    seconds = shaken(dice, level(rows, dice.uniform(5.0, 150.0)), dice.uniform(0.02, 0.12), 0.2, 5)
    every, long = dice.choice((20, 50, 100)), dice.uniform(1.5, 8.0)
    return {"step_time": [s * long if (row + 1) % every == 0 else s for row, s in enumerate(seconds)]}


def learns(dice: Random, rows: int) -> Course:
    """Binary rewards that climb, entropy that settles, KL that flattens."""
    return course_of(dice, policy(dice, rows))


def hard_task(dice: Random, rows: int) -> Course:
    """A reward of a few percent that climbs late: counts of a few right answers, with the noise counts have."""
    first, last = dice.uniform(0.03, 0.09), dice.uniform(0.12, 0.4)
    rate = climb(rows, first, last, dice.uniform(0.5, 0.9) * rows, dice.uniform(0.4, 0.8) * rows)
    return course_of(dice, {**policy(dice, rows), **rewarded(dice, rate, dice.choice((256, 512)))})


def filtered_groups(dice: Random, rows: int) -> Course:
    """All-or-nothing rewards: now and then no group has spread, and the gradient of that step is rightly 0."""
    columns = policy(dice, rows)
    empty = {row + more for row in range(5, rows, dice.randrange(60, 200)) for more in range(dice.choice((1, 1, 2, 3)))}
    for name, value in {"zero_advantage_fraction": 1.0, "reward_std": 0.0, "grad_norm": 0.0, "loss": 0.0}.items():
        columns[name] = [value if row in empty else v for row, v in enumerate(columns[name])]
    return course_of(dice, columns, keep=("reward_std",))


def solved(dice: Random, rows: int) -> Course:
    """A task that is learnt to the end: most groups are all right, little is left to learn, and nothing is wrong."""
    rate = climb(rows, dice.uniform(0.3, 0.6), dice.uniform(0.965, 0.99), 0.4 * rows, 0.5 * rows)
    columns = {**policy(dice, rows), **rewarded(dice, rate, 512)}
    return course_of(dice, {**columns, "zero_advantage_fraction": [*shares(dice, [c**8 for c in rate], 64)]})


def longer_answers(dice: Random, rows: int) -> Course:
    """Completions grow three- to fivefold, and with them the seconds of a step and the share that is cut off."""
    columns = policy(dice, rows)
    growth = line(rows, 1.0, dice.uniform(3.0, 5.0))
    columns["response_length"] = [*shaken(dice, [200.0 * g for g in growth], 0.05, 0.4)]
    columns["step_time"] = times(columns["step_time"], [g**0.7 for g in growth])
    columns["truncated_fraction"] = [*shares(dice, line(rows, 0.01, dice.uniform(0.06, 0.12)), 256)]
    return course_of(dice, columns, keep=("truncated_fraction",))


def woken(dice: Random, rows: int) -> Course:
    """Entropy that rises by a third from a low start, as where a policy learns to try."""
    columns = policy(dice, rows)
    start = dice.uniform(0.12, 0.3)
    way = climb(rows, start, start * dice.uniform(1.15, 1.38), 0.3 * rows, 0.4 * rows)
    columns["entropy"] = [*shaken(dice, way, 0.03, 0.5)]
    return course_of(dice, columns)


def scored(dice: Random, rows: int) -> Course:
    """PPO with a reward model: a score without bounds that begins below 0, and a critic that begins wild."""
    columns = policy(dice, rows)
    score = settle(rows, dice.uniform(-3.0, -0.5), dice.uniform(1.0, 5.0), dice.uniform(0.2, 0.5) * rows)
    noise = wander(dice, rows, dice.uniform(0.05, 0.3), 0.5, 6)
    columns["reward"] = [value + by for value, by in zip(score, noise, strict=True)]
    columns["critic_grad_norm"] = [*shaken(dice, settle(rows, 800.0, dice.uniform(2.0, 20.0), 8.0), 0.4, 0.4, 4)]
    columns["critic_loss"] = [*shaken(dice, settle(rows, 5.0, 0.3, 0.1 * rows), 0.2, 0.3, 5)]
    for name in ("zero_advantage_fraction", "reward_std"):
        del columns[name]
    return course_of(dice, columns)


def interleaved(dice: Random, rows: int) -> Course:
    """Evaluations among the steps, and every second step of a batch that is used twice tells no rollouts."""
    columns = policy(dice, rows)
    for name in ("reward", "reward_std", "response_length", "truncated_fraction", "zero_advantage_fraction"):
        columns[name] = [value if row % 2 == 0 else None for row, value in enumerate(columns[name])]
    score = shares(dice, line(rows, 0.3, dice.uniform(0.35, 0.6)), 200, 0.02)
    columns["eval/reward"] = now_and_then(score, dice.choice((10, 20, 25)))
    return course_of(dice, columns)


def asynchronous(dice: Random, rows: int) -> Course:
    """A mixture of experts whose rollouts lag: the mismatch grows slowly and stays under half of its cap."""
    columns = policy(dice, rows)
    mismatch = line(rows, dice.uniform(1e-3, 2e-3), dice.uniform(2e-3, 4e-3))
    columns["mismatch_kl"] = [*shaken(dice, mismatch, 0.2, 0.5, 6, most=0.7)]
    columns["policy_lag"] = [float(dice.choice((1, 1, 2, 2, 3))) for _ in range(rows)]
    return course_of(dice, columns, keep=("mismatch_kl",))


def curriculum(dice: Random, rows: int) -> Course:
    """Every stage brings harder prompts: the reward falls by a quarter in a step, answers grow, and it learns on."""
    columns, stage = policy(dice, rows), max(60, rows // dice.randrange(3, 6))
    rate = [0.42 + 0.2 * (1.0 - math.exp(-(row % stage) / (0.4 * stage))) for row in range(rows)]
    longer = [1.12 ** (row // stage) for row in range(rows)]
    columns |= rewarded(dice, rate, 512)
    columns["response_length"] = times(columns["response_length"], longer)
    columns["entropy"] = times(columns["entropy"], [by**0.5 for by in longer])
    return course_of(dice, columns)
