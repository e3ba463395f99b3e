"""The demonstration from beginning to end: the three runs of each scenario and seed, the comparison, the report.

The clean and the untreated run go side by side, one thread each, for they are only looked at afterwards; the
treated one has the machine, its sidecar and the terminal to itself.
"""

import contextlib
import importlib.util
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from rich.console import Console

from gyrostat_agent.demo import comparison, report
from gyrostat_agent.demo.child import Child
from gyrostat_agent.demo.course import Course, Point
from gyrostat_agent.demo.errors import DemoError
from gyrostat_agent.demo.mending import mending
from gyrostat_agent.demo.progress import Progress
from gyrostat_agent.demo.scenarios import (
    BASELINES,
    CLEAN,
    FEWEST_STEPS,
    NOTHING,
    STEPS,
    TREATED,
    Layout,
    Scenario,
    chosen,
    command,
    fault_step,
    likeness,
)  # fmt: skip
from gyrostat_agent.demo.sources import JournalSource, RecordSource
from gyrostat_agent.demo.stage import folder_of, prepare
from gyrostat_agent.demo.story import Line
from gyrostat_agent.demo.terminal import is_live, open_console, width_of, wrapped
from gyrostat_agent.demo.timeline import Timeline
from gyrostat_agent.demo.trio import Result, Trio
from gyrostat_agent.demo.watch import Started, follow

NEEDED = ("torch", "numpy", "safetensors", "xxhash")
MENDED, NOT_MENDED, INTERRUPTED = 0, 1, 130


class Part(NamedTuple):
    """One scenario with one seed, and its folder."""

    scenario: Scenario
    seed: int
    folder: Path


