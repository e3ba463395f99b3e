"""Whether the trainer's own control of entropy is at work and has room left: asked before the sidecar steps in."""

from typing import NamedTuple

from gyrostat_rules.profile import Told, newest
from gyrostat_rules.state import State

ON, OFF, SATURATED, UNKNOWN = "on", "off", "saturated", "unknown"
_SWITCHES = ("token_entropy_flow_control", "alpha_max")  # knobs that are 0 where that part of the control is off
_BONUS, _LARGEST = "entropy_bonus", "alpha_max"
_ROWS = 3  # in a row at its limit before the controller counts as saturated: it may touch it in passing


class Control(NamedTuple):
    """on, off, saturated or unknown (the trainer tells nothing of it), and why in words."""

    word: str
    why: str

    @property
    def spent(self) -> bool:
        """True where it is known that the trainer itself will not hold entropy up."""
        return self.word in (OFF, SATURATED)


def control(state: State, told: Told) -> Control:
    """Judge the control of one process by its knobs (rank 0's where it shows none) and its ``entropy_bonus``."""
    leader = state.trainer()
    knobs = told.process.knobs or (leader.knobs if leader else {})
    known = [name for name in _SWITCHES if name in knobs]
    off = [name for name in known if knobs[name].value == 0]
    if not known:
        return Control(UNKNOWN, "the trainer says nothing of a control of its own")
    if off == known:
        return Control(OFF, f"the trainer's own control is off ({' and '.join(off)} 0)")
    bonus = newest(told.windows.get(_BONUS), _ROWS)
    largest = knobs[_LARGEST].value if _LARGEST in knobs else 0.0
    if largest > 0 and len(bonus) == _ROWS and min(bonus) >= 0.99 * largest:
        return Control(SATURATED, f"the trainer's own control is at its limit (entropy_bonus {bonus[-1]:.3g})")
    return Control(ON, "the trainer's own control is at work")
