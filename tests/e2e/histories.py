"""What a journal must say once a run is over, whoever was killed on the way."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gyrostat.wire import Ack, Hello, Record
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.recovery import same
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Answer, Batch, Ended, Item


def entries(journal: Path, *kinds: str) -> list[Entry]:
    """The entries so far, of some kinds; none where the journal is not begun yet."""
    with opened(journal) as reader:
        return list(reader.entries(kinds=kinds)) if reader else []


def items(journal: Path) -> list[Item]:
    """All that was ever told, in the order read."""
    with opened(journal) as reader:
        batches = [t.given for t in reader.turns() if isinstance(t.given, Batch)] if reader else []
    return [item for batch in batches for item in batch.items]


@contextmanager
def opened(journal: Path) -> Iterator[Journal | None]:
    """A reader; None where there is no journal, or an agent is just making it."""
    try:
        reader = Journal(str(journal), readonly=True)
    except JournalError:
        yield None
        return
    try:
        yield reader
    finally:
        reader.close()


def states(journal: Path, kind: str) -> dict[str, str]:
    """The last state of each subject of one kind."""
    return {e.subject: e.state for e in entries(journal, kind)}


def check_chain_and_replay(journal: Path) -> None:
    """The chain is whole, and the inputs, fed again, give the same entries."""
    reader = Journal(str(journal), readonly=True)
    verdict = reader.verify()
    assert verdict.ok, verdict
    engine = Engine()
    for turn in reader.turns():
        assert same(engine.feed(turn.given), turn.entries), f"turn {turn.seq}, fed again, decides otherwise"
    reader.close()


def check_nothing_twice(journal: Path) -> None:
    """No process answered a directive with applied twice, and no action was sent twice.

    A restart has two answers: the supervisor's, who began the trainer anew, and the trainer's, who resumed.
    """
    answers = [i for i in items(journal) if isinstance(i, Answer) and i.ack.result == Ack.APPLIED]
    applied = Counter((i.role, i.rank, i.ack.number) for i in answers)
    sent = Counter(e.subject for e in entries(journal, "action") if e.state == "sent")
    assert applied and max(applied.values()) == 1, f"applied twice: {applied}"
    assert sent and max(sent.values()) == 1, f"sent twice: {sent}"


def check_nothing_lost(journal: Path) -> dict[str, list[int]]:
    """Each life's frames were read once and in order, none left out; returns the steps that each life recorded.

    Of the frames only a schema leaves no item, and one can stand before a record alone.
    """
    last: dict[str, int] = {}
    steps: dict[str, list[int]] = {}
    for item in items(journal):
        if isinstance(item, (Hello, Answer, Ended)):
            last[item.incarnation] = last.get(item.incarnation, 0) + 1
        elif isinstance(item, Record):
            due = last.get(item.incarnation, 0) + 1
            assert item.sequence in (due, due + 1), (
                f"frame {item.sequence} of {item.incarnation} came where {due} was due"
            )
            last[item.incarnation] = item.sequence
            steps.setdefault(item.incarnation, []).append(item.step)
    assert not [e for e in entries(journal, "source") if "missing" in e.text]
    return steps
