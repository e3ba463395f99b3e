"""Curves: series as they are drawn, kept to a bounded number of points whatever the length of the log."""

from collections.abc import Mapping

_POINTS = 1500  # kept at most twice as many before every other one is dropped
_SERIES = 24


class Curves:
    """Takes each step's values; ``drawn`` gives them thinned."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[list[int], list[float]]] = {}
        self._each: dict[str, int] = {}
        self._seen: dict[str, int] = {}

    def take(self, step: int, values: Mapping[str, float]) -> None:
        """Remember a step, or not."""
        for name, value in values.items():
            if name not in self._kept:
                if len(self._kept) >= _SERIES:
                    continue
                self._kept[name], self._each[name], self._seen[name] = ([], []), 1, 0
            self._seen[name] += 1
            if self._seen[name] % self._each[name] and value - value == 0:  # what is not finite is never left out
                continue
            steps, kept = self._kept[name]
            steps.append(step)
            kept.append(value)
            if len(steps) > 2 * _POINTS:
                self._kept[name] = (steps[::2], kept[::2])
                self._each[name] *= 2

    def drawn(self) -> dict[str, tuple[list[int], list[float]]]:
        """Steps and values of each."""
        return dict(self._kept)
