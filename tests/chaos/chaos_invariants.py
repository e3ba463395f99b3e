"""What must hold, whoever dies when. Each check says in words what was broken; a schedule's seed says the rest."""

import os
from pathlib import Path
from typing import Any

from chaos_coverage import facts_of
from chaos_history import History, Sent
from chaos_memory import alike, distrusted, era, has_met_the_trainer, lost_memory
from chaos_packs import bounds
from chaos_trainer import Trainer

from gyrostat.wire import Record, RunDirectory
from gyrostat_agent.journal import Journal, Turn
from gyrostat_agent.loop import Agent
from gyrostat_agent.recovery import recover, same
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import Batch, Input
from gyrostat_rules.remedies import NEEDS_APPROVAL

_OUTCOMES = {"done", "failed", "timed out", "ineffective", "unknown"}
_ANSWERS = {"applied", "refused", "failed"}


class Watch:
    """Looks on, and remembers what must never go back."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._marks: dict[str, int] = {}
        self._open: dict[str, str] = {}
        self._texts: dict[tuple[int, int], bytes] = {}
        self._entries: dict[tuple[int, str], Entry] = {}
        self._last: list[Entry] = []
        self._heard: set[tuple[str, int]] = set()
        self._paused = False

    # -- called by the world ------------------------------------------------------------------------------

    def after_start(self, agent: Agent) -> None:
        """An agent stands again: what was known must be known."""
        feed = agent.engine.feed

        def kept(given: Input) -> list[Entry]:
            self._last = feed(given)
            return self._last

        agent.engine.feed = kept  # type: ignore[method-assign]
        self._compare(agent)

    def at_point(self, point: str, agent: Agent | None) -> None:
        """What is in the journal counts, whatever comes after."""
        if point == "turn.committed" and agent is not None:
            self._decided(agent)
        if point == "ledger.written" and agent is not None and has_met_the_trainer(agent):
            self._compare(agent)
            self._mark(agent)

    def after_pass(self, agent: Agent) -> None:
        """One pass ended well."""
        self._compare(agent)
        if has_met_the_trainer(agent):
            self._mark(agent)

    def after_round(self) -> None:
        """Directives never change, and none is begun twice."""
        self._read_directives()
        self._once()

    def trainer_ended(self, trainer: Trainer) -> None:
        """Remember what it said."""
        self._history.told += [(r, self._history.pods) for r in trainer.told]
        trainer.told = []
        self._history.poisoned += trainer.poisoned_steps
        trainer.poisoned_steps = []

    def before_loss(self) -> None:
        """The run directory goes: what stood in its journal is kept for the end."""
        self._collect()

    def cover(self, agent: Agent) -> None:
        """Somebody dies now: in which state of the agent?"""
        self._history.covered |= facts_of(agent.engine.state, self._last)

    def acting(self, agent: Agent | None) -> bool:
        """True while something that was sent is not answered and has not run out."""
        return agent is None or any(i.state in ("open", "acting") for i in agent.engine.state.incidents)

    def at_end(self, agent: Agent | None, trainer: Trainer | None) -> None:
        """The quiet time is over."""
        assert agent is not None, "no agent could be started any more"
        self._compare(agent)
        if trainer is not None:
            self.trainer_ended(trainer)
        assert trainer is None or has_met_the_trainer(agent), "a trainer lives, and the agent does not know of it"
        turns = self._collect()
        self._replay(agent, turns)
        self._read(turns)
        self._settled(agent)
        self._bounded()
        self._seen()

    # -- (1) nothing twice ----------------------------------------------------------------------------------

    def _read_directives(self) -> None:
        folder = RunDirectory(self._history.path).directives
        for name in os.listdir(folder):
            if name.removesuffix(".json").isdigit():
                number, text = int(name[:-5]), Path(folder, name).read_bytes()
                # A release goes out before the first Hello as well, and so before the ledger is known.
                pod = self._history.pods if b'"procedure":"release"' in text else era(self._history, self._history.pods)
                before = self._texts.setdefault((pod, number), text)
                assert before == text, f"directive {number} has changed:\n{before!r}\n{text!r}"

    def _once(self) -> None:
        orders = [b for b in self._history.begun if b.procedure not in ("resume", "release")]
        numbers = [(era(self._history, b.pod), b.number) for b in orders]
        assert len(numbers) == len(set(numbers)), f"a directive was carried out twice: {orders}"
        actions = [(era(self._history, b.pod), b.action) for b in orders]
        assert len(actions) == len(set(actions)), f"an action was carried out twice: {orders}"

    # -- (4) nothing forgotten ----------------------------------------------------------------------------

    def _mark(self, agent: Agent) -> None:
        state = agent.engine.state
        self._marks = _counts(agent)
        self._open = {i.id: i.state for i in state.incidents if i.open}
        self._paused = state.settings.paused

    def _compare(self, agent: Agent) -> None:
        if self._history.pods and not has_met_the_trainer(agent):
            return  # where the ledger lies is said in the trainer's Hello
        if lost_memory(self._history):
            return  # there is nothing to know it from, and that is known
        now = _counts(agent)
        paused = agent.engine.state.settings.paused
        assert paused or not self._paused or "resume" in self._history.words, "a pause was forgotten"
        for name, before in self._marks.items():
            assert now[name] >= before, f"{name} went back from {before} to {now[name]}: something was forgotten"
        known = {i.id for i in agent.engine.state.incidents}
        assert known >= set(self._open), f"open incidents were forgotten: {set(self._open) - known}"

    # -- (7), (8), (9) what may be sent ---------------------------------------------------------------------

    def _decided(self, agent: Agent) -> None:
        state = agent.engine.state
        known = {(s.number, s.action) for s in self._history.sent}
        for incident in state.incidents:
            for action in incident.actions:
                if action.number and (action.number, action.id) not in known:
                    self._allowed(agent, incident, action)

    def _allowed(self, agent: Agent, incident: Any, action: Any) -> None:
        settings = agent.engine.state.settings
        target = action.arguments.get("checkpoint", "")
        self._history.sent.append(
            Sent(
                action.number, action.id, action.remedy, incident.kind, action.sent_step, settings.mode,
                settings.approvals, settings.paused, settings.distrust, action.approved, target, incident.onset, (0, 0),
                self._history.pods,
            )
        )  # fmt: skip
        if action.remedy == "undo":
            return  # a tripped breaker blocks harm and never healing
        what = f"{action.remedy} ({action.id}) was sent"
        assert settings.mode == "act", f"{what} in mode {settings.mode}"
        assert not settings.paused, f"{what} while a person had paused"
        silences = [s for s in agent.engine.state.silences.values() if s.begun and s.ends > self._history.now()]
        assert not silences, f"{what} while a person wanted silence: {silences}"
        assert not settings.distrust, f"{what} by an agent that may only observe: {settings.distrust}"
        if settings.approvals and action.remedy in NEEDS_APPROVAL:
            assert action.approved and self._history.scenario.person == "approves", f"{what} and nobody had approved it"
        if target:
            self._within_reach(agent, incident, action, what)
            saved = self._history.store.find(target)
            assert saved is not None, f"{what} to a checkpoint that does not exist: {target}"
            assert saved.finite, f"{what} to an unfit checkpoint: {saved}"
            assert saved.step < incident.onset, f"{what} to step {saved.step}, and the onset is {incident.onset}"

    def _within_reach(self, agent: Agent, incident: Any, action: Any, what: str) -> None:
        """What costs more steps than it may was approved by somebody."""
        lost = action.sent_step - action.arguments["step"]
        most = bounds(self._history.scenario.pack)[incident.kind].lost
        assert lost <= most or (action.approved and self._history.scenario.person == "approves"), (
            f"{what}, would lose {lost} steps, and nobody had approved it"
        )

    # -- the end ----------------------------------------------------------------------------------------------

    def _collect(self) -> list[Turn]:
        """Keep the entries of this pod's journal, and give its turns."""
        path = os.path.join(RunDirectory(self._history.path).agent, "journal.db")
        if not os.path.exists(path) or not os.path.getsize(path):
            return []
        journal = Journal(path, readonly=True)
        turns = list(journal.turns())
        journal.close()
        for turn in turns:
            self._entries.update({(self._history.pods, entry.id): entry for entry in turn.entries})
            items = turn.given.items if isinstance(turn.given, Batch) else ()
            self._heard |= {(i.incarnation, i.step) for i in items if isinstance(i, Record)}
        return turns

    def _replay(self, agent: Agent, turns: list[Turn]) -> None:
        """(5) The chain holds, and the journal alone tells the same story, by either way."""
        distrusted(self._history, agent)
        engine = Engine()
        for turn in turns:
            said = engine.feed(turn.given)
            assert same(said, turn.entries), f"turn {turn.seq}, fed again, decides otherwise:\n{said}\n{turn.entries}"
        live = agent.engine.snapshot()
        alike(live, engine, "a replay")
        if sum(self._history.deaths.passed.values()) % 4:
            return  # the other way costs as much again: in one schedule of four
        again = recover(
            RunDirectory(self._history.path)
        )  # verifies the chain, and takes the snapshot where there is one
        again.journal.close()
        assert not again.distrust, again.distrust
        alike(live, again.engine, "the snapshot")

    def _read(self, turns: list[Turn]) -> None:
        """(4) Every record that was written whole is in the journal, in the order written, and once."""
        told = [r for r, pod in self._history.told if pod == self._history.pods]
        items = [i for turn in turns if isinstance(turn.given, Batch) for i in turn.given.items]
        read = [(i.incarnation, i.segment, i.step) for i in items if isinstance(i, Record)]
        assert read == told, f"of the records written, these were not read as written: {set(told) ^ set(read) or read}"

    def _settled(self, agent: Agent) -> None:
        """(2) Every intent has an outcome, or its incident waits with a reason."""
        if self._history.pods and not has_met_the_trainer(agent):
            return  # no trainer came again, and with it no ledger: there is no run any more
        if lost_memory(self._history):
            return
        incidents = {i.id: i for i in agent.engine.state.incidents}
        said: dict[str, set[str]] = {}
        begun = {b.action for b in self._history.begun}
        for (pod, _), entry in self._entries.items():
            # What a lost pod had only written down, before its ledger said so, was never done and is nobody's intent.
            if entry.kind == EntryKind.ACTION and (pod == self._history.pods or entry.subject in begun):
                said.setdefault(entry.subject, set()).add(entry.state)
        for action, states in said.items():
            if "sent" not in states:
                continue
            incident = incidents.get(action.partition(".")[0])
            waits = incident is not None and incident.state not in ("open", "acting") and incident.why
            assert states & (_OUTCOMES | _ANSWERS) or waits, (
                f"the intent {action} was lost: {sorted(states)}, its incident {incident and incident.state}"
            )
        self._laid()
        for incident in incidents.values():
            assert incident.state not in ("open", "acting"), f"{incident.id} hangs in {incident.state}: {incident.why}"

    def _laid(self) -> None:
        """(2) An agent that comes back at once lays what it had only decided: nothing runs out for want of it."""
        absent = [b for b in self._history.blows if b.rounds not in (0, 1) or b.pod]
        if absent or self._history.pods:
            return
        laid = {number for _, number in self._texts}
        lost = [s for s in self._history.sent if s.number not in laid]
        assert not lost, f"decided, written down, and never laid before the trainer: {lost}"

    def _bounded(self) -> None:
        """(3) No loop beyond its budget, counted from what was sent and not from what the agent remembers."""
        budgets = bounds(self._history.scenario.pack)
        begun = {(b.pod, b.number) for b in self._history.begun}
        # What a lost pod had only written down, before its ledger said so, was never done and is nobody's budget.
        real = [s for s in self._history.sent if s.pod == self._history.pods or (s.pod, s.number) in begun]
        real = [s for s in real if era(self._history, s.pod) == era(self._history, self._history.pods)]
        sent = [s for s in real if s.remedy != "undo"]
        for i, last in enumerate(sent):
            most, steps, _, once = budgets[last.kind]
            window = [s for s in sent[: i + 1] if s.kind == last.kind and last.step - s.step < steps]
            assert len(window) <= most, f"{len(window)} actions for {last.kind} in {steps} steps, {most} are allowed"
            same = [s for s in window if s.remedy == last.remedy]
            assert last.remedy not in once or len(same) <= 1, (
                f"{last.remedy} was sent {len(same)} times, once is allowed"
            )
        assert len(sent) <= 12, f"{len(sent)} actions: the run's budget is 12"
        decided = {s.action for s in self._history.sent}
        orders = [b for b in self._history.begun if b.procedure not in ("resume", "release")]
        assert all(b.action in decided for b in orders), f"something was carried out that nobody decided: {orders}"

    def _seen(self) -> None:
        """(6) Poison that was applied, and whose record was read, has led to an incident. (A lost pod's was not.)"""
        poisoned = [p for p in self._history.poisoned if p in self._heard]
        opened = [e for e in self._entries.values() if e.kind == EntryKind.INCIDENT and e.state == "open"]
        kinds = {e.data.get("incident_kind") for e in opened}
        assert not poisoned or "nonfinite" in kinds, f"poison was applied at {poisoned}, and the incidents are {kinds}"


def _counts(agent: Agent) -> dict[str, int]:
    state = agent.engine.state
    return {
        "incident_count": state.incident_count, "deeds": len(state.deeds), "closed": len(state.closed),
        "next_directive": state.next_directive, "trials": len(state.trials), "silence_count": state.silence_count,
    }  # fmt: skip
