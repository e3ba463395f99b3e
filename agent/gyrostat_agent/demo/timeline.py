"""The timeline: a run's steps, one line each, and between them the story of what was seen, done and proved.

On a terminal a footer below the newest line shows the run as a whole; elsewhere the lines are all there is.
"""

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from gyrostat_agent.demo import strokes
from gyrostat_agent.demo.course import Course, Point
from gyrostat_agent.demo.story import ACTION, ALERT, INCIDENT, OUTCOME, RUN, SIGNS, Line
from gyrostat_agent.demo.strokes import Strokes
from gyrostat_agent.demo.terminal import is_live, width_of, wrapped

HEADING = " step  reward            entropy        gradient        experts"
_STYLES = {ALERT: "yellow", INCIDENT: "bold red", ACTION: "bold cyan", OUTCOME: "bold green", RUN: "blue"}
_BAR, _SPARK, _LABEL = 10, 8, 15
_MOST_LOOPS = 8


class Timeline:
    """Shows a course of ``steps`` steps as it goes; use it as a ``with`` block."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console, self._steps = console, steps
        self._strokes = strokes.for_encoding(console.encoding)
        self._began = time.monotonic()
        self._live = Live(console=console, auto_refresh=False) if is_live(console) else None

    def __enter__(self) -> "Timeline":
        self._console.print(Text(HEADING, style="bold"))
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            self._live.update(Text(""), refresh=True)
            self._live.stop()

    def show(self, course: Course, news: Sequence[Point | Line]) -> None:
        """Print what is new, and draw the footer anew."""
        for one in news:
            if isinstance(one, Line):
                self._console.print(sentence(one, width_of(self._console)))
            else:
                self._console.print(row(self._strokes, course, one))
        if self._live:
            self._live.update(self._footer(course), refresh=True)

    def _footer(self, course: Course) -> Group:
        width = max(20, width_of(self._console) - _LABEL - 10)
        shown = course.points
        series = {
            "reward": ([p.reward for p in shown], 3),
            "entropy": ([p.entropy for p in shown], 3),
            "gradient": ([p.gradient for p in shown], 3),
        }
        lines = [Text(self._strokes.rule * width_of(self._console), style="dim"), self._progress(course)]
        for name, (values, digits) in series.items():
            drawn = [strokes.logarithm(v) for v in values] if name == "gradient" else values
            line = strokes.sparkline(self._strokes, drawn, width, strokes.span_of(drawn)).lstrip()
            last = strokes.number(values[-1], 7, digits) if values else ""
            lines.append(Text(f" {name:<{_LABEL - 2}}{line.ljust(width)} {last}", style="dim"))
        return Group(*lines)

    def _progress(self, course: Course) -> Text:
        bar = strokes.bar(self._strokes, course.step / self._steps, 30)
        checkpoint = f", checkpoint {course.checkpoint} verified" if course.checkpoint >= 0 else ""
        seconds = time.monotonic() - self._began
        if not course.points:
            return Text(f" the trainer is starting {seconds:3.0f} s")
        return Text(f" step {course.step:>3} of {self._steps} {bar} {seconds:3.0f} s{checkpoint}", no_wrap=True)


def row(drawn: Strokes, course: Course, point: Point) -> Text:
    """One step: reward on a bar; entropy and gradient norm (log) with what led there; balance of each loop."""
    before = [p for p in course.points if p.step <= point.step][-_SPARK:]
    entropies, gradients = [p.entropy for p in before], [strokes.logarithm(p.gradient) for p in before]
    text = (
        f"{point.step:>5}  {strokes.bar(drawn, point.reward, _BAR)} {strokes.number(point.reward, 5, 2)}"
        f"  {_spark(drawn, entropies, [p.entropy for p in course.points])} {strokes.number(point.entropy, 4, 2)}"
        f"  {_spark(drawn, gradients, [strokes.logarithm(p.gradient) for p in course.points])}"
        f" {strokes.number(point.gradient, 5, 2)}  {_loops(drawn, point)}"
    )
    if not point.applied:
        return Text(f"{text}  skipped", style="yellow")
    return Text(text, style="" if point.finite else "bold red")


def sentence(line: Line, width: int) -> Text:
    """One line of the story, folded to ``width`` under its mark."""
    first = f"     {SIGNS[line.mark]} {line.mark:<8} "
    return wrapped(line.text, _STYLES[line.mark], width, first, " " * len(first))


def _spark(drawn: Strokes, values: Sequence[float], scale: Sequence[float]) -> str:
    return strokes.sparkline(drawn, values, _SPARK, strokes.span_of(scale))


def _loops(drawn: Strokes, point: Point) -> str:
    """A character for the balance of each layer and loop, and the least balanced one in numbers."""
    if not point.balance:
        return ""
    bars = strokes.sparkline(drawn, point.balance[:_MOST_LOOPS], len(point.balance[:_MOST_LOOPS]), (0.0, 1.0))
    return f"{bars} {strokes.number(min(point.balance), 4, 2)}"
