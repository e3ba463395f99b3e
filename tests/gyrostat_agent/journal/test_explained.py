"""``gyrostat rules explain`` on a run whose old inputs were let go: from what is kept, not never again."""

import os

import pytest
from kept_runs import bitten, written

from gyrostat.wire import RunDirectory
from gyrostat_agent.cli.options import builtin
from gyrostat_agent.explain.account import account
from gyrostat_rules.inputs import Pack


@pytest.mark.parametrize("pack", [None, Pack(0.0, "digest", builtin())], ids=["the run's rules", "another pack's"])
def test_a_rule_is_explained_from_what_is_kept(tmp_path: os.PathLike[str], pack: Pack | None) -> None:
    """The newest stretch is fed again, with the rules it had or others, and says what was seen there."""
    path = os.path.join(tmp_path, "agent", "journal.db")
    os.makedirs(os.path.dirname(path), mode=0o700)
    journal, retention = written(path, 600, (590,), most=1)
    assert bitten(retention) > 0
    journal.close()
    told = account(RunDirectory(os.fspath(tmp_path)), "NonFinitePoison", None, pack)
    assert told.differs == 0
    assert [turn.word for turn in told.witness.turns if turn.step in (590, 591)]
    assert told.witness.first > 1
