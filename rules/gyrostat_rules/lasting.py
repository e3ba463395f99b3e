"""Lasting: how long something must hold, as a pack says it: ``10 steps``, ``3 of 5 steps`` or ``30s``."""

import re
from typing import NamedTuple

MOST_LOOKS = 200
_STEPS = re.compile(r"(\d{1,9}) steps?")
_SOME = re.compile(r"(\d{1,9}) of (\d{1,9}) steps")
_TIME = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?")
_SECONDS = (86400.0, 3600.0, 60.0, 1.0, 0.001)


class Lasting(NamedTuple):
    """So many ``steps`` without a break, or of the last ``of`` looks at a process; or so many ``seconds``."""

    steps: int = 0
    of: int = 0
    seconds: float = 0.0

    def words(self) -> str:
        """As a pack says it; '' where nothing has to last."""
        if self.of:
            return f"{self.steps} of {self.of} steps"
        return f"{self.seconds:g}s" if self.seconds else f"{self.steps} steps" if self.steps else ""


def lasting(text: str) -> Lasting | None:
    """What the text says; None where it says nothing of the kind."""
    if found := _STEPS.fullmatch(text):
        return Lasting(int(found[1]))
    if found := _SOME.fullmatch(text):
        steps, of = int(found[1]), int(found[2])
        return Lasting(steps, of) if 1 <= steps <= of <= MOST_LOOKS else None
    found = _TIME.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    return Lasting(seconds=sum(int(part or 0) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True)))
