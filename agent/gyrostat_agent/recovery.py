"""Recovery: from the journal to an engine that stands where the last one stood, and no intent left undecided.

The same code at the first start and after every crash. The snapshot is a short cut; the turns behind it are fed
again and must give the same entries, else what is on the disk does not add up and the run is only observed.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gyrostat.wire import RunDirectory
from gyrostat.wire.rights import read_trusted
from gyrostat_agent import ledgerfile
from gyrostat_agent.actuators.directivefiles import DirectiveFiles
from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import Journal, JournalError, encode_entry
from gyrostat_rules import ledger
from gyrostat_rules.arming import SHADOW, is_led, may_act
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Delivery, DeliveryWord
from gyrostat_rules.outcome import in_flight
from gyrostat_rules.state import State


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
        engine = rebuilt(journal, believe_snapshot=verdict.ok, below=verdict.broken_at)
    except (DistrustError, JournalError, ValueError, TypeError) as error:
        engine, distrust, lost = Engine(), distrust or str(error), True
    if distrust and distrust == _trusted(run):
        distrust = ""
    engine.state.turn = verdict.turns  # entries are numbered by turn, and no number comes twice
    trainer = engine.state.trainer()
    # By what is known and not by the number of turns: an agent that died before the first Hello has read no ledger.
    fresh = not distrust and (trainer is None or not trainer.incarnation)
    return Recovered(journal, engine, fresh, distrust, lost)


def doubt(journal: Journal, state: State, root: str) -> str:
    """Why the ledger beside the checkpoints does not go with this journal, or ''; where there is none, it is written.

    One that a newer agent wrote must not be overwritten, and one that knows of turns which this journal lacks says that
    the run directory is an older copy: budgets have been used up and numbers given that nobody here remembers.
    """
    found, why = ledgerfile.read(root)
    if found is None:
        return why
    if why := ledger.doubt(found):
        return f"{ledgerfile.path_of(root)} cannot be read: {why}"
    if ledgerfile.head_of(found) == state.taken_up != "":  # another pod's, which this journal begins with
        return ""
    if (head := next((h for h in ledgerfile.heads_of(found) if not journal.passes(h)), "")) == "":
        return ""
    return (
        f"{ledgerfile.path_of(root)} was written at turn {head.partition(':')[0][:20]} of a journal that is not here: "
        "this run directory is an older copy, or another one was used meanwhile"
    )


def trust(run: RunDirectory, reason: str) -> None:
    """Remember what a person has looked into: the journal that is broken there cannot say it at the next start."""
    with contextlib.suppress(OSError), open(os.path.join(run.agent, "trusted"), "w", encoding="utf-8") as out:
        out.write(reason)


def _trusted(run: RunDirectory) -> str:
    try:
        return read_trusted(os.path.join(run.agent, "trusted"), 1 << 16).decode("utf-8", "replace")
    except OSError:
        return ""


def settle(
    engine: Engine, directives: DirectiveFiles, now: float, spoilt: Callable[[str, str], str], *, paused: bool = False
) -> list[Delivery]:
    """Carry out again, by name, every intent that has no answer and is still valid. What is there already, is.

    Not where people have said meanwhile that nothing is to be done, by mode or ``paused``: such an intent runs out
    unanswered, but for an undo. Nor to a checkpoint that is ``spoilt(path, digest)`` by now, which says how, or ''.
    """
    failed: list[Delivery | None] = []
    settings = engine.state.settings
    if settings.distrust:
        return []
    for incident, action in in_flight(engine.state):
        undo = action.remedy == "undo"
        stands = (is_led(settings, incident) and (undo or not paused)) or (settings.mode == SHADOW and undo)
        if now >= action.expires_at or not action.orders or not stands:
            continue
        path = action.arguments.get("checkpoint")
        if path and (why := spoilt(path, action.arguments["digest"])):
            failed.append(Delivery(action.id, DeliveryWord.FAILED, f"the checkpoint is no longer fit: {why}"))
        else:
            failed.append(directives.carry_out(action.id, action.orders))
    if engine.state.release_orders and may_act(settings):
        directives.carry_out("release", engine.state.release_orders)
    return [f for f in failed if f is not None]


def rebuilt(journal: Journal, believe_snapshot: bool, below: int = 0) -> Engine:
    """An engine as the last one stood; raises DistrustError where a replay differs, JournalError where none is.

    Where no snapshot is to be believed, because the chain is broken at turn ``below``, and the first inputs have been
    let go, one from before the break will do: the chain up to there proves it.
    """
    engine, seq = Engine(), 0
    if believe_snapshot:
        engine, seq = _restored(journal.snapshot())
    elif journal.gone():
        engine, seq = _restored(journal.snapshot(below))
    for turn in journal.turns(after=seq):
        if not same(engine.feed(turn.given), turn.entries):
            raise DistrustError(
                f"turn {turn.seq} of the journal, fed again, decides otherwise (another version wrote it?)"
            )
    return engine


def _restored(found: tuple[int, bytes] | None) -> tuple[Engine, int]:
    """From a snapshot; from nothing where there is none, or another version's that this one cannot read."""
    try:
        return (Engine.restore(found[1]), found[0]) if found else (Engine(), 0)
    except (ValueError, TypeError):
        return Engine(), 0


def same(left: Sequence[Entry], right: Sequence[Entry]) -> bool:
    """True where two lists of entries say the same, to the last fact; as written, where a NaN equals itself."""
    return list(map(encode_entry, left)) == list(map(encode_entry, right))
