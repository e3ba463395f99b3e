import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gyrostat_reference.data import PromptData

FULL = pytest.mark.full
KINDS = [
    pytest.param(("ddp", 2), id="ddp-2"), pytest.param(("fsdp2", 2), id="fsdp2-2"),
    pytest.param(("ddp", 4), id="ddp-4", marks=FULL), pytest.param(("fsdp2", 4), id="fsdp2-4", marks=FULL),
]  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def mended(request: pytest.FixtureRequest, trained_by: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Rank 1's second item of step 2 is poison; it is passed over, a knob is turned, the run goes back."""
    how, world = request.param
    poison = PromptData().item_at(16 + 1)
    rung = {"2": [1, "skip_data", [poison]], "6": [2, "lr_scale", 0.5], "7": [3, "rollback", "step-00000006"]}
    root = tmp_path_factory.mktemp("mended")
    return trained_by(world, root, steps=11, sharding=how, guard=True, poison_item=poison, rung=rung)


def test_ranks_begin_and_end_with_the_same_bits(mended: Any) -> None:
    """Skips, a turned knob and a rollback later, weights and moments are equal bit for bit over the ranks."""
    assert len({each["began"] for each in mended}) == 1
    assert len({each["ended"] for each in mended}) == 1
    assert mended[0]["began"] != mended[0]["ended"]


def test_one_rank_s_poison_is_skipped_by_all(mended: Any) -> None:
    """A step that is not finite on one rank is applied on none, until the item is passed over."""
    for each in mended:
        skipped = [note[3] for note in each["notes"]]
        assert skipped[:6] == [0, 1, 1, 1, 1, 1]  # the ranks wait together for the word on a step that is not finite
    assert {tuple(each["passed over"]) for each in mended} == {(PromptData().item_at(17),)}


def test_directives_land_at_the_same_step_on_every_rank(mended: Any) -> None:
    """Step, knob, segment and cursor are the same on every rank after each step; the rollback restores the knob."""
    notes = [[note[:3] + note[4:] for note in each["notes"]] for each in mended]
    assert all(each == notes[0] for each in notes)
    steps = [note[0] for note in notes[0]]
    assert steps == [*range(1, 11), *range(7, 12)]
    assert {each["directive"] for each in mended} == {3}
    assert [note[1] for note in notes[0]] == [1.0] * 8 + [0.5] * 2 + [1.0] * 5
    assert [note[2] for note in notes[0]] == [0] * 10 + [1] * 5


@pytest.mark.parametrize("how", ["fsdp2", pytest.param("ddp", marks=FULL)])
def test_resumed_ranks_are_those_that_never_stopped(how: str, trained_by: Any, tmp_path: Path) -> None:
    """From whole checkpoints and from sharded ones alike: weights, moments, data and each rank's generator."""
    unbroken = trained_by(2, tmp_path / "a", steps=5, sharding=how)
    kept = Path("checkpoints", "step-00000004")  # as a death in step 5 would leave it
    shutil.copytree(tmp_path / "a" / kept, tmp_path / "b" / kept)
    resumed = trained_by(2, tmp_path / "b", steps=5, sharding=how)
    assert resumed[0]["said"][0] == "resumed from step-00000004"
    for ours, theirs in zip(resumed, unbroken, strict=True):
        assert (ours["ended"], ours["own"]) == (theirs["ended"], theirs["own"])
        assert ours["estimates"] == theirs["estimates"]
    assert resumed[0]["own"] != resumed[1]["own"]


def test_a_lost_rank_ends_the_others_in_one_line(tmp_path: Path) -> None:
    """Status 4 and a line that says what happened, instead of half an hour of silence."""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "gyrostat_reference", "--fault", "rank_killed@2", "--steps", "4", "--run-dir", ""],
            env={**os.environ, **_place(rank, tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    out, err = ranks[0].communicate(timeout=120)
    ranks[1].communicate(timeout=60)
    assert (ranks[1].returncode, ranks[0].returncode) == (-signal.SIGKILL, 4), err
    assert [line for line in out.splitlines() if line.startswith("step")] == out.splitlines()[:1]
    assert err.startswith("rank 0 of 2: another rank is gone") and len(err.splitlines()) == 1, err


def _place(rank: int, folder: Path) -> dict[str, str]:
    """What torchrun would set, but for the port, which the two agree on by a file of their own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = (folder / "port").read_text() if rank else str(probe.getsockname()[1])
    (folder / "port").write_text(port)
    return {
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "OMP_NUM_THREADS": "1",
    }
