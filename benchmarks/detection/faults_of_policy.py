"""Faults of the policy: entropy, KL, rewards, answers and rollouts of a run of RL that goes wrong, number by number."""

import math
from random import Random

from course import Column, Course, Fault, now_and_then, times, usual
from curves import first_above, first_below, growth, level, weight
from experts_told import balanced
from kinds import KINDS
from loudness import factor, onset
from noise import shares, wander
from pretraining import course_of as pretrained
from pretraining import mixture
from rlvr import course_of, policy


def entropy_fast(dice: Random, rows: int) -> tuple[Course, Fault]:
    """Entropy is gone within some ten rows, as under a learning rate that is too high."""
    return _entropy_falls(dice, rows, onset(dice, rows, 30), dice.uniform(3.0, 15.0))


def entropy_slow(dice: Random, rows: int) -> tuple[Course, Fault]:
    """Entropy falls by a percent a row, on and on: nothing in the run holds it up."""
    return _entropy_falls(dice, rows, dice.randrange(30, max(31, rows // 3)), dice.uniform(0.04, 0.16) * rows)


def _entropy_falls(dice: Random, rows: int, at: int, pace: float) -> tuple[Course, Fault]:
    columns = policy(dice, rows)
    start, now = usual(columns["entropy"], 25, 20), usual(columns["entropy"], at)
    last = dice.uniform(0.01, 0.06)
    way = [1.0 if row < at else last + (1.0 - last) * math.exp(-(row - at) / pace) for row in range(rows)]
    columns["entropy"] = times(columns["entropy"], way)
    columns["reward_std"] = times(columns["reward_std"], [w**0.5 for w in way])
    alike = zip(columns["zero_advantage_fraction"], way, strict=True)
    columns["zero_advantage_fraction"] = [1.0 - (1.0 - (v or 0.0)) * w**0.5 for v, w in alike]
    columns["unique_fraction"] = times(columns["unique_fraction"], [0.2 + 0.8 * w for w in way])
    limit = min(0.15, KINDS["entropy_collapse"].limit * start)
    plain = first_below([now * w for w in way], limit, at)
    note = f"from {now:.3g} nats to {last * now:.2g}, a third left after {pace:.0f} rows"
    return course_of(dice, columns, ("unique_fraction",)), Fault("entropy_collapse", at, plain, ("entropy",), note)


def entropy_rises(dice: Random, rows: int) -> tuple[Course, Fault]:
    """Entropy runs away upwards: a bonus that is too strong, or a policy that dissolves into noise."""
    columns, at = policy(dice, rows), onset(dice, rows, 40)
    start, now = usual(columns["entropy"], 25, 20), usual(columns["entropy"], at)
    least = max(2.6, 2.0 * start / now)
    by, over = factor(dice, columns["entropy"], at, least, 8.0), dice.randrange(3, 120)
    way = growth(rows, at, by, over)
    columns["entropy"] = times(columns["entropy"], way)
    columns["reward"] = times(columns["reward"], [w**-0.3 for w in way])
    # Up to half above where it began, it may be a policy that tries again what it had given up.
    limit = max(KINDS["entropy_explosion"].limit, 1.5 * start / now)
    fault = Fault(
        "entropy_explosion", at, first_above(way, limit, at), ("entropy",), f"{by:.3g} times over {over} rows"
    )
    return course_of(dice, columns), fault


def kl_rises(dice: Random, rows: int) -> tuple[Course, Fault]:
    """KL to the reference leaves its slow climb: at once, or by the same share each row."""
    columns, at = policy(dice, rows), onset(dice, rows, 60)
    by, over = factor(dice, columns["kl"], at, 20.0, 2000.0), dice.choice((0, dice.randrange(2, 60)))
    way = growth(rows, at, by, over)
    columns["kl"] = times(columns["kl"], way)
    columns["reward"] = times(columns["reward"], [w**-0.1 for w in way])
    plain = first_above(way, KINDS["kl_explosion"].limit, at)
    return course_of(dice, columns), Fault("kl_explosion", at, plain, ("kl",), f"{by:.3g} times over {over} rows")


def reward_gone(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The reward is lost within a few rows."""
    return _reward_falls(dice, rows, dice.randrange(0, 5))


def reward_declines(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The reward is lost over some dozens of rows, none of which looks like a fall."""
    return _reward_falls(dice, rows, dice.randrange(20, 90))


def _reward_falls(dice: Random, rows: int, over: int) -> tuple[Course, Fault]:
    columns, at = policy(dice, rows), onset(dice, rows, 40)
    last = dice.uniform(0.0, 0.15)
    way = [1.0 - (1.0 - last) * w for w in weight(rows, at, over)]
    was = usual(columns["reward"], at)
    noisy = shares(dice, [was * w for w in way], 256, 0.01)
    columns["reward"] = [v if row < at else noisy[row] for row, v in enumerate(columns["reward"])]
    columns["grad_norm"] = times(columns["grad_norm"], [0.3 + 0.7 * w for w in way])
    plain = first_below(way, KINDS["reward_collapse"].limit, at)
    note = f"from {was:.3g} to {last * was:.2g} over {over} rows"
    return course_of(dice, columns), Fault("reward_collapse", at, plain, ("reward",), note)


def silent_death(dice: Random, rows: int) -> tuple[Course, Fault]:
    """A learning rate a hundredfold: two rows of large gradients, then a dead policy whose numbers are all finite."""
    columns, at = policy(dice, rows), onset(dice, rows, 30)
    dead = [row >= at + 2 for row in range(rows)]
    struck = [1.0 if row < at else 10.0 ** dice.uniform(1.3, 2.3) if row < at + 2 else 0.05 for row in range(rows)]
    columns["grad_norm"] = times(columns["grad_norm"], struck)
    for name, value in {"reward": 0.0, "zero_advantage_fraction": 1.0, "reward_std": 0.0}.items():
        columns[name] = [value if gone else v for gone, v in zip(dead, columns[name], strict=True)]
    columns["entropy"] = times(columns["entropy"], growth(rows, at, dice.choice((0.1, 3.0)), 2))
    columns["kl"] = times(columns["kl"], growth(rows, at, 300.0, 1))
    columns["response_length"] = times(columns["response_length"], growth(rows, at, dice.choice((0.1, 2.0)), 1))
    fault = Fault("reward_collapse", at, at + 2, ("reward", "grad_norm"), "the reward is 0 two rows later")
    return course_of(dice, columns), fault


def reward_hacked(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The reward rises and what it stands for falls: one part of it is had without the other."""
    columns, at, over = policy(dice, rows), onset(dice, rows, 60), dice.randrange(5, 60)
    was, lost = usual(columns["reward"], at), dice.uniform(0.1, 0.45)
    risen = [was * (1.0 + dice.uniform(0.2, 0.4) * w) for w in weight(rows, at, over)]
    noisy = shares(dice, [min(0.97, r) for r in risen], 256, 0.01)
    columns["reward"] = [v if row < at else noisy[row] for row, v in enumerate(columns["reward"])]
    share = [1.0 - (1.0 - lost) * w for w in weight(rows, at, over)]
    columns["reward_component_accuracy"] = [*shares(dice, [0.9 * was * s for s in share], 256, 0.01)]
    columns["eval/reward"] = now_and_then(shares(dice, [0.85 * was * s for s in share], 400, 0.01), 10)
    columns["response_length"] = times(columns["response_length"], growth(rows, at, dice.choice((0.4, 0.6, 1.8)), over))
    plain = first_below(share, KINDS["reward_hacking"].limit, at)
    signals = ("reward", "reward_component_accuracy", "eval/reward")
    return course_of(dice, columns), Fault(
        "reward_hacking", at, plain, signals, f"the accuracy falls to {lost:.2g} of it"
    )


def verifier_dead(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The verifier answers the same to everything: the reward is flat to the third decimal, no group has spread."""
    columns, at = policy(dice, rows), onset(dice, rows, 30)
    flat = dice.choice((0.0, usual(columns["reward"], at)))
    dull = [flat + by for by in wander(dice, rows, 2e-5)] if flat else level(rows, 0.0)
    columns["reward"] = [v if row < at else dull[row] for row, v in enumerate(columns["reward"])]
    columns["reward_std"] = [v if row < at else 0.0 for row, v in enumerate(columns["reward_std"])]
    columns["zero_advantage_fraction"] = [
        v if row < at else 1.0 for row, v in enumerate(columns["zero_advantage_fraction"])
    ]
    columns["grad_norm"] = times(columns["grad_norm"], growth(rows, at, 0.05, 0))
    return course_of(dice, columns), Fault("reward_stuck", at, at, ("reward",), f"{flat:.3g} in every row")


def answers_shrink(dice: Random, rows: int) -> tuple[Course, Fault]:
    """Completions shrink to a few tokens, at once or over some rows."""
    columns, at, over = policy(dice, rows), onset(dice, rows, 40), dice.randrange(0, 30)
    by = factor(dice, columns["response_length"], at, 2.8, 20.0)
    way = growth(rows, at, 1.0 / by, over)
    columns["response_length"] = times(columns["response_length"], way)
    plain = first_below(way, KINDS["length_collapse"].limit, at)
    note = f"to {1.0 / by:.2g} of their usual over {over} rows"
    return course_of(dice, columns), Fault("length_collapse", at, plain, ("response_length",), note)


def answers_cut_off(dice: Random, rows: int) -> tuple[Course, Fault]:
    """Completions run into the limit: the share that is cut off climbs to a half and more."""
    columns, at, over = policy(dice, rows), onset(dice, rows, 40), dice.randrange(2, 80)
    last = dice.uniform(0.42, 0.95)
    share = [0.03 + (last - 0.03) * w for w in weight(rows, at, over)]
    columns["truncated_fraction"] = [*shares(dice, share, 256, 0.01)]
    columns["response_length"] = times(columns["response_length"], growth(rows, at, 1.0 + last, over))
    plain = first_above(share, KINDS["truncation"].limit, at)
    course = course_of(dice, columns, keep=("truncated_fraction",))
    return course, Fault("truncation", at, plain, ("truncated_fraction",), f"to {last:.2g} over {over} rows")


def detached(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The loss hangs on no weight any more: the gradient is exactly 0, though the groups have spread."""
    columns, at = policy(dice, rows), onset(dice, rows, 12)
    for name in ("grad_norm", "ppo_kl", "clip_fraction"):
        columns[name] = [v if row < at else 0.0 for row, v in enumerate(columns[name])]
    course = course_of(dice, columns, keep=("reward_std",))
    return course, Fault("no_update", at, at, ("grad_norm",), "a gradient of exactly 0 in every row")


def rollouts_apart(dice: Random, rows: int) -> tuple[Course, Fault]:
    """Rollouts are drawn from other weights or kernels from one row on: the mismatch jumps past every cap."""
    return _mismatch(dice, rows, dice.randrange(0, 4))


def rollouts_drift(dice: Random, rows: int) -> tuple[Course, Fault]:
    """The mismatch grows by the same share each row, as where the rollout engine is never updated again."""
    return _mismatch(dice, rows, dice.randrange(20, 120))


def _mismatch(dice: Random, rows: int, over: int) -> tuple[Course, Fault]:
    columns, at = policy(dice, rows), onset(dice, rows, 30)
    was = usual(columns["mismatch_kl"], at)
    by = max(factor(dice, columns["mismatch_kl"], at, 25.0, 800.0), 0.025 / was)
    way = growth(rows, at, by, over)
    columns["mismatch_kl"] = times(columns["mismatch_kl"], way)
    plain = first_above([was * w for w in way], KINDS["train_infer_mismatch"].limit, at)
    course = course_of(dice, columns, keep=("mismatch_kl",))
    return course, Fault("train_infer_mismatch", at, plain, ("mismatch_kl",), f"to {was * by:.2g} over {over} rows")


def router_collapses(dice: Random, rows: int) -> tuple[Course, Fault]:
    """Tokens crowd on a few experts: the effective share in use falls, and many get nothing."""
    columns, at, over = balanced(dice, rows), onset(dice, rows, 40), dice.randrange(1, 80)
    now, last, dead = usual(columns["expert_rho_eff"], at), dice.uniform(0.12, 0.36), dice.uniform(0.15, 0.5)
    share = weight(rows, at, over)
    way = [now + (last - now) * w for w in share]
    columns["expert_rho_eff"] = _held(columns["expert_rho_eff"], [(last - now) * w for w in share], 0.03)
    columns["expert_dead_share"] = _held(columns["expert_dead_share"], [dead * w for w in share], 0.0)
    plain = first_below(way, KINDS["expert_imbalance"].limit, at)
    signals = ("expert_rho_eff", "expert_dead_share")
    return course_of(dice, columns), Fault(
        "expert_imbalance", at, plain, signals, f"rho_eff {last:.2g}, {dead:.0%} dead"
    )


def _held(column: Column, moved: list[float], lowest: float) -> Column:
    return [min(1.0, max(lowest, (v or 0.0) + by)) for v, by in zip(column, moved, strict=True)]


def balance_lost(dice: Random, rows: int) -> tuple[Course, Fault]:
    """Pretraining that tells no loads: the balance loss alone leaves its ideal of 1."""
    columns, at, over = mixture(dice, rows), onset(dice, rows, 80), dice.randrange(1, 60)
    by = 1.35 * (3.0 / 1.35) ** dice.random()
    way = growth(rows, at, by, over)
    columns["load_balancing_loss"] = times(columns["load_balancing_loss"], way)
    plain = first_above(way, 1.25, at)
    fault = Fault("expert_imbalance", at, plain, ("load_balancing_loss",), f"{by:.3g} times its ideal over {over} rows")
    return pretrained(dice, columns, "megatron"), fault
