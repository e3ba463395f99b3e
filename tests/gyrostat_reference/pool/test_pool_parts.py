import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import torch

from gyrostat_reference import task
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.pool.docket import Docket
from gyrostat_reference.pool.errors import SessionLost
from gyrostat_reference.pool.session import Round, Session, begin, decode_round, decode_session, play
from gyrostat_reference.pool.weights import Policy, PolicyFolder, load_policy
from gyrostat_reference.pool.wire import WireError


@pytest.fixture
def session(batch: Any) -> Session:
    """A session before its first round."""
    return begin(batch.prompts[0], 4, 10, batch.seeds[0], 1.0)


def played(session: Session, policy: LoopMoE, rounds: int) -> Session:
    for _ in range(rounds):
        session = session.after(play(session, Policy(1, policy), None))
    return session


@pytest.mark.parametrize("rounds", range(task.ANSWER_LENGTH))
def test_a_session_goes_on_from_any_round(session: Session, policy: LoopMoE, rounds: int) -> None:
    """What goes over the line after any round is enough to end the session as if it had never moved."""
    moved = decode_session(played(session, policy, rounds).encode())
    ended = played(moved, policy, task.ANSWER_LENGTH - rounds)
    alone = played(session, policy, task.ANSWER_LENGTH)
    assert torch.equal(ended.sequences, alone.sequences)
    assert torch.equal(ended.random, alone.random)
    assert torch.equal(ended.log_probs, alone.log_probs[:, rounds:])
    assert ended.rewards is not None
    assert played(session, policy, rounds).rewards is None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"tokens": "AAAA"}, id="tokens cut short"),
        pytest.param({"random": ""}, id="no generator"),
        pytest.param({"version": None}, id="no version"),
        pytest.param({"rewards": 1.0}, id="rewards no tensor"),
    ],
)
def test_a_round_that_is_none_is_refused(session: Session, policy: LoopMoE, change: dict[str, object]) -> None:
    """A worker's nonsense raises before it gets into a session."""
    raw = play(session, Policy(1, policy), None).encode()
    assert isinstance(decode_round(raw, 4), Round)
    with pytest.raises(WireError):
        decode_round({**raw, **change}, 4)
    strange = played(session, policy, 1).rounds[0]._replace(tokens=torch.full((4, 1), task.VOCABULARY))
    with pytest.raises(WireError, match="vocabulary"):
        decode_round(strange.encode(), 4)


def test_the_docket_hands_on_what_was_finished(session: Session, policy: LoopMoE) -> None:
    """A session that comes back goes out first, with its rounds; within the budget, and counted."""
    docket = Docket([session, session], handovers=1)
    assert [docket.take(100), docket.take(200), docket.take(300)] == [0, 1, None]
    docket.add(1, play(session, Policy(1, policy), None), 0.5)
    docket.give_back(1, "it died")
    assert (docket.take(200), docket.moved, docket.retries) == (1, 0, 1)
    assert docket.sessions[1].sequences.shape[1] == task.PROMPT_LENGTH + 1
    with pytest.raises(
        SessionLost,
        match=r"session 1 \(item 10\) failed 2 times, over its budget of 1 hand-overs; the last time: it hung",
    ):
        docket.give_back(1, "it hung")
    docket.give_back(0, "it died")
    assert (docket.take(300), docket.moved, docket.done) == (0, 1, False)


def test_policies_are_private_and_few(policies: list[LoopMoE], tmp_path: Path) -> None:
    """Nobody else may read them, nothing unfinished lies beside them, old ones go, and all go in the end."""
    folder = PolicyFolder(tmp_path)
    for version, policy in ((1, policies[0]), (2, policies[1])):
        folder.publish(version, policy.state_dict())
    (path,) = folder.path.iterdir()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    loaded = load_policy(path, policies[1].shape)
    assert loaded.version == 2
    assert all(torch.equal(t, loaded.model.state_dict()[n]) for n, t in policies[1].state_dict().items())
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_is_left_alone(policy: LoopMoE, tmp_path: Path) -> None:
    """A second trainer on the machine does not take the first one's policies away, nor follow a link."""
    first = PolicyFolder(tmp_path)
    first.publish(1, policy.state_dict())
    (tmp_path / "precious").mkdir()
    (tmp_path / "gyrostat-policies-link").symlink_to(tmp_path / "precious")
    second = PolicyFolder(tmp_path)
    assert first.newest.path.exists()
    assert (tmp_path / "precious").exists()
    first.close()
    second.close()


def test_a_full_disk_is_said_and_leaves_nothing(
    policy: LoopMoE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trainer learns of it, the old policy stays, and no half file fills the disk further."""
    folder = PolicyFolder(tmp_path)
    folder.publish(1, policy.state_dict())

    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        patch.setattr(Path, "rename", full)
        with pytest.raises(OSError, match="No space"):
            folder.publish(2, policy.state_dict())
    assert [path.name for path in folder.path.iterdir()] == ["policy-1-1.safetensors"]
    assert folder.newest.version == 1
    folder.close()
