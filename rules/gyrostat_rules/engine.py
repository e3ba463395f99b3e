"""The engine: one input in, entries out. Deterministic: the same inputs give the same entries with the same ids.

``STAGES`` is the way of every moment, in order. The agent's loop, ``replay``, rule tests, backtests and crash
recovery all call ``feed`` and nothing else.
"""

from collections.abc import Callable
from functools import lru_cache

from gyrostat_rules import snapshot
from gyrostat_rules.absorb import absorb, due
from gyrostat_rules.alerts import advance, detect, inhibit
from gyrostat_rules.commands import obey
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.incidents import fold
from gyrostat_rules.inputs import Batch, Command, Input, Pack, Tick
from gyrostat_rules.ladder import decide, plan
from gyrostat_rules.moment import Moment
from gyrostat_rules.outcome import overdue
from gyrostat_rules.pack import RulePack
from gyrostat_rules.packfile import parse
from gyrostat_rules.probation import check_probation
from gyrostat_rules.release import release
from gyrostat_rules.state import State

_NO_RULES = RulePack("none", (), ())

# From records to directives. Probation comes before planning, so that a rung which did not hold is followed by
# the next one in the same moment.
STAGES: tuple[Callable[[State, Moment], None], ...] = (
    detect,
    advance,
    inhibit,
    fold,
    overdue,
    check_probation,
    plan,
    decide,
    release,
)


class Engine:
    """The deciding core. ``state`` may be read by anybody and is written by ``feed`` alone."""

    def __init__(self, state: State | None = None) -> None:
        self.state = state or State()
        self.changed = False

    @classmethod
    def restore(cls, data: bytes) -> "Engine":
        """An engine as ``snapshot`` wrote it down; raises ValueError or TypeError where it is none."""
        return cls(snapshot.load(State, data))

    def snapshot(self) -> bytes:
        """The whole state, to be read back by ``restore``."""
        return snapshot.dump(self.state)

    def feed(self, given: Input) -> list[Entry]:
        """Take one input; returns what was seen and decided.

        ``changed`` says afterwards whether anything did: a Tick that changed nothing need not be journaled.
        """
        self.state.turn += 1
        entries: list[Entry] = []
        first = Moment(given.at, self.state.turn, self._pack(), step=self.state.step, entries=entries)
        if isinstance(given, Pack):
            self._load(first, given)
        elif isinstance(given, Command):
            obey(self.state, first, given)
        elif isinstance(given, Batch):
            for item in given.items:
                absorb(self.state, first, item)
        changed = self._look(given, first) or first.changed or not isinstance(given, Tick)
        self.changed = changed
        if not changed:
            self.state.turn -= 1
        return entries

    def _look(self, given: Input, first: Moment) -> bool:
        """Run the stages over each step that is due; over nothing but news and time where none is."""
        state, changed = self.state, False
        moments = [
            Moment(given.at, state.turn, self._pack(), records, step, complete, first.entries)
            for step, complete, records in due(state, given.at)
        ]
        for moment in moments or [Moment(given.at, state.turn, self._pack(), (), state.step, True, first.entries)]:
            for stage in STAGES:
                stage(state, moment)
            changed = changed or moment.changed or bool(moment.records and moment.closed)
        return changed

    def _pack(self) -> RulePack:
        return _parsed(self.state.pack_text) if self.state.pack_text else _NO_RULES

    def _load(self, moment: Moment, pack: Pack) -> None:
        """Take rules up; a pack that does not parse is refused before it is ever journaled."""
        if pack.text == self.state.pack_text:
            return
        rules = _parsed(pack.text)
        self.state.pack_text = pack.text
        text = f"{len(rules.rules)} rules and {len(rules.playbooks)} playbooks of pack {rules.name}"
        moment.write(EntryKind.PACK, rules.name, "loaded", text, digest=pack.digest)


@lru_cache(maxsize=8)
def _parsed(text: str) -> RulePack:
    return parse(text)
