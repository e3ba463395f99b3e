"""Knobs: the numbers of a training step that may be turned from outside, with their bounds.

Names, bounds and largest changes stand in one table, which is what Hello shows and what a resume is checked
against. A switch is 0 or 1. What only a restart can change is offered too, so that it can be read; a directive on
it is refused by its bounds, which are where it stands.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from gyrostat import Knob


class KnobValues(NamedTuple):
    """How the knobs stand. By default a run learns; the clipping range is DAPO's (arXiv 2503.14476)."""

    lr_scale: float = 1.0
    router_lr_scale: float = 1.0
    max_grad_norm: float = 1.0
    kl_coef: float = 0.0
    eps_lo: float = 0.2
    eps_hi: float = 0.28
    temperature: float = 1.0
    use_gepo: float = 1.0
    difficulty_threshold: float = 0.6
    a_easy: float = 0.5
    a_hard: float = 0.25
    eta: float = 0.0
    token_entropy_flow_control: float = 1.0
    min_entropy_floor: float = 0.3
    lambda_max: float = 0.95
    alpha_max: float = 0.1
    d_alpha: float = 4e-3
    variance_threshold: float = 0.15
    sample_steps: float = 50.0
    router_aux_coef: float = 1e-2
    router_z_coef: float = 1e-3
    router_bias_rate: float = 0.0
    router_noise: float = 0.0
    loop_times: float = 4.0
    adv_eps: float = 1e-4
    kl_clamp: float = 10.0
    ratio_cap: float = 20.0
    mask_degenerate: float = 1.0


class Limits(NamedTuple):
    """Bounds of a knob, the largest change of one directive, what the knob does, and whether it can be live."""

    low: float
    high: float
    max_factor: float | None
    max_step: float | None
    doc: str
    live: bool = True


LIMITS: Mapping[str, Limits] = {
    "lr_scale": Limits(0.01, 1.0, 2.0, None, "multiplies the scheduled learning rate"),
    "router_lr_scale": Limits(0.01, 1.0, 2.0, None, "multiplies the router's learning rate once more"),
    "max_grad_norm": Limits(0.1, 2.0, 2.0, None, "the gradient is scaled down to this norm"),
    "kl_coef": Limits(0.0, 0.05, 2.0, None, "weight of the clamped KL towards the reference policy"),
    "eps_lo": Limits(0.1, 0.3, None, 0.02, "the ratio is clipped below at 1 - eps_lo"),
    "eps_hi": Limits(
        0.2, 0.4, None, 0.02, "the ratio is clipped above at 1 + eps_hi, of a group of middling difficulty"
    ),
    "temperature": Limits(0.7, 1.2, None, 0.05, "rollouts are drawn at this temperature"),
    "use_gepo": Limits(0.0, 1.0, None, None, "1: advantages are shaped by group entropy, ramped over 10 steps"),
    "difficulty_threshold": Limits(0.5, 0.8, None, 0.05, "delta: harder groups are hard, those below 1 - delta easy"),
    "a_easy": Limits(0.0, 0.8, None, 0.1, "how much gains of easy groups are attenuated"),
    "a_hard": Limits(0.0, 0.5, None, 0.1, "how much losses of hard groups are attenuated; counts for at most a_easy"),
    "eta": Limits(0.0, 1.0, None, None, "share of a group's own sigma in the divisor; 1 is GRPO", live=False),
    "token_entropy_flow_control": Limits(
        0.0, 1.0, None, None, "1: tokens are weighed by the entropy they take or give"
    ),
    "min_entropy_floor": Limits(
        0.02, 1.45, 1.25, None, "entropy to stay above, nats a token; at most half of the first"
    ),
    "lambda_max": Limits(0.0, 0.95, None, 0.1, "largest weight of the entropy flow's correction"),
    "alpha_max": Limits(0.0, 0.2, 2.0, None, "largest entropy bonus; 0 is no floor controller"),
    "d_alpha": Limits(0.0, 0.01, 2.0, None, "step of the entropy bonus; counts for at most alpha_max / 20"),
    "variance_threshold": Limits(
        0.05, 0.24, None, 0.02, "least variance of a pivot's rewards; holds when next profiled"
    ),
    "sample_steps": Limits(16.0, 512.0, 2.0, None, "states looked at for pivots; holds when next profiled"),
    "router_aux_coef": Limits(0.0, 0.1, 3.0, None, "weight of the router's balance loss"),
    "router_z_coef": Limits(0.0, 1e-2, 3.0, None, "weight of the router's z loss"),
    "router_bias_rate": Limits(0.0, 1e-2, 2.0, None, "step of the bias that balances experts without a gradient"),
    "router_noise": Limits(0.0, 1.0, None, 0.1, "deviation of the noise on router scores; back to 0 after 50 steps"),
    "loop_times": Limits(1.0, 64.0, None, None, "times that the block is applied", live=False),
    "adv_eps": Limits(1e-6, 1e-2, None, None, "added to sigma before dividing by it"),
    "kl_clamp": Limits(1.0, 20.0, None, None, "largest KL of one token that counts, nats"),
    "ratio_cap": Limits(2.0, 50.0, None, None, "largest log ratio that counts"),
    "mask_degenerate": Limits(0.0, 1.0, None, None, "1: groups whose completions all got one reward are left out"),
}
SWITCHES = ("use_gepo", "token_entropy_flow_control", "mask_degenerate")


