"""Charts: the three courses drawn as inline SVG, with marks where the fault, the firing and the actions were.

Nothing outside the page is needed; colours are the page's style sheet. A number that is not finite is a cross at
the top of its chart, never a gap that reads as healthy.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from gyrostat_agent.demo.course import Course, Point
from gyrostat_agent.demo.scenarios import CLEAN, TREATED, UNTREATED
from gyrostat_agent.demo.strokes import span_of
from gyrostat_agent.demo.trio import Trio

WIDTH, PLOT = 760, 130  # user units; above the plot a row for each name that would lie on another
_LEFT, _RIGHT, _BOTTOM = 52, 12, 26
_TICKS, _STEP_TICKS = 5, 6
_ROW, _LETTER = 12, 6.2  # height of a row of names, width of a letter
_TINY = 1e-9  # what is not positive stands at the bottom of a log scale
_ORDER = (TREATED, CLEAN, UNTREATED)  # the dashed ones on top: up to the fault they are the same line


class Chart(NamedTuple):
    """What is drawn: ``read`` gives a point's value; with ``log`` the axis is logarithmic."""

    title: str
    read: Callable[[Point], float]
    unit: str = ""
    log: bool = False


class Mark(NamedTuple):
    """A vertical line: ``kind`` is fault, died, fired, action or resolved."""

    step: int
    kind: str
    text: str


CHARTS = (
    Chart("Reward", lambda p: p.reward, "mean of the batch"),
    Chart("Entropy", lambda p: p.entropy, "nats a token"),
    Chart("Gradient norm", lambda p: p.gradient, "before clipping, log scale", log=True),
)


class _Frame(NamedTuple):
    """Where a value lies on the picture; the plot begins at ``top``."""

    steps: int
    top: float
    low: float
    high: float
    log: bool

    def x(self, step: float) -> float:
        return _x(step, self.steps)

    def y(self, value: float) -> float:
        scaled = math.log10(max(value, _TINY)) if self.log else value
        share = (scaled - self.low) / (self.high - self.low)
        return self.top + PLOT * (1.0 - min(1.0, max(0.0, share)))

    @property
    def foot(self) -> float:
        return self.top + PLOT


def draw(chart: Chart, trio: Trio) -> str:
    """One chart as an ``<svg>`` element."""
    courses = {name: trio.results[name].course for name in _ORDER}
    placed = _in_rows(marks(trio), trio.steps)
    top = 10.0 + _ROW * (1 + max(row for row, _ in placed))
    frame = _frame(chart, courses.values(), trio.steps, top)
    parts = [
        *_axes(frame),
        *_marks(frame, placed),
        *(part for name, course in courses.items() for part in _course(frame, chart, name, course)),
    ]
    label = escape(f"{chart.title} of the clean, the untreated and the treated run by step")
    box = f"0 0 {WIDTH} {frame.foot + _BOTTOM:.0f}"
    return f'<svg viewBox="{box}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def marks(trio: Trio) -> list[Mark]:
    """The fault, the untreated run's death, and of each incident of the treated one the firing, actions, resolution."""
    found = [Mark(trio.fault_step, "fault", "fault")]
    for case in trio.treated.course.cases.values():
        found.append(Mark(case.fired_step, "fired", "fired"))
        found += [Mark(d.applied_step, "action", d.remedy) for d in case.deeds.values() if d.applied_step >= 0]
        if case.resolved_step >= 0:
            found.append(Mark(case.resolved_step, "resolved", "resolved"))
    untreated = trio.results[UNTREATED]
    return [*found, Mark(untreated.course.step, "died", "untreated died")] if untreated.died else found


def _x(step: float, steps: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * step / steps


def _in_rows(found: Sequence[Mark], steps: int) -> list[tuple[int, Mark]]:
    """Each mark with the first row in which its name lies on no other's."""
    ends: list[float] = []
    placed = []
    for mark in sorted(found, key=lambda m: m.step):
        x = _x(mark.step, steps)
        row = next((i for i, end in enumerate(ends) if end < x), len(ends))
        ends[row : row + 1] = [x + _LETTER * len(_name(mark)) + 8]
        placed.append((row, mark))
    return placed


def _name(mark: Mark) -> str:
    return f"{mark.text} {mark.step}"


def _frame(chart: Chart, courses: Iterable[Course], steps: int, top: float) -> _Frame:
    values = [v for course in courses for p in _all_points(course) if math.isfinite(v := chart.read(p))]
    if chart.log:
        low, high = span_of([math.log10(max(v, _TINY)) for v in values])
        return _Frame(steps, top, math.floor(low), math.ceil(high + 0.01), True)
    low, high = span_of([0.0, *values])
    return _Frame(steps, top, low, max(1.0, high), False)


def _all_points(course: Course) -> list[Point]:
    return [*course.points, *(p for stretch in course.undone for p in stretch)]


def _axes(frame: _Frame) -> Iterator[str]:
    for at in _ticks(frame.low, frame.high, _TICKS, 1.0 if frame.log else 0.0):
        value = 10.0**at if frame.log else at
        y = frame.y(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.6g}</text>'
    for at in _ticks(0.0, frame.steps, _STEP_TICKS, 1.0):
        yield f'<text class="tick" x="{frame.x(at):.1f}" y="{frame.foot + 18:.0f}" text-anchor="middle">{at:g}</text>'


def _ticks(low: float, high: float, most: int, least_apart: float) -> list[float]:
    """Round numbers from ``low`` to ``high``: 1, 2 or 5 times a power of ten apart, about ``most`` of them."""
    rough = max(least_apart, (high - low) / most)
    power = 10.0 ** math.floor(math.log10(rough))
    apart = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    first, last = math.ceil(low / apart - 1e-9), math.floor(high / apart + 1e-9)
    return [i * apart for i in range(first, last + 1)]


def _marks(frame: _Frame, placed: Sequence[tuple[int, Mark]]) -> Iterator[str]:
    for row, mark in placed:
        x, y = frame.x(mark.step), _ROW * (1 + row)
        yield f'<line class="mark {mark.kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8}" y2="{frame.foot:.0f}"/>'
        yield f'<text class="name {mark.kind}" x="{x + 3:.1f}" y="{y}">{escape(_name(mark))}</text>'


def _course(frame: _Frame, chart: Chart, name: str, course: Course) -> Iterator[str]:
    for stretch in course.undone:
        yield from _line(frame, chart, f"{name} undone", stretch)
    yield from _line(frame, chart, name, course.points)
    for point in _all_points(course):
        if not math.isfinite(value := chart.read(point)):
            cross = f"M{frame.x(point.step) - 4:.1f} {frame.top - 4:.0f}l8 8m0 -8l-8 8"
            title = escape(f"{name}, step {point.step}: {value}")
            yield f'<path class="odd {name}" d="{cross}"><title>{title}</title></path>'


def _line(frame: _Frame, chart: Chart, style: str, points: Sequence[Point]) -> Iterator[str]:
    """A line through the finite values, broken where one is not."""
    stretch: list[str] = []
    for point in [*points, None]:
        if point is not None and math.isfinite(value := chart.read(point)):
            stretch.append(f"{frame.x(point.step):.1f},{frame.y(value):.1f}")
        elif stretch:
            yield f'<polyline class="run {style}" points="{" ".join(stretch)}"/>'
            stretch = []
