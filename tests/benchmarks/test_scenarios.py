"""The campaign as it is run: the real thing around a product and a trainer that only say numbers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scenarios
from scenario_plays import grouped, reseeded_at, twin_key
from scenario_rows import Row, has_fault, read, reduced

from gyrostat_agent.demo.scenarios import SCENARIOS, STEPS

FAKE = Path(__file__).parent / "fake"
NAMES = ["nan_data", "nan_applied"]
DEADLINE = 30.0
MAIN = (  # the campaign sees the real product, what it starts sees the fakes
    "import os, sys, scenarios; os.environ['PYTHONPATH'] = sys.argv.pop(1); sys.exit(scenarios.main())"
)
Play = Callable[..., int]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What was started, a line each; product and trainer are fakes from here on."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAKE), *(p for p in sys.path if p)]))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FAKE_ROWS", str(tmp_path / "rows.json"))
    (tmp_path / "log").touch()
    (tmp_path / "rows.json").write_text("{}")
    return tmp_path / "log"


@pytest.fixture
def play(tmp_path: Path, log: Path) -> Play:
    """Play two scenarios with ``rows`` as the fake product tells them; returns the exit status."""

    def played(*arguments: str, rows: dict[str, dict[str, Any]] | None = None) -> int:
        (tmp_path / "rows.json").write_text(json.dumps(rows or {}))
        return scenarios.main([*_where(tmp_path), "--only", *NAMES, *arguments])

    return played


def _where(folder: Path) -> list[str]:
    return ["--out", str(folder / "out"), "--json", str(folder / "results.json")]


def rows_of(folder: Path) -> dict[tuple[str, int], Row]:
    """What the results file holds."""
    return {row.key: row for row in read(folder / "results.json").rows}


def test_scenarios_that_share_a_clean_run_are_one_process_a_seed(play: Play, tmp_path: Path, log: Path) -> None:
    """Exit status 0 where all is mended; each seed is a demonstration of its own, and every row is kept."""
    assert play("--seeds", "2") == 0
    assert sorted(log.read_text().splitlines()) == ["demo nan_data,nan_applied 0 1", "demo nan_data,nan_applied 1 1"]
    assert set(rows_of(tmp_path)) == {(name, seed) for name in NAMES for seed in (0, 1)}


def test_what_has_other_options_or_steps_has_another_clean_run() -> None:
    """Only what has one clean run is played together, and everything is played."""
    groups = grouped(SCENARIOS, STEPS, 0)
    together = {name: group for group in groups for name in group}
    assert set(together) == set(SCENARIOS) and sum(map(len, groups)) == len(SCENARIOS)
    assert "nan_applied" in together["nan_data"]
    assert "nan_advantage" not in together["nan_data"] and "entropy_collapse" not in together["nan_data"]


def test_what_was_played_is_not_played_again(play: Play, tmp_path: Path, log: Path) -> None:
    """A campaign that was killed goes on with what is missing; --fresh plays all that is asked for."""
    assert play("--seeds", "1") == 0
    assert play("--seeds", "2") == 0
    assert play("--seeds", "2") == 0
    assert log.read_text().splitlines() == ["demo nan_data,nan_applied 0 1", "demo nan_data,nan_applied 1 1"]
    assert play("--seeds", "1", "--fresh") == 0
    assert log.read_text().splitlines()[2:] == ["demo nan_data,nan_applied 0 1"]
    assert len(rows_of(tmp_path)) == 4, "what was not asked for is kept"


def test_rows_of_another_length_are_played_again(play: Play, log: Path) -> None:
    """A run of 60 steps is no answer to a question about 80."""
    assert play("--seeds", "1") == 0
    longer = {f"{name} 0": {"steps": 80} for name in NAMES}
    assert play("--seeds", "1", "--steps", "80", rows=longer) == 0
    assert len(log.read_text().splitlines()) == 2


def test_a_run_that_went_back_is_judged_by_a_twin_of_its_own(play: Play, tmp_path: Path, log: Path) -> None:
    """Re-seeded before the first step after each one gone back to; of what never went back it is the clean run."""
    assert play("--seeds", "1", rows={"nan_applied 0": {"went_back_to": [20, 35, 20]}}) == 0
    assert log.read_text().splitlines()[1:] == ["twin 0 reseed@21 reseed@36"]
    rows = rows_of(tmp_path)
    assert (rows["nan_data", 0].twin, rows["nan_applied", 0].twin) == (0.97, pytest.approx(0.95))


def test_runs_that_went_back_alike_share_their_twin(play: Play, tmp_path: Path, log: Path) -> None:
    """The same seed, options and steps are one run, now and when the campaign goes on."""
    went = {f"{name} 0": {"went_back_to": [20]} for name in NAMES}
    assert play("--seeds", "1", rows=went) == 0
    assert log.read_text().splitlines()[1:] == ["twin 0 reseed@21"]
    assert [row.twin for row in rows_of(tmp_path).values()] == [pytest.approx(0.95)] * 2
    assert play("--seeds", "1", "--fresh", "--only", "nan_data", rows=went) == 0
    assert sum(line.startswith("twin") for line in log.read_text().splitlines()) == 1


def test_other_options_have_other_twins() -> None:
    """The twin of a run with options of its own is trained with them."""
    told = Row("nan_data", 0, 60, True, "", 0.97, None, 0.96, None, 5, 1, (20,), ())
    assert reseeded_at(told) == [21]
    assert twin_key(told) == twin_key(told._replace(scenario="nan_applied"))
    others = [{"scenario": "nan_advantage"}, {"seed": 1}, {"steps": 80}, {"went_back_to": (15,)}]
    assert twin_key(told) not in [twin_key(told._replace(**other)) for other in others]  # type: ignore[arg-type]


def test_a_twin_that_failed_is_made_when_the_campaign_goes_on(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its twin a run is not judged well, and it is said why."""
    went = {"nan_applied 0": {"went_back_to": [20]}}
    monkeypatch.setenv("FAKE_TWIN", "dies")
    assert play("--seeds", "1", rows=went) == 1
    assert "the twin of nan_applied seed 0 came to nothing" in capsys.readouterr().err
    monkeypatch.delenv("FAKE_TWIN")
    assert play("--seeds", "1", rows=went) == 0
    assert rows_of(tmp_path)["nan_applied", 0].twin == pytest.approx(0.95)


