"""Witness: watches an engine for the sake of one rule, moment by moment, and remembers what people ask about.

Memory is bounded: of each gauge its newest and nearest value, the sights about one step, and the newest turns.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from gyrostat_agent.explain.sight import Key, Sight, Standing, key_of, seen, standing
from gyrostat_rules.alerts import FIRING, RESOLVED
from gyrostat_rules.detectors.gauge import BELOW, Gauge
from gyrostat_rules.gauges import gauges
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule, RulePack
from gyrostat_rules.state import State

AROUND = 5  # steps before and after the one that is asked about
_TURNS = 500  # newest turns that are kept
_NEAR = 400  # sights about the step; a run that came by it many times has told enough


class Turn(NamedTuple):
    """An alert turned: pending, firing, muted, ...; ``by``: what muted it, or the incident it joined."""

    step: int
    segment: int
    at: float
    alert: str
    word: str
    by: str
    why: str


class Extreme(NamedTuple):
    """A gauge at some step."""

    step: int
    gauge: Gauge


class Witness:
    """What one rule saw of a run. Its ``watch`` is an engine's; what it throws at a gauge is remembered, not raised."""

    def __init__(self, name: str, step: int | None = None) -> None:
        self.name, self.step = name, step
        self.rule: Rule | None = None
        self.pack: RulePack | None = None
        self.looks = 0
        self.first, self.last = -1, -1
        self.newest: dict[Key, Extreme] = {}
        self.nearest: dict[Key, Extreme] = {}
        self.near: list[Sight] = []
        self.before: Sight | None = None
        self.turns: list[Turn] = []
        self.more_turns = 0
        self.broken = ""
        self._stood: Mapping[str, Standing] = {}

    def watch(self, state: State, moment: Moment) -> None:
        """Take in one moment of the run."""
        self.pack = moment.pack
        self.rule = next((r for r in moment.pack.rules if r.alert == self.name), None)
        if moment.step >= 0:
            self.first = moment.step if self.first < 0 else min(self.first, moment.step)
            self.last = max(self.last, moment.step)
        if self.rule is None:
            return
        self._turned(moment, state.segment, standing(self.rule, state, moment))
        found = next((readings for rule, readings in moment.readings if rule.alert == self.name), None)
        if found is not None:
            self._looked(seen(self.rule, state, moment, self._measured(state, moment), frozenset(found)))

    def shown(self) -> list[Key]:
        """The gauges that hold now, the nearest to its limit first; not those of a series' first values, long past."""
        upto: dict[object, int] = {}
        for key, extreme in self.newest.items():
            upto[key[:2]] = max(upto.get(key[:2], -1), extreme.step)
        now = [key for key, extreme in self.newest.items() if extreme.step == upto[key[:2]]]
        return sorted(now, key=lambda key: way(self.newest[key].gauge))

    def _measured(self, state: State, moment: Moment) -> dict[Key, Gauge]:
        assert self.rule is not None
        try:
            return {key_of(gauge): gauge for gauge in gauges(self.rule, state, moment)}
        except Exception as error:  # a rule that is broken is explained as far as it goes
            self.broken = f"{type(error).__name__}: {error}"
            return {}

    def _looked(self, sight: Sight) -> None:
        self.looks += 1
        for key, gauge in sight.gauges.items():
            self.newest[key] = Extreme(sight.step, gauge)
            old = self.nearest.get(key)
            if old is None or way(gauge) < way(old.gauge):
                self.nearest[key] = Extreme(sight.step, gauge)
        if self.step is None:
            return
        if sight.step <= self.step:
            self.before = sight
        if abs(sight.step - self.step) <= AROUND and len(self.near) < _NEAR:
            if self.near and (self.near[-1].segment, self.near[-1].step) == (sight.segment, sight.step):
                self.near.pop()  # a step is looked at again when its last rank has spoken, and when nothing is new
            self.near.append(sight)

    def _turned(self, moment: Moment, segment: int, stands: dict[str, Standing]) -> None:
        for key in sorted(stands.keys() | self._stood.keys()):
            for word, by, why in _changes(self._stood.get(key), stands.get(key)):
                self.turns.append(Turn(moment.step, segment, moment.at, key, word, by, why))
        self._stood = stands
        if (many := len(self.turns) - _TURNS) > 0:
            del self.turns[:many]
            self.more_turns += many


def way(gauge: Gauge) -> float:
    """How far a gauge is from its limit, relative to the two; 0 and less beyond it; infinite where there is none."""
    if math.isnan(gauge.limit) or math.isinf(gauge.limit):
        return math.inf
    far = gauge.value - gauge.limit if gauge.side == BELOW else gauge.limit - gauge.value
    return far / (max(abs(gauge.value), abs(gauge.limit)) or 1.0) if math.isfinite(gauge.value) else -math.inf


def _changes(old: Standing | None, new: Standing | None) -> list[tuple[str, str, str]]:
    """What became of an alert from one moment to the next: word, by what, why."""
    if new is None:
        return [(RESOLVED if old and old.state == FIRING else "no longer pending", "", "")]
    found = [(new.state, "", new.why)] if old is None or old.state != new.state else []
    if new.incident and (old is None or old.incident != new.incident):
        found.append(("in incident", new.incident, ""))
    if new.muted_by != (old.muted_by if old else ""):
        found.append(("muted", new.muted_by, "") if new.muted_by else ("muted no more", "", ""))
    return found
