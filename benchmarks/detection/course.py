"""Course: what one run tells, row by row; Fault: what is wrong with it and from which row on; Run: both."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import median
from typing import NamedTuple, TypeAlias

Column: TypeAlias = "list[float | None]"  # a value a row; None where the row does not tell it
Columns: TypeAlias = dict[str, Column]


class Course(NamedTuple):
    """``steps``: the step of each row, going back where the run was resumed. ``columns``: its series, a value a row."""

    trainer: str
    steps: Sequence[int]
    columns: Mapping[str, Sequence[float | None]]

    @property
    def rows(self) -> int:
        """How many rows it tells."""
        return len(self.steps)


class Fault(NamedTuple):
    """What is wrong: from row ``onset`` on, and plain to see from row ``plain`` on. ``signals`` are those that show it.

    ``note``: what was done to the healthy run, in words.
    """

    kind: str
    onset: int
    plain: int
    signals: tuple[str, ...]
    note: str


class Run(NamedTuple):
    """One generated run; ``fault`` None: it is healthy, and ``tempts`` is the kind a naive rule would raise."""

    family: str
    seed: int
    course: Course
    fault: Fault | None
    tempts: str = ""
    note: str = ""


Healthy: TypeAlias = Callable[[Random, int], Course]
Faulty: TypeAlias = "Callable[[Random, int], tuple[Course, Fault]]"


def numbered(trainer: str, columns: Mapping[str, Sequence[float | None]], every: int = 1) -> Course:
    """A course whose rows are told every so many steps; all columns must be of one length."""
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise ValueError(f"columns of lengths {sorted(lengths)}: give one value a row to each")
    return Course(trainer, [every * (row + 1) for row in range(lengths.pop())], columns)


def cut(course: Course, rows: int) -> Course:
    """The first ``rows`` of a course."""
    columns = {name: column[:rows] for name, column in course.columns.items()}
    return course._replace(steps=course.steps[:rows], columns=columns)


def resumed(course: Course, died: int, back: int) -> Course:
    """The course of a run that died behind row ``died`` and tells ``back`` rows before it once more.

    What is told the second time are the course's own rows from ``died`` on: as if the data had gone on.
    """
    step = course.steps[died] - course.steps[died - 1]
    steps = [*course.steps[:died], *(s - back * step for s in course.steps[died:])]
    return course._replace(steps=steps)


def told(column: Sequence[float | None]) -> list[float]:
    """The values of a column that are told."""
    return [value for value in column if value is not None]


def usual(column: Sequence[float | None], onset: int, rows: int = 32) -> float:
    """Median of the values told in the ``rows`` before ``onset``."""
    return median(told(column[max(0, onset - rows) : onset]))


def now_and_then(values: Sequence[float], every: int) -> Column:
    """A column told at every so many rows alone, as an evaluation is."""
    return [value if (row + 1) % every == 0 else None for row, value in enumerate(values)]


def times(column: Sequence[float | None], factors: Sequence[float]) -> Column:
    """A column multiplied row by row."""
    return [None if v is None else v * f for v, f in zip(column, factors, strict=True)]
