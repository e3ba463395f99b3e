from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gyrostat_reference.model import LoopMoE
from gyrostat_reference.pool import Blow, Faults, RolloutPool, SessionLost, WorkersLost

OpenPool = Callable[..., RolloutPool]


def test_a_session_over_its_budget_is_named(open_pool: OpenPool, batch: Any, policy: LoopMoE) -> None:
    """Which session, which item, why and how often are told, and the pool can be used again."""
    blows = tuple(Blow(0, 1, how, incarnation) for incarnation, how in enumerate(("kill", "stop", "hang"), 1))
    pool = open_pool(1, faults=Faults(blows=blows), handovers=0, silence=1.5, round_deadline=3.0)
    pool.publish(1, policy.state_dict())
    for why in ("SIGKILL", "no heartbeat for 1.5 s", "a round took more than 3 s"):
        with pytest.raises(SessionLost, match=r"session 0 \(item 10\) failed 1 times.*budget of 0") as lost:
            pool.roll_out(*batch)
        assert (lost.value.session, lost.value.item, lost.value.times) == (0, 10, 1)
        assert why in lost.value.why
    assert pool.measures()["session_retries"] == 3


def test_a_crash_at_start_is_no_fork_bomb(
    open_pool: OpenPool, batch: Any, policy: LoopMoE, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Workers that cannot start are given up after a few, with their last words."""
    broken = tmp_path / "broken" / "torch.py"
    broken.parent.mkdir()
    broken.write_text("raise ImportError('libtorch is gone')")
    monkeypatch.setenv("PYTHONPATH", str(broken.parent))
    pool = open_pool(2, restarts=3)
    pool.publish(1, policy.state_dict())
    with pytest.raises(WorkersLost, match=r"(?s)3 rollout workers were replaced.*exit status 1.*libtorch is gone"):
        pool.roll_out(*batch)
    assert pool.measures() == {
        "rollout_workers": 0, "rollout_worker_restarts": 3, "sessions_moved": 0, "session_retries": 0,
    }  # fmt: skip


def test_a_worker_that_never_gets_ready_is_given_up(
    open_pool: OpenPool, batch: Any, policy: LoopMoE, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A start that hangs has a deadline too."""
    hanging = tmp_path / "hanging" / "torch.py"
    hanging.parent.mkdir()
    hanging.write_text("import threading; threading.Event().wait()")
    monkeypatch.setenv("PYTHONPATH", str(hanging.parent))
    pool = open_pool(1, restarts=1, start_deadline=0.3)
    pool.publish(1, policy.state_dict())
    with pytest.raises(WorkersLost, match=r"not ready within 0.3 s"):
        pool.roll_out(*batch)


def test_an_interpreter_that_cannot_be_started_is_said(
    open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The system's refusal is told as it is, and nothing is left behind."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "no-python"))
    with pytest.raises(WorkersLost, match=r"cannot be started: .*no-python"):
        open_pool(1)
    assert list(tmp_path.iterdir()) == []
