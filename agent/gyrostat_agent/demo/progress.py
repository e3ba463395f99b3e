"""Progress of the runs that go on in the background: a line each that is drawn over, or now and then a new one."""

from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from gyrostat_agent.demo import strokes
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.terminal import is_live

_BAR, _EVERY = 30, 20


class Progress:
    """Shows how far each run has come; use it as a ``with`` block."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console, self._steps = console, steps
        self._strokes = strokes.for_encoding(console.encoding)
        self._lines: dict[str, Text] = {}
        self._said: dict[str, tuple[int, bool]] = {}
        self._live = Live(console=console, auto_refresh=False) if is_live(console) else None

    def __enter__(self) -> "Progress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def show(self, name: str, course: Course, running: bool) -> None:
        """Tell how far the run ``name`` is."""
        line = self._line(name, course, running)
        if self._live:
            self._lines[name] = line
            self._live.update(Group(*self._lines.values()), refresh=True)
        elif self._is_due(name, course.step, running):
            self._console.print(line)

    def _is_due(self, name: str, step: int, running: bool) -> bool:
        now = (step // _EVERY, running)
        due = self._said.get(name, (0, True)) != now
        self._said[name] = now
        return due

    def _line(self, name: str, course: Course, running: bool) -> Text:
        bar = strokes.bar(self._strokes, course.step / self._steps, _BAR)
        reward = f"  reward {strokes.number(course.reward, 5, 3)}" if course.points else ""
        ended = "" if running else "  done" if course.step >= self._steps else "  died"
        return Text(f"  {name:<10}{bar} {course.step:>3} of {self._steps}{reward}{ended}")
