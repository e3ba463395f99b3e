"""Recovery: an engine as the last one stood, or none that is trusted."""

import os
import sqlite3

import pytest
from agent_runs import NAN, Bench

from gyrostat_agent.errors import SetupError
from gyrostat_agent.journal import JournalError
from gyrostat_agent.recovery import recover
from gyrostat_agent.rundir import existing
from gyrostat_rules.inputs import Tick


def lived(bench: Bench, snapshot: bool) -> bytes:
    """A run with an incident, its agent gone; the state as it was."""
    control = bench.control()
    agent = bench.agent()
    bench.skip_twice(1)
    agent.once()
    control.apply(3)
    for step in range(3, 20):
        bench.tell(step)
    agent.once()
    state = agent.engine.snapshot()
    if snapshot:
        agent.close()
    else:
        agent.abandon()
    return state


def change(bench: Bench, statement: str) -> None:
    db = sqlite3.connect(os.path.join(bench.run.agent, "journal.db"))
    with db:
        db.execute(statement)
    db.close()


@pytest.mark.parametrize("snapshot", [False, True], ids=["from the turns", "from a snapshot"])
def test_it_stands_where_the_last_one_stood(bench: Bench, snapshot: bool) -> None:
    """The same state to the byte, by either way, and nothing to be distrusted."""
    state = lived(bench, snapshot)
    again = recover(bench.run)
    again.journal.close()
    assert again.engine.snapshot() == state
    assert (again.fresh, again.distrust, again.lost) == (False, "", False)


def test_a_first_start(bench: Bench) -> None:
    """Fresh, and trusted."""
    first = recover(bench.run)
    first.journal.close()
    assert (first.fresh, first.distrust, first.lost) == (True, "", False)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE turns SET hash = x'00' WHERE seq = 3",
        "UPDATE entries SET body = replace(body, 'nan', 'NaN')",
        "DELETE FROM turns WHERE seq = 3",
        "UPDATE turns SET given = x'7b' WHERE seq = 3",
        "DELETE FROM turns WHERE seq = (SELECT max(seq) FROM turns)",
    ],
    ids=["a hash", "an entry", "a turn gone", "an input", "the last turn gone"],
)
def test_a_journal_that_somebody_changed_is_distrusted(bench: Bench, statement: str) -> None:
    """With the turn and why; no number of an entry comes twice."""
    lived(bench, False)
    change(bench, statement)
    again = recover(bench.run)
    again.journal.close()
    assert again.distrust and not again.fresh
    assert again.engine.feed(Tick(bench.now + 1e6)) is not None


def test_a_snapshot_that_somebody_changed_is_not_believed(bench: Bench) -> None:
    """The turns tell the state as well, and they are whole."""
    state = lived(bench, True)
    change(bench, "UPDATE snapshots SET state = x'7b7d'")
    again = recover(bench.run)
    again.journal.close()
    assert again.engine.snapshot() == state or again.distrust


def test_another_programs_database_is_not_touched(bench: Bench) -> None:
    """Raises, naming the file; the loop says so and tries again."""
    path = os.path.join(bench.run.agent, "journal.db")
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(JournalError, match="another program's database"):
        recover(bench.run)


def test_a_nan_is_the_same_again(bench: Bench) -> None:
    """A NaN differs from itself; a replay must not take that for another decision."""
    agent = bench.agent()
    bench.tell(1, NAN)
    agent.once()
    agent.abandon()
    again = recover(bench.run)
    again.journal.close()
    assert again.distrust == ""


def test_looking_needs_a_run(bench: Bench) -> None:
    """Before the first agent there is nothing to look at."""
    with pytest.raises(SetupError):
        existing(bench.run.path)