def test_a_miss_is_told_with_its_seed_and_its_files(
    play: Play, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 1; the table says why, and progress where to look. A run that died is a row like any other."""
    missed = {"mended": False, "why": "with the sidecar the run still died", "treated": None}
    assert play("--seeds", "2", rows={"nan_data 1": missed}) == 1
    told = capsys.readouterr()
    assert "seed 1: with the sidecar the run still died" in told.out
    assert f"{tmp_path}/out/nan_data-2-seed-1/runs/demo-nan_data-1" in told.err
    assert rows_of(tmp_path)["nan_data", 1].difference == -0.97


@pytest.mark.parametrize(("status", "rest"), [(1, True), (2, False)], ids=["a run failed", "wrong use"])
def test_a_demonstration_that_fails_costs_its_scenario_alone(
    status: int, rest: bool, play: Play, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those after it are played, unless it was refused as such; exit status 1, and its last words are shown."""
    assert play("--seeds", "1", rows={"nan_data 0": {"fails": status}}) == 1
    assert "it cannot be shown" in capsys.readouterr().err
    assert (("nan_applied", 0) in rows_of(tmp_path)) is rest


def test_an_interruption_keeps_what_there_is(log: Path, tmp_path: Path) -> None:
    """Exit status 130, no process left behind, and the finished scenario of an unfinished demonstration is a row."""
    (tmp_path / "rows.json").write_text(json.dumps({"nan_applied 0": {"waits": True}}))
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, os.environ["PYTHONPATH"], *_where(tmp_path), "--only", *NAMES, "--seeds", "1"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + DEADLINE
    while ("nan_data", 0) not in (rows_of(tmp_path) if (tmp_path / "results.json").exists() else {}):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130 and "interrupted" in errors
    assert not _alive(str(tmp_path))
    assert set(rows_of(tmp_path)) == {("nan_data", 0)}


def _alive(words: str) -> list[int]:
    """Living processes whose command lines name ``words``."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if words in (folder / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "nan_datum"], "nan_datum"),
        (["--seeds", "0"], "at least 1"),
        (["--steps", "10"], "at least 30"),
        (["--table", "no/such.json"], "no/such.json"),
    ],
    ids=["scenario", "seeds", "steps", "table"],
)
def test_a_mistake_is_answered_in_a_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, what was wrong, and nothing was started."""
    try:
        status = scenarios.main(arguments)
    except SystemExit as left:
        status = int(left.code or 0)
    errors = capsys.readouterr().err
    assert status == 2 and said in errors and "Traceback" not in errors


def test_a_file_that_holds_something_else_is_left_alone(play: Play, tmp_path: Path, log: Path) -> None:
    """Exit status 2; a person's file is not overwritten."""
    (tmp_path / "results.json").write_text('{"mine": 1}')
    assert play("--seeds", "1") == 2
    assert (tmp_path / "results.json").read_text() == '{"mine": 1}' and not log.read_text()


def test_the_table_of_a_results_file_plays_nothing(
    play: Play, tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the table that the campaign printed at its end."""
    assert play("--seeds", "1") == 0
    printed, started = capsys.readouterr().out, log.read_text()
    assert scenarios.main(["--table", str(tmp_path / "results.json")]) == 0
    assert capsys.readouterr().out == printed and log.read_text() == started


def test_the_first_action_counts_from_the_fault() -> None:
    """From the trainer's answer, or for a start anew from the incident; what was passed by or asks a person is none."""
    struck = 21
    deeds = [
        {"rung": 1, "remedy": "skip_data", "verdict": "deny", "outcome": "", "applied_step": -1},
        {"rung": 2, "remedy": "rollback", "verdict": "allow", "outcome": "done", "applied_step": struck + 3},
        {"rung": 3, "remedy": "restart", "verdict": "allow", "outcome": "done", "applied_step": None},
    ]
    assert _acted_after(deeds[:1], struck) is None
    assert _acted_after(deeds[:2], struck) == 3
    assert [_acted_after([{**deeds[2], "applied_step": at}], struck) for at in (None, struck - 1)] == [1, 1]
    assert _acted_after([{**deeds[2], "remedy": "page"}], struck) is None


def _acted_after(deeds: list[dict[str, Any]], struck: int) -> int | None:
    incident = {"kind": "nonfinite", "onset_step": struck, "fired_step": struck + 1, "actions": deeds}
    told = {
        "scenario": "nan_data", "seed": 0, "steps": 60, "fault_step": struck, "mended": True, "why": "", "clean": 0.97,
        "untreated": None, "treated": 0.96, "incidents": [incident], "lost_steps": 2, "went_back_to": [],
    }  # fmt: skip
    return reduced(told).acted_after


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "clean"])
def test_whatever_breaks_is_judged_by_twins(name: str) -> None:
    """No scenario escapes the comparison but the one in which nothing is broken."""
    assert has_fault(name)


def test_the_quick_ones_are_scenarios() -> None:
    """Four of them, the one without a fault among them."""
    assert len(scenarios.QUICK) == 4 and set(scenarios.QUICK) <= set(SCENARIOS)
    assert [name for name in scenarios.QUICK if not has_fault(name)] == ["clean"]
