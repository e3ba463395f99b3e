"""Recovery: from the journal to an engine that stands where the last one stood, and no intent left undecided.

The same code at the first start and after every crash. The snapshot is a short cut; the turns behind it are fed
again and must give the same entries, else what is on the disk does not add up and the run is only observed.
"""

import os
from typing import NamedTuple

from gyrostat.wire import RunDirectory
from gyrostat_agent.actuators.directivefiles import DirectiveFiles
from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Delivery
from gyrostat_rules.outcome import in_flight


class Recovered(NamedTuple):
    """The journal, the engine as it stood, whether there was any history, and why it is not to be trusted, or ''.

    ``lost``: the engine could not be rebuilt and knows nothing of the run.
    """

    journal: Journal
    engine: Engine
    fresh: bool
    distrust: str
    lost: bool = False


def recover(run: RunDirectory) -> Recovered:
    """Open the journal and bring an engine up to it; raises JournalError where it cannot be opened."""
    journal = Journal(os.path.join(run.agent, "journal.db"))
    verdict = journal.verify()
    distrust = "" if verdict.ok else f"the journal's chain is broken at turn {verdict.broken_at}: {verdict.why}"
    lost = False
    try:
        engine = _rebuild(journal, believe_snapshot=verdict.ok)
    except (DistrustError, JournalError, ValueError, TypeError) as error:
        engine, distrust, lost = Engine(), distrust or str(error), True
    engine.state.turn = verdict.turns  # entries are numbered by turn, and no number comes twice
    trainer = engine.state.trainer()
    # By what is known and not by the number of turns: an agent that died before the first Hello has read no ledger.
    fresh = not distrust and (trainer is None or not trainer.incarnation)
    return Recovered(journal, engine, fresh, distrust, lost)


def settle(engine: Engine, directives: DirectiveFiles, now: float) -> list[Delivery]:
    """Carry out again, by name, every intent that has no answer and is still valid. What is there already, is.

    Not where people have said meanwhile that nothing is to be done: such an intent runs out unanswered.
    """
    failed = []
    if engine.state.settings.mode != "act" or engine.state.settings.distrust:
        return []
    for _, action in in_flight(engine.state):
        if now < action.expires_at and action.orders:
            failed.append(directives.carry_out(action.id, action.orders))
    if engine.state.release_orders:
        directives.carry_out("release", engine.state.release_orders)
    return [f for f in failed if f is not None]


def _rebuild(journal: Journal, believe_snapshot: bool) -> Engine:
    """An engine as the last one stood; raises DistrustError where a replay differs, JournalError where none is."""
    engine, seq = _restored(journal) if believe_snapshot else (Engine(), 0)
    for turn in journal.turns(after=seq):
        if not same(engine.feed(turn.given), turn.entries):
            raise DistrustError(
                f"turn {turn.seq} of the journal, fed again, decides otherwise (another version wrote it?)"
            )
    return engine


def _restored(journal: Journal) -> tuple[Engine, int]:
    """From the newest snapshot; from nothing where there is none, or an older version's that this one cannot read."""
    found = journal.snapshot()
    try:
        return (Engine.restore(found[1]), found[0]) if found else (Engine(), 0)
    except (ValueError, TypeError):
        return Engine(), 0


def same(left: "list[Entry] | tuple[Entry, ...]", right: "list[Entry] | tuple[Entry, ...]") -> bool:
    """True where two lists of entries say the same. Compared as written: a NaN equals itself there."""
    return len(left) == len(right) and all(
        (a.id, a.kind, a.subject, a.state, a.step, a.text) == (b.id, b.kind, b.subject, b.state, b.step, b.text)
        for a, b in zip(left, right, strict=True)
    )
