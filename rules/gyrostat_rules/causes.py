"""Kinds of incident, gravest cause first, and the families within which one cause is one incident."""

# This order leads. A knob that nobody told to turn, found at the step of the trouble, explains all the rest.
DIVERGENCE = "divergence"  # a death without a NaN: what it shows in is the weights, so that bad updates were applied
NUMERIC = ("knobs", "nonfinite", DIVERGENCE, "mismatch", "experts", "entropy")
CRASH = "crash"
APART = (CRASH, "stall", "checkpoint", "hardware")  # never muted by numerics, never folded into them
KINDS = NUMERIC + APART
REQUEST = "request"  # a person asked for it: no rule opens one, and it waits for no other
_ORDER = (REQUEST, *KINDS)


def family(kind: str) -> str:
    """Alerts fold into one incident within a family; each kind that stands apart is its own."""
    return "numeric" if kind in NUMERIC else kind


def graver(kind: str, than: str) -> bool:
    """True where ``kind`` leads ``than`` in one incident."""
    return _ORDER.index(kind) < _ORDER.index(than)
