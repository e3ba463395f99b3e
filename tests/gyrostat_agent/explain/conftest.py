"""Runs with a journal, as an agent leaves them, written from simulated inputs."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from cli_runs import Run, calling

from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_agent.journal import Journal
from gyrostat_agent.rundir import prepare
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Input, Pack

Journaled = Callable[..., str]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def journaled(tmp_path: Path) -> Journaled:
    """Writes the journal of a run that was told these inputs, and returns its run directory."""

    def write(inputs: Iterable[Input], pack: str = "", forget: bool = False) -> str:
        run, engine, text = prepare(str(tmp_path / "run")), Engine(), pack or builtin()
        journal = Journal(os.path.join(run.agent, "journal.db"))
        for given in (Pack(0.0, digest_of(text), text), *inputs):
            entries: Sequence[Entry] = engine.feed(given)
            journal.commit(given, [] if forget else entries, {})
        journal.close()
        return run.path

    return write
