"""Rates: counters that only grow, as what they grew by a second."""


class Rates:
    """Remembers each counter's last value and when that was."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, float]] = {}

    def of(self, name: str, count: float, now: float) -> float | None:
        """Growth a second since the last call; None at first, and where counter or clock went back."""
        before, self._last[name] = self._last.get(name), (count, now)
        if before is None or count < before[0] or now <= before[1]:
            return None
        return (count - before[0]) / (now - before[1])
