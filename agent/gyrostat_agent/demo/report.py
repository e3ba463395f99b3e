"""The report: one HTML file that opens offline and shows the three runs, the story and the comparison.

Everything that comes out of a run is escaped; the page loads nothing and runs nothing, and its own policy says so.
"""

import platform
import time
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import gyrostat
from gyrostat_agent.demo.charts import CHARTS, Chart, draw
from gyrostat_agent.demo.comparison import rows, verdict
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.mending import mending
from gyrostat_agent.demo.story import Line
from gyrostat_agent.demo.trio import Trio

NAME = "report.html"


def write(trio: Trio, folder: Path) -> Path:
    """Write the report into ``folder``; returns its path."""
    path = folder / NAME
    path.write_text(page(trio, str(folder)), encoding="utf-8")
    return path


def page(trio: Trio, folder: str) -> str:
    """The report's HTML."""
    template = files(__package__).joinpath(NAME).read_text(encoding="utf-8")
    scenario = trio.scenario
    return Template(template).substitute(
        title=escape(f"Gyrostat demo: {scenario.name}, seed {trio.seed}"),
        facts=escape(_facts(trio)),
        open="" if mending(trio).mended else "open",
        verdict=escape(verdict(trio)),
        story=escape(f"{scenario.title[0].upper()}{scenario.title[1:]}. {scenario.story}"),
        comparison=_table(["", *trio.results], [[escape(cell) for cell in row] for row in rows(trio)]),
        charts="\n".join(_chart(chart, trio) for chart in CHARTS),
        lines=_story(trio.treated.course),
        folder=escape(folder),
    )


def _facts(trio: Trio) -> str:
    made = time.strftime("%Y-%m-%d %H:%M")
    return (
        f"{trio.steps} steps a run, the fault at step {trio.fault_step}."
        f" Gyrostat {gyrostat.__version__}, Python {platform.python_version()}, {made}."
    )


def _chart(chart: Chart, trio: Trio) -> str:
    return f"<h3>{escape(chart.title)} <small>{escape(chart.unit)}</small></h3>{draw(chart, trio)}"


def _story(course: Course) -> str:
    return _table(["second", "step", "", ""], [_line(course, line) for line in course.lines])


def _line(course: Course, line: Line) -> list[str]:
    step = str(line.step) if line.step >= 0 else ""
    mark = f'<span class="mark-word {line.mark}">{line.mark}</span>'
    return [f"{max(0.0, line.at - course.began):.1f}", step, mark, escape(line.text)]


def _table(heading: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already; the first of a row names it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heading)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in cells
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
