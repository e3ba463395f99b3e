"""Gathered: what the lines of one log say, as Records: rows of one step become one, under canonical names.

A step that comes again after later ones begins a new segment: a run that was resumed is no fault. A step that no line
says is counted. Several ranks that print the same numbers are one; where they differ, what is not finite stays.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from gyrostat.wire import ExpertLoad, Record
from gyrostat.wire.fields import clean
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import EVAL, SKIPPED, Fault, Note, Said, Step, Told
from gyrostat_rules.series import STEP_APPLIED

Found: TypeAlias = Record | Fault | Note
_MOST = 1000  # names of one log; what goes on inventing them is no trainer
_PLANS = 256  # rows of names that differ each time are no rows of one trainer
_CUMULATIVE = {"skipped_steps", "nan_steps"}  # told as counts since the run's beginning


class _Plan(NamedTuple):
    """What each value of a row is called here, '' for none. ``plain``: each another, and none is a running count."""

    targets: list[str]
    plain: bool


class Gathered:
    """Takes what is said in order. ``names`` knows what was read as what; ``incarnation`` names the log as a life."""

    def __init__(self, names: Names, incarnation: str) -> None:
        self.names = names
        self._incarnation = incarnation
        self._step = -1  # of the row that is open
        self._counted = False  # whether that step is a guess
        self._announced = -1
        self._last = -1  # newest step that was given away
        self._values: dict[str, float] = {}
        self._load: ExpertLoad | None = None
        self._at = math.nan
        self._segment = self._sequence = 0
        self._before: dict[str, float] = {}
        self._plans: dict[tuple[str, ...], _Plan] = {}

    def take(self, said: Iterable[Said]) -> Iterator[Found]:
        """Records that are complete, faults and notes at once."""
        for one in said:
            if isinstance(one, Told):
                yield from self._told(one)
            elif isinstance(one, Step):
                yield from self._announce(one)
            elif isinstance(one, Fault):  # it comes behind what was told before it, and is dated by that
                yield from self.flush()
                yield one
            else:
                if one.kind == SKIPPED and self._values and one.step in (-1, self._step):
                    self._values[STEP_APPLIED] = 0.0
                yield one

    def flush(self) -> Iterator[Record]:
        """The row that is open, where there is one: more of it may come, and is then told as of the same step."""
        if not self._values and self._load is None:
            return
        if self._step < self._last:
            self._segment += 1
        self._last = self._step
        self._sequence += 1
        at = self._at if math.isfinite(self._at) else float(self._sequence)
        values, self._values = self._values, {}
        load, self._load = self._load, None
        yield Record("trainer", 0, self._incarnation, self._segment, self._sequence, self._step, at, values, load)

    def _announce(self, said: Step) -> Iterator[Record]:
        if said.ends:
            if self._values and self._counted:
                self._step, self._counted = said.step, False
            yield from self.flush()
            self._announced = -1
            return
        if said.step != self._step:
            yield from self.flush()
        self._announced = said.step

    def _told(self, said: Told) -> Iterator[Record]:
        values = self._named(said)
        if not values and said.load is None:
            return
        step, counted = self._step_of(said, values)
        if (self._values or self._load) and step != self._step:
            yield from self.flush()
        self._step, self._counted = step, counted
        self._load = said.load or self._load
        if self._values:
            for name, value in values.items():
                known = self._values.get(name)
                if known is None or (math.isfinite(known) and not math.isfinite(value)):
                    self._values[name] = value
        else:
            self._values = values
        self._at = said.at if said.at is not None else self._at

    def _step_of(self, said: Told, values: dict[str, float]) -> tuple[int, bool]:
        """The step of a row, and whether it is a guess."""
        if said.step is not None:
            return said.step, False
        if self._announced >= 0 and (self._step != self._announced or self._is_more(said, values)):
            return self._announced, False
        if self._values and self._is_more(said, values):
            return self._step, self._counted
        return (self._step if self._values else max(self._step, self._last)) + 1, True

    def _is_more(self, said: Told, values: dict[str, float]) -> bool:
        """True for what belongs to the open row: an evaluation, or names that it has not yet."""
        return said.phase == EVAL or not self._values.keys() & values.keys()

    def _named(self, said: Told) -> dict[str, float]:
        """The values under the names they are known by here; rows of the same names are read by the same plan."""
        keys = (said.phase, *said.values)
        plan = self._plans.get(keys)
        if plan is None:
            plan = self._plan(said)
            if len(self._plans) < _PLANS:
                self._plans[keys] = plan
        if plan.plain:
            return dict(zip(plan.targets, said.values.values(), strict=True))
        named: dict[str, float] = {}
        for target, value in zip(plan.targets, said.values.values(), strict=True):
            if target in _CUMULATIVE:
                named[target] = self._since(target, value)
            elif target and (target not in named or not math.isfinite(value)):  # the first alias, or the sick one
                named[target] = value
        return named

    def _plan(self, said: Told) -> "_Plan":
        targets = [self._target(name, said.phase) for name in said.values]
        return _Plan(targets, len(set(targets)) == len(targets) and "" not in targets and not _CUMULATIVE & {*targets})

    def _target(self, name: str, phase: str) -> str:
        if len(self.names.known) >= _MOST and name not in self.names.known:
            return ""
        name = clean(name)  # JSON may spell half a character, which no file and no journal takes
        known = self.names.of(name)
        if phase == EVAL or known.phase == EVAL:
            return f"eval/{name.removeprefix('eval_').removeprefix('eval/')}"
        return known.canonical or name

    def _since(self, name: str, value: float) -> float:
        """What a count that only grows has grown by."""
        if not math.isfinite(value):
            return value
        before, self._before[name] = self._before.get(name, 0.0), value
        return value if value < before else value - before  # a run that began anew counts from nothing
