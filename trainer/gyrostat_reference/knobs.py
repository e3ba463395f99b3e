"""Knobs: the numbers of a training step that may be turned from outside, with their bounds.

The names, bounds and largest changes stand in one table, which is what Hello shows and what a resume is
checked against.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from gyrostat import Knob


class KnobValues(NamedTuple):
    """How the knobs stand. By default a run learns; the clipping range is DAPO's (arXiv 2503.14476)."""

    lr_scale: float = 1.0
    max_grad_norm: float = 1.0
    adv_eps: float = 1e-4
    router_aux_coef: float = 1e-2
    router_z_coef: float = 1e-3
    eps_lo: float = 0.2
    eps_hi: float = 0.28
    kl_coef: float = 0.0


class Limits(NamedTuple):
    """Bounds of a knob, the largest change of one directive, and what the knob does."""

    low: float
    high: float
    max_factor: float | None
    max_step: float | None
    doc: str


LIMITS: Mapping[str, Limits] = {
    "lr_scale": Limits(0.01, 1.0, 2.0, None, "multiplies the learning rate"),
    "max_grad_norm": Limits(0.1, 2.0, 2.0, None, "the gradient is scaled down to this norm"),
    "adv_eps": Limits(1e-6, 1e-2, None, None, "added to a group's sigma before dividing by it"),
    "router_aux_coef": Limits(0.0, 0.1, 3.0, None, "weight of the router's balance loss"),
    "router_z_coef": Limits(0.0, 1e-2, 3.0, None, "weight of the router's z loss"),
    "eps_lo": Limits(0.1, 0.3, None, 0.02, "the ratio is clipped below at 1 - eps_lo"),
    "eps_hi": Limits(0.2, 0.4, None, 0.02, "the ratio is clipped above at 1 + eps_hi"),
    "kl_coef": Limits(0.0, 0.05, 2.0, None, "weight of the clamped KL towards the base policy"),
}


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
    return knobs._replace(**changes)


def _offer(holder: HoldsKnobs, name: str, limits: Limits) -> Knob:
    return Knob(
        name, _getter(holder, name), _setter(holder, name), limits.low, limits.high,
        limits.max_factor, limits.max_step, doc=limits.doc,
    )  # fmt: skip


def _getter(holder: HoldsKnobs, name: str) -> Callable[[], float]:
    return lambda: float(getattr(holder.knobs, name))


def _setter(holder: HoldsKnobs, name: str) -> Callable[[float], None]:
    def set_knob(value: float) -> None:
        holder.knobs = turned(holder.knobs, {name: value})

    return set_knob
