"""The agent's loop: one pass takes a record from its file to a directive, as docs/architecture.md draws it.

    1 drain every source          2 decide (pure)          3 commit, BEFORE anything is done
    4 carry out what was decided  5 tidy up: what is committed may be deleted, shown, written to the ledger

It never waits: ``service`` sleeps between passes. What it cannot write down it does not do: a journal that
fails ends the pass with TemporaryError or JournalError, and the next pass begins again from the journal.
"""

from collections.abc import Callable, Mapping, Sequence

from gyrostat.wire import Hello, Record, RunDirectory
from gyrostat_agent import failpoints
from gyrostat_agent.actuators.directivefiles import DirectiveFiles
from gyrostat_agent.carrying import Carrying
from gyrostat_agent.custody import Custody
from gyrostat_agent.ledgerkeeping import LedgerKeeping
from gyrostat_agent.recovery import doubt, recover, settle, trust
from gyrostat_agent.senses import Checkpoints, Job, Member, Surroundings
from gyrostat_agent.settings import Settings
from gyrostat_agent.sources.commands import CommandFiles
from gyrostat_agent.sources.eventlogs import EventLogs
from gyrostat_agent.sources.logs.logfiles import LogFiles
from gyrostat_agent.sources.logs.table import FORMATS
from gyrostat_agent.sources.recordfiles import RecordFiles
from gyrostat_agent.succession import Succession
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.fellows import told
from gyrostat_rules.handover import far
from gyrostat_rules.inputs import (
    LEDGER,
    Batch,
    Command,
    Input,
    Item,
    Pack,
    SourceState,
    SourceWord,
    Tick,
    Verb,
)
from gyrostat_rules.keeping import keep
from gyrostat_rules.remedies import NEEDS_APPROVAL
from gyrostat_rules.standing import LEADER

_FACTS_OF_A_RUN = ("jumped", "released")


