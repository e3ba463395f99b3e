"""Real torchruns. ``launched``: what each rank found in a scenario of worker.py; ``trained`` keeps one of them.

``trained_by`` runs the reference trainer itself.
"""

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Launch = Callable[..., list[dict[str, Any]]]
TrainedBy = Callable[..., list[dict[str, Any]]]
Trained = Callable[[str, int], tuple[Path, list[dict[str, Any]]]]
HERE = Path(__file__).parent
_DEADLINE = 300.0  # seconds; a launch takes about ten on two slow cores, and they may be busy with other things


def torchrun(world: int, arguments: list[str]) -> tuple[int, str]:
    """Exit status and output of a real torchrun with ``world`` ranks."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(world),
        *arguments,
    ]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=_DEADLINE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"{arguments} did not end within {_DEADLINE:g} s:\n{process.communicate()[0][-4000:]}")
    return process.returncode, output[-6000:]


def found_in(facts: Path, world: int) -> list[dict[str, Any]]:
    """What the ranks that came to their end wrote beside ``facts``, by rank."""
    found = [facts.with_name(f"{facts.name}-{rank}") for rank in range(world)]
    return [json.loads(path.read_text()) for path in found if path.exists()]


@pytest.fixture(scope="session")
def trained_by(tmp_path_factory: pytest.TempPathFactory) -> TrainedBy:
    """Run the reference trainer on ``world`` ranks below ``root``; what each rank found."""

    def train(world: int, root: Path, **spec: Any) -> list[dict[str, Any]]:
        facts = tmp_path_factory.mktemp("facts") / "of"
        status, output = torchrun(world, [str(HERE / "trainer_rank.py"), json.dumps(spec), str(root), str(facts)])
        assert status == 0, output
        return found_in(facts, world)

    return train


@pytest.fixture(scope="session")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """Run ``scenario`` on ``world`` ranks and return what those found that came to their end, by rank."""

    def launch(scenario: str, how: str, world: int, root: Path, *, ends: bool = True) -> list[dict[str, Any]]:
        facts = tmp_path_factory.mktemp("facts") / "of"
        status, output = torchrun(world, [str(HERE / "worker.py"), scenario, how, str(root), str(facts)])
        assert not ends or status == 0, output
        return found_in(facts, world)

    return launch


@pytest.fixture(scope="session")
def trained(launched: Launch, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The scenario ``train``, once for each kind and number of ranks: its checkpoints' root, what the ranks found."""

    @functools.cache
    def train(how: str, world: int) -> tuple[Path, list[dict[str, Any]]]:
        root = tmp_path_factory.mktemp("checkpoints")
        return root, launched("train", how, world, root)

    return train
