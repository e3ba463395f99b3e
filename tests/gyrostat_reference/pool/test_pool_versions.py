from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gyrostat_reference.model import LoopMoE, Shape
from gyrostat_reference.pool import Faults, RolloutPool, SessionLost
from gyrostat_reference.rollout import PolicyDestroyed

OpenPool = Callable[..., RolloutPool]


def spoilt(policy: LoopMoE) -> dict[str, torch.Tensor]:
    """Its weights, of which one is NaN."""
    weights = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    weights["norm.weight"][0] = torch.nan
    return weights


def test_the_newest_policy_is_used(lasting_pool: RolloutPool, batch: Any, policies: list[LoopMoE]) -> None:
    """Each roll-out draws from what was published last, also where a version comes again after a rollback."""
    for version, policy in ((7, policies[0]), (8, policies[1]), (7, policies[1]), (7, policies[0])):
        lasting_pool.publish(version, policy.state_dict())
        found = lasting_pool.roll_out(*batch)
        assert batch.agrees(found, policy)
        assert found.versions.tolist() == [version] * 6


def test_a_stale_worker_says_which_version_it_used(
    open_pool: OpenPool, batch: Any, policies: list[LoopMoE], tmp_path: Path
) -> None:
    """An engine that is left behind draws from the old policy, says so, and keeps no more than that one on disk."""
    pool = open_pool(1, faults=Faults(frozen_version=2))
    for version, policy in ((2, policies[0]), (5, policies[1]), (9, policies[1])):
        pool.publish(version, policy.state_dict())
        found = pool.roll_out(*batch)
        assert batch.agrees(found, policies[0])
        assert found.versions.tolist() == [2] * 6
        assert pool.measures()["policy_lag"] == version - 2
    assert len(list(tmp_path.glob("*/*.safetensors"))) == 2


def test_staleness_can_be_one_workers_own() -> None:
    """Where another place is the stale one, a worker keeps up."""
    faults = Faults(frozen_version=2, stale_workers=(1,))
    assert [faults.newest_for(place) for place in range(3)] == [None, 2, None]
    assert Faults(frozen_version=2).newest_for(0) == 2
    assert Faults().newest_for(0) is None


def test_a_destroyed_policy_reaches_the_trainer(lasting_pool: RolloutPool, batch: Any, policy: LoopMoE) -> None:
    """Weights that are not finite are no worker's fault: nothing is retried, and sound weights mend it."""
    before, retries = lasting_pool.pids, lasting_pool.measures()["session_retries"]
    lasting_pool.publish(4, spoilt(policy))
    with pytest.raises(PolicyDestroyed, match=r"policy destroyed: version 4: norm.weight holds a value that is not"):
        lasting_pool.roll_out(*batch)
    lasting_pool.publish(5, policy.state_dict())
    assert batch.agrees(lasting_pool.roll_out(*batch), policy)
    assert lasting_pool.pids == before
    assert lasting_pool.measures()["session_retries"] == retries


def test_weights_of_another_model_end_with_the_reason(lasting_pool: RolloutPool, batch: Any, policy: LoopMoE) -> None:
    """A worker that cannot do its session says why, stays alive, and does the next one."""
    before, retries = lasting_pool.pids, lasting_pool.measures()["session_retries"]
    other = LoopMoE(Shape(width=8, heads=2, expert_width=8, experts=4, chosen=2, loops=2))
    lasting_pool.publish(1, other.state_dict())
    with pytest.raises(SessionLost, match=r"(?s)failed 4 times.*size mismatch"):
        lasting_pool.roll_out(*batch)
    lasting_pool.publish(2, policy.state_dict())
    assert batch.agrees(lasting_pool.roll_out(*batch), policy)
    assert lasting_pool.pids == before
    assert lasting_pool.measures()["session_retries"] >= retries + 4
