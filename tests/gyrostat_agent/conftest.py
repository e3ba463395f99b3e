"""A bench to run agents on, in this process."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A run with a trainer; its agents are let go of at the end."""
    made = Bench(tmp_path, time.time)
    yield made
    made.close()
