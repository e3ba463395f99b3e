"""The recorded runs that lie in the repository: whole and small, and a slice of them replayed by the shipped packs."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from recording import Recording

from gyrostat_agent.backtest.case import read
from gyrostat_agent.cli.group import gyrostat

CORPUS = Path(__file__).parents[3] / "benchmarks" / "detection" / "recorded.jsonl"
CLEAN = "reference clean"
MOST = 10_000_000  # bytes


@pytest.fixture(scope="module")
def runs() -> dict[str, list[str]]:
    """The lines of each run."""
    found: dict[str, list[str]] = {}
    for line in CORPUS.read_text("utf-8").splitlines():
        found.setdefault(json.loads(line)["group"], []).append(line)
    return found


def family(lines: list[str]) -> str:
    """What a run is of."""
    return str(json.loads(lines[0])["family"])


def test_every_line_is_a_case_and_all_of_it_is_small(runs: dict[str, list[str]]) -> None:
    """A clone carries it for ever; and a line that cannot be read would end every backtest of it."""
    assert CORPUS.stat().st_size <= MOST
    lines = [line for found in runs.values() for line in found]
    assert [wrong for line in lines for wrong in read(line.encode(), CORPUS.name, 1)[1]] == []
    assert Recording.read(CORPUS).groups == runs.keys()


def test_every_fault_is_there_twice(runs: dict[str, list[str]]) -> None:
    """One seed is an anecdote; and without healthy runs nothing is known of false alarms."""
    counted: dict[str, int] = {}
    for lines in runs.values():
        counted[family(lines)] = counted.get(family(lines), 0) + 1
    assert len(counted) == 9 and counted.pop(CLEAN) >= 2
    assert min(counted.values()) >= 2


def backtest(lines: Iterable[str], folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Exit status and answer of ``gyrostat backtest``."""
    path = folder / "slice.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    result = CliRunner().invoke(gyrostat, ["backtest", "--json", *more, str(path)])
    return result.exit_code, json.loads(result.stdout)


def test_each_fault_is_found_and_a_healthy_run_is_left_alone(runs: dict[str, list[str]], tmp_path: Path) -> None:
    """The first run of each: what a rule that is changed must go on finding in real numbers."""
    first: dict[str, list[str]] = {}
    for name in sorted(runs):
        first.setdefault(family(runs[name]), runs[name])
    lines = [line for found in first.values() for line in found]
    status, found = backtest(lines, tmp_path, "--require", "recall=1,precision=1,false_incidents=0")
    assert (status, found["overall"]["recall"], found["overall"]["false_incidents"]) == (0, 1.0, 0)
