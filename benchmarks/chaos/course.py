"""Course: what a trainer printed of its steps, read as a person would read it: telemetry may be damaged."""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_LINE = re.compile(r"^step +(\d+)  reward (\S+)  entropy (\S+)  loss (\S+)  grad (\S+)  (\S+) s(  skipped)?$")
_LAST, _SMOOTH = 10, 5


class Told(NamedTuple):
    """A step as it was printed."""

    step: int
    reward: float
    entropy: float
    skipped: bool


class Log:
    """A growing log, followed from its beginning."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 0

    def news(self) -> list[Told]:
        """Steps printed since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        return told(whole.decode(errors="replace").splitlines())


def told(lines: Iterable[str]) -> list[Told]:
    """The steps among lines."""
    found = (_LINE.match(line) for line in lines)
    return [Told(int(m[1]), float(m[2]), float(m[3]), bool(m[7])) for m in found if m]


def standing(steps: Iterable[Told]) -> list[Told]:
    """Those that were not undone: of steps that came again the later one."""
    kept: list[Told] = []
    for one in steps:
        while kept and kept[-1].step >= one.step:
            kept.pop()
        kept.append(one)
    return kept


def reward(steps: Iterable[Told], last: int = _LAST) -> float | None:
    """Mean reward of the last steps that stand; None of nothing."""
    found = [one.reward for one in standing(steps)][-last:]
    return sum(found) / len(found) if found else None


def best(steps: Iterable[Told], last: int) -> float | None:
    """The best mean of five steps in a row among the last that stand; None of fewer."""
    found = [one.reward for one in standing(steps)][-last:]
    means = [sum(found[at : at + _SMOOTH]) / _SMOOTH for at in range(len(found) - _SMOOTH + 1)]
    return max((mean for mean in means if math.isfinite(mean)), default=None)
