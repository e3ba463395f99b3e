"""The command line in this process."""

import pytest
from cli_runs import Run, calling


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)