class HoldsKnobs(Protocol):
    """Whoever's knobs are turned: the trainer."""

    knobs: KnobValues


def offered(holder: HoldsKnobs) -> tuple[Knob, ...]:
    """The holder's knobs as Control offers them; a change holds from the step that begins."""
    return tuple(_offer(holder, name, limits) for name, limits in LIMITS.items())


def turned(knobs: KnobValues, changes: Mapping[str, float]) -> KnobValues:
    """``knobs`` with ``changes``; raises ValueError on an unknown name or a value outside its bounds."""
    for name, value in changes.items():
        if (limits := LIMITS.get(name)) is None:
            raise ValueError(f"there is no knob {name!r}; there are {', '.join(LIMITS)}")
        if not (math.isfinite(value) and limits.low <= value <= limits.high):
            raise ValueError(f"{name}={value:g} is outside its bounds {limits.low:g} to {limits.high:g}")
        if name == "loop_times" and value != knobs.loop_times:
            raise ValueError("loop_times is the model's shape: start it with --loop-times or LOOP_TIMES")
        if name in SWITCHES and value not in (0.0, 1.0):
            raise ValueError(f"{name}={value:g}: a switch is 0 or 1")
    return knobs._replace(**changes)


def restored(values: Mapping[str, float]) -> KnobValues:
    """The knobs of a checkpoint as they stood, past their bounds too; raises ValueError on another trainer's names.

    Somebody may have set them by hand: a run that could not go on from its own checkpoints would be the worse for it.
    """
    if unknown := values.keys() - LIMITS.keys():
        raise ValueError(f"there is no knob {min(unknown)!r}; there are {', '.join(LIMITS)}")
    return KnobValues()._replace(**values)


def _offer(holder: HoldsKnobs, name: str, limits: Limits) -> Knob:
    value = float(getattr(holder.knobs, name))
    low, high = (limits.low, limits.high) if limits.live else (value, value)
    doc = limits.doc if limits.live else f"{limits.doc}; only at a restart"
    return Knob(
        name, _getter(holder, name), _setter(holder, name), low, high,
        limits.max_factor, limits.max_step, doc=doc,
    )  # fmt: skip


def _getter(holder: HoldsKnobs, name: str) -> Callable[[], float]:
    return lambda: float(getattr(holder.knobs, name))


def _setter(holder: HoldsKnobs, name: str) -> Callable[[float], None]:
    def set_knob(value: float) -> None:
        holder.knobs = turned(holder.knobs, {name: value})

    return set_knob
