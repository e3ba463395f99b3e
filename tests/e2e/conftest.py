"""A place for a run, whose processes are gone when the test is over."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes import SKIP, Place


@pytest.fixture
def place() -> Iterator[Callable[..., Place]]:
    """Makes places, on tmpfs where there is one: that is where run directories belong."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    made: list[Place] = []

    def make(rungs: str = SKIP, name: str = "place") -> Place:
        made.append(Place(Path(tempfile.mkdtemp(prefix="gyrostat-e2e-", dir=base)) / name, rungs))
        return made[-1]

    yield make
    for each in made:
        each.end()
        shutil.rmtree(each.folder.parent, ignore_errors=True)
