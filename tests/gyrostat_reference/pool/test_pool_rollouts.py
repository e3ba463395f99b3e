import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gyrostat_reference import task
from gyrostat_reference.faults import verify
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.pool import Blow, Faults, RolloutPool

OpenPool = Callable[..., RolloutPool]


def wait_for_all(pool: RolloutPool, batch: Any, workers: int) -> None:
    """Roll out single prompts until every worker is ready."""
    until = time.monotonic() + 60
    while pool.measures()["rollout_workers"] < workers:
        assert time.monotonic() < until, "the workers are not ready"
        pool.roll_out(*batch.cut(1))


def test_completions_do_not_depend_on_the_workers(lasting_pool: RolloutPool, batch: Any, policy: LoopMoE) -> None:
    """The same policy and seeds give the completions that one process alone would draw, bit for bit."""
    lasting_pool.publish(1, policy.state_dict())
    wait_for_all(lasting_pool, batch, 2)
    before = lasting_pool.measures()
    found = lasting_pool.roll_out(*batch)
    assert batch.agrees(found, policy)
    assert found.sequences.shape == (6 * 4, task.LENGTH)
    assert found.versions.tolist() == [1] * 6
    after = lasting_pool.measures()
    assert 0 < after.pop("session_round_p99") < 30
    assert after.pop("policy_lag") == 0
    assert after == {name: before[name] for name in after}


def test_a_session_goes_on_at_its_last_finished_round(open_pool: OpenPool, batch: Any, policy: LoopMoE) -> None:
    """Workers that are killed, stopped and hang in the middle of a session change no bit of any completion.

    Each breaks at its fourth round, a session has four: each breaks at another one if no finished round is lost.
    """
    blows = tuple(Blow(0, 4, how, incarnation) for incarnation, how in enumerate(("kill", "stop", "hang"), 1))
    pool = open_pool(1, faults=Faults(blows=blows), silence=2.5, round_deadline=4.0)
    pool.publish(1, policy.state_dict())
    three = batch.cut(3)
    assert three.agrees(pool.roll_out(*three), policy)
    measures = pool.measures()
    assert measures["sessions_moved"] == 3
    assert measures["session_retries"] == measures["rollout_worker_restarts"] == 3


def test_a_worker_that_is_stopped_from_outside_is_replaced(open_pool: OpenPool, batch: Any, policy: LoopMoE) -> None:
    """One of two workers falls silent: the other goes on, a new one takes its place, no completion changes."""
    pool = open_pool(2, silence=2.5)
    pool.publish(1, policy.state_dict())
    wait_for_all(pool, batch, 2)
    stopped, other = pool.pids
    os.kill(stopped, signal.SIGSTOP)
    assert batch.agrees(pool.roll_out(*batch), policy)
    assert pool.pids[0] != stopped
    assert pool.pids[1] == other
    measures = pool.measures()
    assert measures["session_retries"] == measures["sessions_moved"] == measures["rollout_worker_restarts"] == 1


def test_rewards_come_from_the_environment(lasting_pool: RolloutPool, batch: Any, policy: LoopMoE) -> None:
    """The poisoned item's infinite rewards come over the line as they are, the others' are the task's."""
    lasting_pool.publish(1, policy.state_dict())
    found = lasting_pool.roll_out(*batch)
    items = torch.tensor(batch.items).repeat_interleave(4)
    assert torch.equal(found.rewards, verify(found.sequences, items, 12))
    assert found.rewards[items == 12].isinf().all()


def test_temperature_is_the_policys(lasting_pool: RolloutPool, batch: Any, policy: LoopMoE) -> None:
    """Nearly cold, every completion of a group is the likeliest one."""
    lasting_pool.publish(1, policy.state_dict())
    sequences = lasting_pool.roll_out(*batch, temperature=1e-4).sequences.view(6, 4, -1)
    assert (sequences == sequences[:, :1]).all()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"items": [1]}, "one of each", id="items are missing"),
        pytest.param({"seeds": [2**63] * 6}, "63 bits", id="seed too large"),
        pytest.param({"temperature": 0.0}, "temperature", id="temperature 0"),
        pytest.param({"temperature": float("nan")}, "temperature", id="temperature nan"),
    ],
)
def test_arguments_that_cannot_be_are_refused(
    lasting_pool: RolloutPool, batch: Any, policy: LoopMoE, change: dict[str, Any], reason: str
) -> None:
    """A wrong argument is said to be one, before any worker sees it."""
    lasting_pool.publish(1, policy.state_dict())
    with pytest.raises(ValueError, match=reason):
        lasting_pool.roll_out(**{**batch._asdict(), **change})


def test_a_pool_needs_a_policy_and_must_be_open(open_pool: OpenPool, batch: Any) -> None:
    """Rolling out too early or too late says so, and does not wait for ever."""
    pool = open_pool(1)
    with pytest.raises(ValueError, match="publish one first"):
        pool.roll_out(*batch)
    pool.close()
    pool.close()
    with pytest.raises(ValueError, match="closed"):
        pool.roll_out(*batch)
    with pytest.raises(ValueError, match="at least one"):
        open_pool(0)
