"""The console script where the agent's libraries are missing: what to install, in one line."""

import builtins
from typing import Any

import pytest

from gyrostat_agent import console


def without(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As if a module could not be imported."""
    real = builtins.__import__

    def importing(wanted: str, *more: Any) -> Any:
        if wanted == "gyrostat_agent.cli":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(wanted, *more)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The bare wheel is the SDK: it names the extra and what is missing, and leaves with 2."""
    without(monkeypatch, "click")
    assert console.main() == 2
    assert capsys.readouterr().err == f"{console.NEEDED}  (missing: click)\n"


def test_a_module_of_ours_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken installation must not read as a missing extra."""
    without(monkeypatch, "gyrostat_rules.engine")
    with pytest.raises(ModuleNotFoundError):
        console.main()