class Agent:
    """One run's sidecar, between two passes. ``clock`` gives Unix seconds."""

    def __init__(
        self, run: RunDirectory, settings: Settings, checkpoints: Checkpoints, clock: Callable[[], float],
        around: Surroundings | None = None, job: Job | None = None, member: Member | None = None,
    ) -> None:  # fmt: skip
        self._run, self._settings, self._checkpoints, self._clock = run, settings, checkpoints, clock
        self._directives = DirectiveFiles(run)
        self._commands = CommandFiles(run)
        self.journal, self.engine, self._fresh, distrust, lost = recover(run)
        self.custody = Custody(self.journal, settings.journal_days, settings.journal_bytes)
        self._records = RecordFiles(run, self.journal.offsets(), introduce=lost)
        self._around = around
        self._logs = LogFiles(settings.logs, self.journal.offsets(), FORMATS.get(settings.log_format))
        self._events = EventLogs(settings.logs, self.journal.offsets())
        self._place = settings.checkpoints[0] if settings.checkpoints else ""
        self._ledger = LedgerKeeping(self.journal.head, lambda: self.custody.heads, job, self._place)
        self._member = member
        self._carrying = Carrying(self._directives, checkpoints, self._ledger, member)
        self._succession = Succession(member, self._ledger)
        self._faults_told: dict[str, str] = {}
        self._forwarded: dict[str, int] = {}
        self._unsaved = 0
        self._next_tick = 0.0
        self._root = ""
        self.turns = 0
        self.entries: list[Entry] = []  # since the last look of whoever shows them, as is ``taken``
        self.taken: list[Item] = []
        self._begin(distrust)

    def once(self) -> bool:
        """One pass; True where there was news, or may be more at once."""
        now = self._clock()
        self._stand(now)
        items = self._drain(now)
        if items:
            failpoints.reach("batch.drained")
            if self._fresh and not self.engine.state.standing.follows:
                self._read_ledger(items, now)
            offsets = {**self._records.offsets(), **self._logs.offsets(), **self._events.offsets(), **self._forwarded}
            self._take(Batch(now, tuple(items)), offsets)
            self.taken += items
            self._records.sweep()
            if self._member is not None:
                self._member.committed()
        self._obey(now)
        if not 0 < self._next_tick - now <= self._settings.tick_seconds:  # due, or the clock was set back
            self._next_tick = now + self._settings.tick_seconds
            if not self.engine.state.standing.follows:
                self._checkpoints.poll()
            self._take(Tick(now))
            self._tidy(now)
        return bool(items) or self._events.behind

    @property
    def missing(self) -> int:
        """Frames that never came."""
        return self._records.missing

    @property
    def damaged(self) -> int:
        """Places passed over as damage."""
        return self._records.damaged

    def seconds_to_tick(self) -> float:
        """How long may be slept where nothing happens."""
        tick = min(max(0.0, self._next_tick - self._clock()), self._settings.tick_seconds)
        return min(tick, self._member.seconds()) if self._member is not None else tick

    def close(self) -> None:
        """Leave in order: the next start need not replay."""
        self._save_snapshot()
        self._ledger.keep(self.engine.state, durable=True)
        self._records.close()
        self._logs.close()
        self.journal.close()

    def abandon(self) -> None:
        """Let go of what is open without writing: after a journal that failed, or in a simulated crash."""
        self._records.close()
        self._logs.close()
        self.journal.close()

    # -- start ----------------------------------------------------------------------------------------

    def _begin(self, distrust: str) -> None:
        now = self._clock()
        settings = self._settings
        floor = self._directives.newest() + 1
        self._history = self._fresh and floor > 1
        root = self._ledger.root_of(self.engine.state)
        if self._member is not None:  # what another one wrote meanwhile is read when this one begins to decide
            self._member.begin(self.journal.offsets())
        elif not distrust and not self._fresh and root:
            # Before the first turn, with which it would be written over.
            distrust = doubt(self.journal, self.engine.state, root)
        if distrust:  # said first of all: neither rules nor mode may lead to anything before it is known
            self._take(Command(now, Verb.DISTRUST, {"reason": distrust}))
        self._take(Pack(now, settings.pack_digest, settings.pack_text))
        words = {"mode": settings.mode, "approvals": settings.approvals, "run": settings.run, "next_directive": floor}
        self._take(Command(now, Verb.CONFIGURE, words))
        self._stand(now)
        self._settle(now)
        failpoints.reach("settled")

    def _settle(self, now: float) -> None:
        """Carry out what was decided, here or by the one who decided before, and may not have been done."""
        state = self.engine.state
        if state.standing.follows or far(state):
            return
        if self._member is not None and not self._member.may_act(state.standing.term):
            return
        if self._ledger.keep(self.engine.state, durable=True):
            paused = self._is_paused(now)
            if failed := settle(self.engine, self._directives, now, self._carrying.spoilt, paused=paused):
                self._take(Batch(now, tuple(failed)))

    def _stand(self, now: float) -> None:
        """Begin to decide, or end to, where that is due."""
        stood = False
        for command in self._succession.commands(self.engine.state, now):
            self._take(command)
            stood = True
        if stood and self.engine.state.standing.word == LEADER:
            self._fresh = self._fresh and not self._ledger.root_of(self.engine.state)
            self._root = ""
            self._settle(now)

    def _read_ledger(self, items: Sequence[Item], now: float) -> None:
        """Before the first Hello of a run that this journal knows nothing of is believed: was there a life before?"""
        hellos = [i for i in told(items) if isinstance(i, Hello)]
        root = next((i.checkpoint_root for i in hellos if i.role == "trainer"), None)
        if root is None and not (self._place and any(isinstance(i, Record) and i.role == "trainer" for i in items)):
            return
        root = root or self._place
        self._fresh = False
        found, why = self._ledger.read(root)
        older = any(i.last_directive > 0 for i in hellos)
        if found is not None:
            self._take(Command(now, Verb.LEDGER, found))
        elif why or self._history or older:
            reason = why or "this run has a history, but neither its journal nor a ledger is here"
            self._take(Command(now, Verb.DISTRUST, {"reason": reason}))

    # -- one pass -------------------------------------------------------------------------------------

    def _drain(self, now: float) -> list[Item]:
        items: list[Item] = list(self._records.drain())
        items += self._logs.drain(now) + self._events.drain(now)
        if self._around is not None:
            items += self._around.drain(now, self.engine.state.step, self.engine.state.segment)
        if self._member is not None:
            forwarded, self._forwarded = self._member.drain(self.engine.state)
            items += forwarded
        items += self._checkpoints.drain()
        return items

    def _take(self, given: Input, offsets: Mapping[str, int] | None = None) -> None:
        """Decide, commit, carry out. What could not be delivered is news of its own.

        ``offsets`` go with the batch that was read up to them: committed with anything before it, a crash in
        between would lose what was read.
        """
        entries = self.engine.feed(given)
        if not self.engine.changed:
            return
        failpoints.reach("batch.decided")
        sent = [e for e in entries if "orders" in e.data]
        seq = self.journal.commit(given, entries, offsets or {}, sync=any(map(_irreversible, sent)))
        failpoints.reach("turn.committed")
        self.entries += entries
        self.turns += 1
        self._unsaved += 1
        noted = self.custody.see(seq, entries)
        self._ledger.note(noted or any(map(_must_outlive_the_pod, entries)))
        self._ledger.keep(self.engine.state)
        if self._member is not None:
            self._member.tell(self.engine.state, given.items if isinstance(given, Batch) else (), entries)
        failed = [f for e in sent for f in self._carrying.carry_out(e, self.engine.state)]
        if self._carrying.fault:
            self._faults_told[LEDGER] = self._carrying.fault  # said already, so that the next one waits
        self._look_for_root()
        if failed:
            self._take(Batch(given.at, tuple(failed)))

    def _is_paused(self, now: float) -> bool:
        """By what was obeyed, and by what lies there since the last agent went: nobody has read that yet."""
        said = [c.verb for _, c in self._commands.drain(now) if c.verb in (Verb.PAUSE, Verb.RESUME)]
        return said[-1] == Verb.PAUSE if said else self.engine.state.settings.paused

    def _obey(self, now: float) -> None:
        """What people have said; each file goes once the journal has it."""
        for name, command in self._commands.drain(now):
            self._take(command)
            if command.verb == Verb.TRUST:
                trust(self._run, self.engine.state.settings.trusted)
            self._commands.done(name)

    def _look_for_root(self) -> None:
        trainer = self.engine.state.trainer()
        if self.engine.state.standing.follows:  # of many agents one looks at the checkpoints
            return
        if trainer is not None and trainer.root and trainer.root != self._root:
            self._root = trainer.root
            self._checkpoints.set_root(trainer.root)
            if self._around is not None:
                self._around.set_root(trainer.root)

    # -- tidy up --------------------------------------------------------------------------------------

    def _tidy(self, now: float) -> None:
        if self._unsaved >= self._settings.snapshot_turns:
            self._save_snapshot()
        if not self.engine.state.settings.distrust:
            self.custody.tidy(now)
        self._tell(now, "journal", self.custody.fault, "what nobody needs is let go again")
        self._ledger.keep(self.engine.state, durable=True)
        self._tell(now, LEDGER, self._ledger.fault, "the ledger is written again")
        self._tell(now, "kubernetes", self._ledger.trouble, "the job can be acted on")
        if why := "" if self._fresh else self._ledger.late_doubt(self.engine.state):
            self._take(Command(now, Verb.DISTRUST, {"reason": why}))
        if not self.engine.state.standing.follows:
            self._checkpoints.keep(keep(self.engine.state, self._settings.pins))
        if self._around is not None:
            self._around.set_processes([p.pid for p in self.engine.state.processes.values() if p.pid and not p.ended])
        self._tell(now, "pins", self._checkpoints.pin_fault, "checkpoints are pinned again")

    def _tell(self, now: float, what: str, fault: str, well: str) -> None:
        """Say once what cannot be written, and once that it can be again."""
        if fault != self._faults_told.get(what, ""):
            self._faults_told[what] = fault
            word = SourceWord.DAMAGED if fault else SourceWord.FRESH
            self._take(Batch(now, (SourceState(what, word, fault or well),)))

    def _save_snapshot(self) -> None:
        if self._unsaved:
            self.custody.save(self.engine.snapshot(), self.engine.state.step)
            self._unsaved = 0
            failpoints.reach("snapshot.saved")


def _must_outlive_the_pod(entry: Entry) -> bool:
    return entry.kind in (EntryKind.INCIDENT, EntryKind.ACTION, EntryKind.COMMAND) or entry.state in _FACTS_OF_A_RUN


def _irreversible(entry: Entry) -> bool:
    return entry.kind == EntryKind.ACTION and entry.data.get("remedy") in NEEDS_APPROVAL
