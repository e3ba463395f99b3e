"""Circumstances: what a person looks up first when an incident opens, told with it, as far as the trainer says it.

For numbers that broke: how far the batch's values ran and how many were finite (is the data normalised?), and whether
clipping is in force. For entropy: whether the trainer's own control is at work, and above
which floor. Knobs are read back, never assumed.
"""

import math

from gyrostat_rules.floorcontrol import UNKNOWN, control
from gyrostat_rules.profile import Told, named
from gyrostat_rules.state import State

_BATCH = ("reward", "advantage", "input")  # told as NAME_min, NAME_max and NAME_finite, a share
_CLIPPING = ("max_grad_norm", "eps_lo", "eps_hi", "kl_clamp", "ratio_cap")
_SWITCHES = {"use_gepo": "GEPO", "mask_degenerate": "masking of groups without spread"}


def circumstances(state: State, kind: str) -> str:
    """What is known of them for an incident of that kind, in words; '' where the trainer tells nothing of it."""
    trainer = state.trainer()  # one that has died of it too: of that the circumstances are asked most
    if trainer is None:
        return ""
    told = Told("trainer/0", trainer, state.windows.get("trainer/0", {}))
    if kind == "entropy":
        found, floor = control(state, told), _newest(told, "entropy_floor")
        kept = "" if floor is None else f"; its floor is {floor:.3g} nats"
        return "" if found.word == UNKNOWN else f"{found.why}{kept}"
    parts = [*_batch(told), _clipping(told)] if kind in ("nonfinite", "divergence", "knobs") else []
    return "; ".join(part for part in parts if part)


def _batch(told: Told) -> list[str]:
    return [said for name in _BATCH if (said := _span(told, name))]


def _span(told: Told, name: str) -> str:
    """How far one quantity of the newest batch ran."""
    least, most, share = (_newest(told, f"{name}_{what}") for what in ("min", "max", "finite"))
    if least is None or most is None:
        return ""
    odd = f", {math.floor(1000 * share) / 10:.1f}% finite" if share is not None and math.isfinite(share) else ""
    wild = not (math.isfinite(least) and math.isfinite(most)) or (share is not None and not share >= 1)
    return f"the batch's {name} ran from {least:g} to {most:g}{odd}" + (": check data normalisation" if wild else "")


def _newest(told: Told, name: str) -> float | None:
    window = named(told.windows, name)
    return window.values[-1] if window and window.steps and window.steps[-1] == told.process.last_step else None


def _clipping(told: Told) -> str:
    """As the newest record says, else as it was announced: a hand that turned a knob has announced nothing."""
    knobs = {name: state.value for name, state in told.process.knobs.items()}
    now = {name: value for name in knobs if (value := _newest(told, name)) is not None}
    found = {**knobs, **now}
    numbers = [f"{name} {found[name]:g}" for name in _CLIPPING if name in found]
    switches = [f"{what} {'on' if found[name] else 'off'}" for name, what in _SWITCHES.items() if name in found]
    return f"clipping, read back: {', '.join([*switches, *numbers])}" if numbers or switches else ""
