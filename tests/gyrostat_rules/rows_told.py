"""Rows as one process told them, in a State that detectors read: the windows alone, without an engine around them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gyrostat.wire import ExpertLoad, KnobState, Record
from gyrostat_rules import experts
from gyrostat_rules.detectors import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import RulePack
from gyrostat_rules.state import Process, State, Window

RUNS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "recorded_runs.json").read_text("utf-8"))
CLEAN = [name for name in RUNS if name.startswith("clean")]


class Rows:
    """A process that tells row after row; ``state`` and ``moment`` are what a detector is given after the newest."""

    def __init__(self, *, rank: int = 0, **knobs: float) -> None:
        self.state = State()
        self.process = Process("trainer", rank)
        self.process.knobs = {n: KnobState(n, v, 0.0, 10.0) for n, v in knobs.items()}
        self.key, self.earlier = f"trainer/{rank}", list[ExpertLoad | None]()
        self.state.processes[self.key] = self.process
        self.moment = Moment(0.0, 0, RulePack("none", (), ()))

    def tell(self, load: ExpertLoad | None = None, **values: float) -> "Rows":
        """The next step's record."""
        step = self.process.last_step = self.process.last_step + 1 if self.process.last_step > 0 else 1
        windows = self.state.windows.setdefault(self.key, {})
        for name, value in {**values, **experts.series_of(load, self.earlier)}.items():
            windows.setdefault(name, Window()).add(step, value)
        self.earlier = [*self.earlier[-4:], experts.thin(load)]
        record = Record("trainer", self.process.rank, "life-a", 0, step, step, float(step), values, load)
        self.moment = Moment(float(step), step, RulePack("none", (), ()), (record,), step)
        self.state.step = step
        return self

    def column(self, name: str, values: Iterable[float], **more: float) -> "Rows":
        """Rows of one series."""
        for value in values:
            self.tell(**{name: value}, **more)
        return self

    def loads(self, counts: Sequence[int], times: int, **values: float) -> "Rows":
        """Rows of one layer and loop with the same counts."""
        for _ in range(times):
            self.tell(ExpertLoad(1, 1, len(counts), tuple(counts)), **values)
        return self

    def read(self, detector: Any, params: Any) -> list[Reading]:
        """What a detector finds after the newest row."""
        return list(detector(params, self.state, self.moment))


def recorded(name: str, **knobs: float) -> Iterator[Rows]:
    """A recorded run of the reference trainer, row by row; the same Rows each time."""
    rows, columns = Rows(**knobs), RUNS[name]
    series: Mapping[str, list[float | None]] = {n: c for n, c in columns.items() if n != "counts"}
    counts = columns.get("counts", [])
    for place in range(len(columns["entropy"])):
        values = {n: v for n, c in series.items() if (v := c[place]) is not None}
        load = ExpertLoad(1, 1, len(counts[place]), tuple(counts[place])) if place < len(counts) else None
        yield rows.tell(load, **values)


def first_reading(name: str, detector: Any, params: Any, **knobs: float) -> tuple[int, Reading] | None:
    """The step at which a detector speaks first in a recorded run, and what it says."""
    for rows in recorded(name, **knobs):
        if found := rows.read(detector, params):
            return rows.process.last_step, found[0]
    return None


def alarms(names: Iterable[str], detector: Any, params: Any, **knobs: float) -> tuple[int, int]:
    """How often a detector begins to speak in recorded runs, and how many steps they have."""
    began = steps = 0
    for name in names:
        spoke = False
        for rows in recorded(name, **knobs):
            speaks = bool(rows.read(detector, params))
            began, steps, spoke = began + (speaks and not spoke), steps + 1, speaks
    return began, steps
