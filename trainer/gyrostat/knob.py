"""A knob: a number that may be set from outside, and the checks before it is.

The sidecar has checked the same things; they are checked here again, because what is at stake is the run.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from gyrostat.wire.messages import KnobChange, KnobState


class Knob(NamedTuple):
    """A number that may be set from outside: how to read and set it, its bounds, its largest change.

    ``max_factor`` bounds new/old (and old/new), ``max_step`` bounds |new - old|; None is no such bound.
    """

    name: str
    get: Callable[[], float]
    set: Callable[[float], None]
    low: float
    high: float
    max_factor: float | None = None
    max_step: float | None = None
    unit: str = ""
    doc: str = ""


def check(knob: Knob) -> None:
    """Raise ValueError where the knob is declared so that no directive could ever be judged by it."""
    if not (math.isfinite(knob.low) and math.isfinite(knob.high) and knob.low <= knob.high):
        raise ValueError(f"Knob {knob.name!r}: bounds {knob.low} to {knob.high} must be finite and in order")
    if knob.max_factor is not None and not 1 <= knob.max_factor < math.inf:
        raise ValueError(f"Knob {knob.name!r}: max_factor={knob.max_factor} must be 1 or more, or None")
    if knob.max_step is not None and not 0 <= knob.max_step < math.inf:
        raise ValueError(f"Knob {knob.name!r}: max_step={knob.max_step} must be 0 or more, or None")


def state(knob: Knob) -> KnobState | None:
    """The knob as it reads now; None where the trainer's getter fails."""
    try:
        return KnobState(
            knob.name, float(knob.get()), knob.low, knob.high, knob.max_factor, knob.max_step, knob.unit, knob.doc
        )
    except Exception:  # the trainer's own code
        return None


def unfit(knob: Knob, change: KnobChange, before: float | None) -> str:
    """Why this change must not be made, or ''. ``before``: the value that the directive undone had found."""
    try:
        now = float(knob.get())
    except Exception as error:  # the trainer's own code
        return f"{knob.name} cannot be read: {error}"
    if not math.isclose(now, change.expect, rel_tol=1e-6, abs_tol=1e-12):
        return f"{knob.name} reads {now:g}, not {change.expect:g}: somebody else has turned it"
    if not (math.isfinite(change.value) and knob.low <= change.value <= knob.high):
        return f"{knob.name}={change.value:g} is outside its bounds {knob.low:g} to {knob.high:g}"
    if before == change.value:
        return ""  # going back to where a directive found it is allowed in one stride
    if knob.max_step is not None and abs(change.value - now) > knob.max_step * (1 + 1e-9):
        return f"{knob.name} {now:g} to {change.value:g} is more than its largest step, {knob.max_step:g}"
    if knob.max_factor is not None and not _within(now, change.value, knob.max_factor):
        return f"{knob.name} {now:g} to {change.value:g} is more than its largest factor, {knob.max_factor:g}"
    return ""


def _within(old: float, new: float, factor: float) -> bool:
    """True where the change keeps its sign and its ratio within ``factor``; from 0 any bounded value is."""
    if old == new or old == 0.0:
        return True
    return old * new > 0 and max(old / new, new / old) <= factor * (1 + 1e-9)
