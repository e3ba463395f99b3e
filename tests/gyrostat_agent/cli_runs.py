"""The command line called in this process: what it printed and what it leaves with."""

import sys
from collections.abc import Callable

import pytest

from gyrostat_agent.console import main

Run = Callable[..., tuple[int, str, str]]


def calling(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A fixture's body: runs ``gyrostat WORDS``; status, stdout, stderr."""
    monkeypatch.delenv("GYROSTAT_RUN_DIR", raising=False)
    monkeypatch.delenv("GYROSTAT_RUN", raising=False)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gyrostat", *words])
        status = main()
        return status, *capsys.readouterr()

    return call


def one_line(err: str, *words: str) -> None:
    """One line for a person, with these words in it."""
    assert err.count("\n") == 1 and err.startswith("gyrostat: "), err
    assert all(word in err for word in words), err
