"""The engine: one input in, entries out. Deterministic: the same inputs give the same entries with the same ids.

``STAGES`` is the way of every moment, in order. The agent's loop, ``replay``, rule tests, backtests and crash
recovery all call ``feed`` and nothing else.
"""

from collections.abc import Callable
from functools import lru_cache

from gyrostat.wire import Record
from gyrostat_rules import snapshot
from gyrostat_rules.absorb import absorb, completed, due
from gyrostat_rules.alerts import FIRING, RESOLVED, advance, detect, inhibit, tell
from gyrostat_rules.arming import lapse
from gyrostat_rules.bill import bill
from gyrostat_rules.ceilings import remember
from gyrostat_rules.commands import obey
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.fellows import unwrapped
from gyrostat_rules.hands import watch
from gyrostat_rules.incidents import fold
from gyrostat_rules.inputs import Batch, Command, Input, Pack, Tick
from gyrostat_rules.ladder import decide, plan
from gyrostat_rules.moment import Moment
from gyrostat_rules.outcome import orphaned, overdue
from gyrostat_rules.pack import RulePack
from gyrostat_rules.packfile import PackError, parse
from gyrostat_rules.probation import check_probation
from gyrostat_rules.proposal import propose
from gyrostat_rules.release import release
from gyrostat_rules.silences import hush
from gyrostat_rules.state import State

_NO_RULES = RulePack("none", (), ())
_OLDEST = 26  # fields of the state as the oldest version wrote it whose runs are gone on with

# From records to directives. Probation comes before planning, so that a rung which did not hold is followed by
# the next one in the same moment. The first stages run over every step, so that steps read in one batch give what
# they give one by one; the last run once an input: what is done is decided on all that is known. Bills are written
# behind both places at which incidents end.
STAGES: tuple[Callable[[State, Moment], None], ...] = (
    detect,
    advance,
    hush,
    inhibit,
    fold,
    watch,
    check_probation,
    bill,
    orphaned,
    overdue,
    plan,
    decide,
    bill,
    remember,
    release,
    propose,
)
_EACH_STEP = STAGES[: STAGES.index(orphaned)]


class Engine:
    """The deciding core. ``state`` may be read by anybody and is written by ``feed`` alone.

    ``watch`` is shown every moment once its stages have run, for those who explain them; it must change nothing.
    """

    def __init__(self, state: State | None = None, watch: Callable[[State, Moment], None] | None = None) -> None:
        self.state = state or State()
        self.changed = False
        self._watch = watch

    @classmethod
    def restore(cls, data: bytes) -> "Engine":
        """An engine as ``snapshot`` wrote it down; raises ValueError or TypeError where it is none."""
        return cls(snapshot.load(State, data, _OLDEST))

    def snapshot(self) -> bytes:
        """The whole state, to be read back by ``restore``."""
        return snapshot.dump(self.state)

    def feed(self, given: Input) -> list[Entry]:
        """Take one input; returns what was seen and decided.

        ``changed`` says afterwards whether anything did: a Tick that changed nothing need not be journaled.
        """
        if isinstance(given, Pack):
            _parsed(given.text)  # one that does not parse raises here and leaves no trace
        self.state.turn += 1
        news = Moment(given.at, self.state.turn, self._pack(), step=self.state.step)
        self._take(given, news)
        for step in due(self.state, given.at):
            self._look(news, *step)
        last = Moment(given.at, self.state.turn, self._pack(), (), self.state.step, True, news.entries, memo=news.memo)
        for stage in STAGES if self.state.processes else _EACH_STEP:  # with nobody known there is nothing to decide
            stage(self.state, last)
        if self._watch is not None:
            self._watch(self.state, last)
        self.changed = news.changed or last.changed or not isinstance(given, Tick)
        if not self.changed:
            self.state.turn -= 1
        return news.entries

    def _take(self, given: Input, news: Moment) -> None:
        """Take the news in, item by item, and look at each step as soon as all ranks have told it."""
        if isinstance(given, Pack):
            self._load(news, given)
        elif isinstance(given, Command):
            obey(self.state, news, given)
        elif isinstance(given, Batch):
            for item in unwrapped(self.state, news, given.items):
                absorb(self.state, news, item)
                for step in completed(self.state, item):
                    self._look(news, *step)
                news.step = self.state.step

    def _look(self, news: Moment, step: int, complete: bool, records: tuple[Record, ...]) -> None:
        """Run the stages of a step over it."""
        moment = Moment(news.at, news.turn, news.pack, records, step, complete, news.entries, memo=news.memo)
        for stage in _EACH_STEP:
            stage(self.state, moment)
        if self._watch is not None:
            self._watch(self.state, moment)
        news.changed = news.changed or moment.changed or complete

    def _pack(self) -> RulePack:
        try:
            return _parsed(self.state.pack_text) if self.state.pack_text else _NO_RULES
        except PackError:  # another version took it; the one that begins now hands in its own
            return _NO_RULES

    def _load(self, moment: Moment, pack: Pack) -> None:
        """Take rules up; a pack that does not parse is refused before it is ever journaled."""
        if pack.text == self.state.pack_text:
            return
        rules = _parsed(pack.text)
        lapse(self.state, moment, self._pack(), rules)
        self.state.pack_text = pack.text
        self.state.broken.clear()
        for key, alert in list(self.state.alerts.items()):
            if alert.rule not in {r.alert for r in rules.rules}:  # nobody would ever clear it
                del self.state.alerts[key]
                if alert.state == FIRING:
                    tell(moment, key, alert, RESOLVED)
        text = f"{len(rules.rules)} rules and {len(rules.playbooks)} playbooks of pack {rules.name}"
        moment.write(EntryKind.PACK, rules.name, "loaded", text, digest=pack.digest)
        moment.pack = rules  # a step that waits for its ranks may be looked at in this very input


@lru_cache(maxsize=8)
def _parsed(text: str) -> RulePack:
    return parse(text)