def run_demo(
    scenario: str = "nan_data",
    seeds: int = 1,
    json_path: str | None = None,
    out: str | None = None,
    steps: int = STEPS,
    *,
    seed_from: int = 0,
    no_color: bool = False,
) -> int:
    """Show scenarios (names parted by commas, or ``all``) with ``seeds`` seeds from ``seed_from``; the exit status.

    0: mended in every seed; 1: not, or a process failed; 2: it cannot be shown, and why; 130: interrupted.
    ``json_path`` gets what every run came to; files go to ``out``, or under ``runs/``.
    """
    console = open_console(no_color)
    folders: list[Path] = []
    try:
        with _interruptible():
            parts = _parts(scenario, range(seed_from, seed_from + seeds), out, steps)
            shown: list[Trio] = []
            for part in parts:
                folders.append(part.folder)
                shown.append(_show(console, part, max(steps, part.scenario.least_steps), shown))
                _write_json(json_path, shown)
    except DemoError as error:
        print(f"gyrostat demo: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        where = folders[-1] if folders else "nowhere"
        console.print(f"interrupted; every process was ended, the files are in {where}", soft_wrap=True)
        return INTERRUPTED
    return MENDED if all(mending(one).mended for one in shown) else NOT_MENDED


def _parts(scenario: str, seeds: range, out: str | None, steps: int) -> list[Part]:
    """What is to be shown; raises DemoError where it cannot be."""
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise DemoError(f"the reference trainer needs {', '.join(missing)}: pip install 'gyrostat[reference]'")
    if steps < FEWEST_STEPS:
        raise DemoError(f"--steps {steps}: give at least {FEWEST_STEPS}, a mend must have time to prove itself")
    if not seeds:
        raise DemoError(f"--seeds {len(seeds)}: give at least 1")
    wanted = [(one, seed) for one in chosen(scenario) for seed in seeds]
    return [Part(one, seed, folder_of(one, seed, out, len(wanted) == 1)) for one, seed in wanted]


def _known(part: Part, steps: int, before: Sequence[Trio]) -> dict[str, Result]:
    """The clean and the untreated run of a seed, where a scenario before has had them: they are the same command."""
    had = {likeness(c.scenario, name, c.steps, c.seed): c.results[name] for c in before for name in BASELINES}
    wanted = {name: likeness(part.scenario, name, steps, part.seed) for name in BASELINES}
    return {name: had[key] for name, key in wanted.items() if key in had}


def _show(console: Console, part: Part, steps: int, before: Sequence[Trio]) -> Trio:
    """One scenario and seed on the terminal; the report is written."""
    layouts, known = prepare(part.folder), _known(part, steps, before)
    _introduce(console, part, steps)
    if known:
        console.print(f"{' and '.join(known)}: as this seed had it in a scenario before.")
    baselines = {**known, **_run_baselines(console, part, layouts, steps, [n for n in BASELINES if n not in known])}
    results = {name: baselines.get(name, baselines[CLEAN]) for name in BASELINES}
    results |= _run_treated(console, part, layouts, steps)
    shown = Trio(part.scenario, part.seed, steps, fault_step(part.scenario, steps), results)
    console.print()
    comparison.show(console, shown)
    console.print(f"Report: {report.write(shown, part.folder)}\n", soft_wrap=True)
    return shown


def _introduce(console: Console, part: Part, steps: int) -> None:
    scenario, width = part.scenario, width_of(console)
    title = f"gyrostat demo: {scenario.name}, seed {part.seed}"
    console.print(title, style="bold" if is_live(console) else "")
    console.print(wrapped(scenario.story, "", width))
    console.print(wrapped(f"{_told(scenario, steps)}; {steps} steps a run. Mode act, approvals off.", "", width))
    console.print()


def _told(scenario: Scenario, steps: int) -> str:
    if scenario.fault == NOTHING:
        return "There is no fault"
    where = "is there from the start" if scenario.from_start else f"strikes at step {fault_step(scenario, steps)}"
    return f"The fault {where}"


def _run_baselines(
    console: Console, part: Part, layouts: dict[str, Layout], steps: int, names: list[str]
) -> dict[str, Result]:
    """Play those of the two that nobody has played yet; without a fault they are one."""
    if part.scenario.fault == NOTHING:
        names = [name for name in names if name == CLEAN]
    if not names:
        return {}
    console.print(f"First without a sidecar: {' and '.join(names)}.")
    started: list[Started] = []
    with _ended(started), Progress(console, steps) as progress:
        for name in names:
            started.append(_start(part, name, layouts[name], steps))
        return follow(started, lambda one, new: progress.show(one.name, one.course, one.child.status is None))


def _run_treated(console: Console, part: Part, layouts: dict[str, Layout], steps: int) -> dict[str, Result]:
    console.print("Now the same fault with the sidecar beside the trainer.\n")
    started: list[Started] = []
    with _ended(started), Timeline(console, steps) as timeline:
        started.append(_start(part, TREATED, layouts[TREATED], steps))

        def show(one: Started, new: Sequence[Point | Line]) -> None:
            timeline.show(one.course, new)

        return follow(started, show)


def _start(part: Part, name: str, layout: Layout, steps: int) -> Started:
    source = JournalSource(layout.journal) if name == TREATED else RecordSource(layout.run_dir)
    child = Child(command(part.scenario, name, layout, steps, part.seed), layout.folder)
    return Started(name, layout, child, source, Course())


@contextlib.contextmanager
def _ended(started: list[Started]) -> Iterator[None]:
    """Whatever happens, nothing that was started outlives this."""
    try:
        yield
    finally:
        for one in started:
            one.child.end()


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and a closed terminal end the demonstration as Ctrl-C does: with its children."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _write_json(path: str | None, shown: Sequence[Trio]) -> None:
    """Written anew after each run, so that what an interruption leaves is whole."""
    if path is None:
        return
    said: dict[str, Any] = {"runs": [comparison.as_json(one) for one in shown]}
    try:
        Path(path).write_text(json.dumps(said, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise DemoError(f"--json {path}: {error.strerror}; give a file in a folder that can be written") from None
