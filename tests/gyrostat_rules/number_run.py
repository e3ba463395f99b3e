"""A run that tells numbers, and what one detector reads from them step by step, through the real engine's windows."""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gyrostat.wire import Hello, KnobState, Record
from gyrostat_rules.detectors import Reading
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Batch
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import RulePack
from gyrostat_rules.state import State

Read = Callable[[Any, State, Moment], Iterable[Reading]]
Row = Mapping[str, float]
RECORDED = json.loads((Path(__file__).parent / "data" / "recorded_series.json").read_text("utf-8"))


class Numbers:
    """One process that tells a row a step, and a detector that looks at each."""

    def __init__(self, read: Read, params: Any, *, knobs: Mapping[str, float] | None = None) -> None:
        self.read, self.params, self.engine = read, params, Engine()
        self.segment, self.step, self.found = 0, 0, dict[int, list[Reading]]()
        self.hello(knobs or {})

    def hello(self, knobs: Mapping[str, float]) -> None:
        """The trainer announces its knobs."""
        states = tuple(KnobState(name, value, 0.0, 10.0) for name, value in knobs.items())
        self.engine.feed(Batch(0.0, (Hello("run", "trainer", 0, 1, "life-a", self.segment, 7, states),)))

    def back(self, step: int) -> None:
        """The run goes back: the next row is of the step after ``step``."""
        self.step, self.segment = step + 1, self.segment + 1

    def tell(self, row: Row) -> list[Reading]:
        """A step; returns what is breached at it."""
        record = Record("trainer", 0, "life-a", self.segment, self.step, self.step, float(self.step), dict(row))
        self.engine.feed(Batch(float(self.step), (record,)))
        moment = Moment(float(self.step), 1, RulePack("none", (), ()), (record,), self.step)
        self.found[self.step] = list(self.read(self.params, self.engine.state, moment))
        self.step += 1
        return self.found[self.step - 1]

    def told(self, rows: Iterable[Row]) -> "Numbers":
        """Many steps."""
        for row in rows:
            self.tell(row)
        return self

    @property
    def alarms(self) -> dict[int, int]:
        """Step -> onset, of the steps at which anything was breached."""
        return {step: found[0].onset for step, found in self.found.items() if found}

    @property
    def last(self) -> list[Reading]:
        """What is breached at the newest step."""
        return self.found[self.step - 1]


def series(name: str, values: Iterable[float]) -> Iterator[Row]:
    """Rows of one series."""
    return ({name: float(v)} for v in values)


def recorded(run: str) -> list[Row]:
    """The rows of a recorded run of the reference trainer (values rounded to 5 digits); faults strike at step 19."""
    return [dict(zip(RECORDED[run], map(float, row), strict=True)) for row in zip(*RECORDED[run].values(), strict=True)]


def episodes(steps: Iterable[int]) -> int:
    """How many unbroken rows of steps there are."""
    known = sorted(steps)
    return sum(step - 1 not in known[max(0, i - 1) : i] for i, step in enumerate(known))


def noise(kind: str, seed: int, count: int) -> list[float]:
    """Null streams of normal, t3, log-normal, AR(1) 0.8, and that on a slope. Variances near 1."""
    dice, held, out = random.Random(f"{kind}{seed}"), 0.0, []
    for i in range(count):
        held = 0.8 * held + dice.gauss(0.0, 0.6)
        t3 = dice.gauss(0.0, 1.0) / (dice.gammavariate(1.5, 2.0) ** 0.5)
        out.append({"normal": dice.gauss(0.0, 1.0), "t3": t3, "log-normal": dice.lognormvariate(0.0, 0.5), "ar": held,
                    "slope": held + 3.0 * i / count}[kind])  # fmt: skip
    return out


def around(middle: float, count: int, *, seed: int = 1, share: float = 0.1) -> Sequence[float]:
    """Positive values that wander about a middle, as a healthy grad norm does."""
    dice = random.Random(seed)
    return [middle * dice.lognormvariate(0.0, share) for _ in range(count)]
