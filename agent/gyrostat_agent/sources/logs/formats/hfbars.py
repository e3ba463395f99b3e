"""HF's steps: a row of the Trainer tells none, so that it is read off the progress bars around it.

A bar is redrawn as soon as a row is printed, and then is right; the one before may be up to a tenth of a second old.
Where a row follows a row, standard output was buffered and rows come in bursts: they are counted, by the usual stride.
"""

import re
from typing import NamedTuple

from gyrostat_agent.sources.logs.numerals import number

_BAR = re.compile(r"\s*\d+%\|[^|]*\|\s*(\d{1,12})/(\d{1,12}) \[([^\]]*)\]")
_RATE = re.compile(r"([\d.]{1,12})it/s")
_FAST = 5.0  # steps a second, above which the bar before a row may be an old one


class Bar(NamedTuple):
    """A bar without a title: ``done`` of ``total``. ``end``: where in the line it ends."""

    done: int
    total: int
    slow: bool
    end: int


def bar_of(text: str) -> Bar | None:
    """The bar that a line begins with; none where it bears a title, for then it counts something else."""
    found = _BAR.match(text) if "%|" in text else None
    if found is None:
        return None
    return Bar(int(found[1]), int(found[2]), _is_slow(found[3]), found.end())


def _is_slow(pace: str) -> bool:
    """True where steps are so far apart that each redraws the bar; ``pace`` is what stands in the bar's brackets."""
    rate = _RATE.search(pace)
    a_second = number(rate[1]) if rate else None
    return "s/it" in pace or (a_second is not None and a_second < _FAST)


class Steps:
    """Where the training stands. ``newest`` is the step of the newest row, -1 unknown."""

    def __init__(self) -> None:
        self.newest = -1
        self.seen = False  # whether there are bars at all
        self._bar: Bar | None = None  # newest since the newest row
        self._total = 0  # of the bar that counts steps; an evaluation has one of its own
        self._stride = 0
        self._bursts = False

    def see(self, bar: Bar) -> None:
        """A bar that belongs to no row."""
        self.seen = True
        if self._total in (0, bar.total):
            self._bar = bar

    def resume(self, step: int) -> None:
        """The run goes on from ``step``."""
        self.newest, self._bar = step, None

    def evaluated(self) -> int | None:
        """The step of an evaluation that comes now."""
        step = max(self.newest, self._bar.done if self._bar and self._total else -1)
        return step if step >= 0 else None

    def beside(self, bar: Bar) -> int:
        """The step of the row that stands behind a bar, in the same line."""
        return self._give(bar.done, bar)

    def before(self, bar: Bar | None) -> int | None:
        """The step of a row after which ``bar`` comes next; None: something else does."""
        early = self._bar if self._bar and self._bar.done != self.newest else None
        if self._bursts and self._stride and self.newest >= 0:
            return self._give(self.newest + self._stride, bar)
        if early and (early.slow or bar is None):
            return self._give(early.done, bar or early)
        if bar is not None:
            return self._give(bar.done, bar)
        return self._give(self.newest + self._stride, None) if self._stride and self.newest >= 0 else None

    def burst(self, rows: int, bar: Bar | None) -> list[int | None]:
        """The steps of several rows on end, after which ``bar`` comes next."""
        self._bursts = True
        last = bar or self._bar
        base = max(self.newest, 0)
        if last is None or last.done < base:
            return [self.before(None) for _ in range(rows)]
        stride = self._stride or max(1, (last.done - base) // rows)
        self._stride = stride
        return [self._give(base + stride * (i + 1), bar) for i in range(rows)]

    def _give(self, step: int, bar: Bar | None) -> int:
        if self.newest >= 0 and step > self.newest:
            self._stride = self._stride if self._bursts else step - self.newest
        self.newest, self._bar = step, None
        self._total = bar.total if bar else self._total
        return step
