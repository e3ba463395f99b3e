"""Theirs: what people have laid their hands on. Alerts that they silenced, knobs that they turned.

Plain values, kept in the state; ``silences`` and ``hands`` say what follows from them.
"""

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Silence:
    """The alerts that all of ``matchers`` (``name=value``) fit, or with none of them every alert: a maintenance window.

    It stands from ``begins`` until ``ends``, Unix seconds; ``begun``: that it does has been written down.
    """

    id: str
    matchers: tuple[str, ...]
    begins: float
    ends: float
    by: str
    reason: str
    begun: bool = False


@dataclass(slots=True, frozen=True)
class Hand:
    """A knob that was turned without a directive while an incident was open: to what, from what, and when."""

    knob: str
    value: float
    before: float
    step: int
    segment: int
