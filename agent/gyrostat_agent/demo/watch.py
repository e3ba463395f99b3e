"""The watch: children followed to their end, by their records and journals, and what each run came to."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gyrostat_agent.demo.child import Child
from gyrostat_agent.demo.course import Course, Point
from gyrostat_agent.demo.errors import ChildFailed
from gyrostat_agent.demo.scenarios import Layout
from gyrostat_agent.demo.sources import Source
from gyrostat_agent.demo.story import Line
from gyrostat_agent.demo.trio import Result

LOOK_SECONDS = 0.2
_SILENT_SECONDS = 150.0  # a run that waits for a person, or hangs, must not hold the demonstration for ever


class Started(NamedTuple):
    """One of the three runs under way."""

    name: str
    layout: Layout
    child: Child
    source: Source
    course: Course


Show = Callable[[Started, Sequence[Point | Line]], None]


def follow(started: Sequence[Started], show: Show) -> dict[str, Result]:
    """Watch until all have ended, telling ``show`` what is new; raises ChildFailed. None of them outlives it."""
    heard = time.monotonic()
    try:
        while True:
            running = [one for one in started if one.child.status is None]  # asked first: the rest has the last words
            news = [(one, one.course.take(one.source.news())) for one in started]
            for one, new in news:
                show(one, new)
            heard = time.monotonic() if any(new for _, new in news) else heard
            if not running or time.monotonic() - heard > _SILENT_SECONDS:
                return {one.name: _result(one) for one in started}
            time.sleep(LOOK_SECONDS)
    finally:
        for one in started:
            one.child.end()


def _result(one: Started) -> Result:
    """What a run came to; raises ChildFailed where it left no summary and nobody can say why it ended."""
    silent = one.child.status is None
    one.child.end()
    summary = _summary(one.layout.summary)
    if silent:
        return Result(one.course, f"silent for {_SILENT_SECONDS:.0f} s, ended by the demonstration", one.child.seconds)
    if summary is None:
        raise ChildFailed(_why(one))
    died = summary.get("died")
    return Result(one.course, died if isinstance(died, str) else "", one.child.seconds)


def _why(one: Started) -> str:
    status = one.child.status
    said = one.child.last_words() or "  (it said nothing)"
    return (
        f"the {one.name} run failed with exit status {status}; its last words:\n{said}\nthe whole log: {one.child.log}"
    )


def _summary(path: Path) -> Mapping[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
