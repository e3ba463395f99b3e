"""A run directory as the supervisor makes it: owned by us, mode 0700."""

from pathlib import Path

import pytest


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An empty run directory."""
    path = tmp_path / "run-a"
    path.mkdir(mode=0o700)
    return path
