"""Directives for the job: each answered once, also by a later life; and the pointer that goes before a restart."""

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from gyrostat.wire import Ack, Directive, Hello, Resume, RunDirectory
from gyrostat.wire.layout import shared_resume
from gyrostat_agent import ledgerfile
from gyrostat_agent.actuators.directivefiles import DirectiveFiles
from gyrostat_agent.kubernetes import pointer
from gyrostat_agent.kubernetes.course import Over
from gyrostat_agent.kubernetes.orders import Orders
from gyrostat_agent.rundir import prepare
from gyrostat_agent.sources.recordfiles import RecordFiles
from gyrostat_rules.inputs import Answer


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return prepare(str(tmp_path / "run"))


def lay(where: RunDirectory, number: int, /, **changed: Any) -> Directive:
    """As the agent lays it."""
    life = changed.get("incarnation") or a_life_of(where)
    told = Directive(number, "run", "supervisor", life, 0, f"i0001.{number}", time.time() + 60.0,
                     procedure="restart")._replace(**changed)  # fmt: skip
    assert DirectiveFiles(where).carry_out(told.action, {"directive": told.encode().decode()}) is None
    return told


def a_life_of(where: RunDirectory) -> str:
    """The first that ever listened there; where nobody has yet, one that listens and is gone again."""
    lives = Path(where.agent) / "job-lives"
    if not lives.exists():
        Orders(where, "run").close()
    return lives.read_text(encoding="ascii").split()[0]


def answers(run: RunDirectory) -> list[Ack]:
    source = RecordFiles(run, {})
    found = [item.ack for item in source.drain() if isinstance(item, Answer)]
    source.close()
    return found


def orders(run: RunDirectory) -> Orders:
    found = Orders(run, "run")
    found.offer(("restart",))
    return found


def test_an_order_to_an_earlier_life_still_holds(run: RunDirectory) -> None:
    """The agent died between laying it and obeying it: the job is the same."""
    told = lay(run, 1)
    ours = orders(run)
    assert list(ours.new()) == [told]
    ours.conclude(told, Over(True, "begun again"))
    assert list(ours.new()) == [] and [(a.number, a.result) for a in answers(run)] == [(1, Ack.APPLIED)]


def test_what_failed_is_not_begun_by_a_later_life(run: RunDirectory) -> None:
    """Everybody has decided otherwise since: a right that came late must not set it off."""
    told = lay(run, 1)
    first = orders(run)
    list(first.new())
    first.conclude(told, Over(False, "a right is missing"))
    assert list(orders(run).new()) == []
    assert [(a.result, a.reason) for a in answers(run)] == [(Ack.FAILED, "a right is missing")]


def test_what_nobody_knows_is_neither_answered_nor_repeated(run: RunDirectory) -> None:
    """No answer is what the rules take for unknown."""
    told = lay(run, 1)
    ours = orders(run)
    list(ours.new())
    ours.leave_open(told)
    assert list(ours.new()) == [] and list(orders(run).new()) == [] and answers(run) == []


@pytest.mark.parametrize(
    ("changed", "word"),
    [({"run": "other"}, "of run"), ({"procedure": "explode"}, "not offered"), ({"expires_at": 1.0}, "expired")],
    ids=["another run", "not offered", "expired"],
)
def test_what_is_not_to_be_obeyed_is_refused_with_its_reason(
    run: RunDirectory, changed: dict[str, Any], word: str
) -> None:
    """As a trainer refuses it."""
    lay(run, 1, **changed)
    assert list(orders(run).new()) == []
    ((result, reason),) = [(a.result, a.reason) for a in answers(run)]
    assert result == Ack.REFUSED and word in reason


def test_a_directive_to_the_trainer_is_not_ours(run: RunDirectory) -> None:
    """Passed over, without an answer; what comes behind it is read."""
    lay(run, 1, role="trainer", procedure="rollback")
    told = lay(run, 2)
    assert list(orders(run).new()) == [told] and answers(run) == []


# -- the pointer ---------------------------------------------------------------------------------------


def chosen(run: RunDirectory, tmp_path: Path, number: int = 3) -> tuple[str, str]:
    """A ledger beside a checkpoint, and a resume file for it."""
    root = tmp_path / "checkpoints"
    checkpoint = root / "gyrostat-pins" / "step-10"
    checkpoint.mkdir(parents=True, mode=0o700)
    root.chmod(0o700)
    ledgerfile.write(str(root), {"version": 1}, "1:a")
    told = Resume(number, "run", str(checkpoint), "xxh3_128:ab", 10, time.time() + 60.0)
    path = Path(run.resume)
    path.write_bytes(told.encode())
    path.chmod(0o600)
    return str(root), str(checkpoint)


def test_the_pointer_lies_where_the_next_pod_looks(run: RunDirectory, tmp_path: Path) -> None:
    """Beside the ledger, word for word, ours alone."""
    root, checkpoint = chosen(run, tmp_path)
    assert pointer.lay(run, 3, checkpoint) == shared_resume(root)
    assert Path(shared_resume(root)).read_bytes() == Path(run.resume).read_bytes()
    assert stat.S_IMODE(os.stat(shared_resume(root)).st_mode) == 0o600
    pointer.take_back(shared_resume(root), 2)
    assert os.path.exists(shared_resume(root)), "another directive's"
    pointer.take_back(shared_resume(root), 3)
    assert not os.path.exists(shared_resume(root))


@pytest.mark.parametrize("lacking", ["ledger", "number", "room"])
def test_no_restart_without_a_pointer(run: RunDirectory, tmp_path: Path, lacking: str) -> None:
    """The trainer would begin from its own newest checkpoint, which nobody has certified."""
    root, checkpoint = chosen(run, tmp_path)
    if lacking == "ledger":
        os.unlink(ledgerfile.path_of(root))
    if lacking == "room":
        os.mkdir(shared_resume(root) + ".draft")
    with pytest.raises(pointer.PointerError):
        pointer.lay(run, 4 if lacking == "number" else 3, checkpoint)


def test_what_another_supervisor_is_told_is_not_done_to_the_job(run: RunDirectory) -> None:
    """``gyrostat run`` in the same pod restarts its own trainer: the job is not begun anew as well."""
    a_life_of(run)
    lay(run, 1, incarnation="0123456789abcdef")
    ours = orders(run)
    assert list(ours.new()) == [] and answers(run) == []
    told = lay(run, 2)
    assert list(ours.new()) == [told]


def test_lives_that_cannot_be_remembered_cost_the_earlier_ones_alone(run: RunDirectory) -> None:
    """A folder stands in the way of the file: what this life is told is obeyed."""
    (Path(run.agent) / "job-lives").mkdir()
    ours = orders(run)
    (hello,) = [i for i in RecordFiles(run, {}).drain() if isinstance(i, Hello)]
    told = lay(run, 1, incarnation=hello.incarnation)
    assert list(ours.new()) == [told]
