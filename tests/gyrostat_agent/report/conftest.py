"""Runs with a journal, as an agent leaves them, written from stories."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from cli_runs import Run, calling

from gyrostat_agent.journal import Journal
from gyrostat_agent.rundir import prepare
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Input

Journaled = Callable[[Iterable[Input]], str]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def journaled(tmp_path: Path) -> Journaled:
    """Writes the journal of a run that was told these inputs, and returns its run directory."""

    def write(inputs: Iterable[Input]) -> str:
        run, engine = prepare(str(tmp_path / "run")), Engine()
        journal = Journal(os.path.join(run.agent, "journal.db"))
        for given in inputs:
            journal.commit(given, engine.feed(given), {})
        journal.close()
        return run.path

    return write
