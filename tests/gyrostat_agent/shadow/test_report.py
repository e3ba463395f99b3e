"""The report: runs pooled by rule, each once, what is damaged named and left out, and bounds on all of it."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Run, calling, one_line
from shadow_runs import POISON, Shadowed

from gyrostat_agent.shadow.bound import LEAST, needed, passes, share
from gyrostat_agent.shadow.occasion import Occasion, Verdict
from gyrostat_agent.shadow.report import score
from gyrostat_agent.shadow.watch import WITHIN
from gyrostat_rules.incidents import QUIET_STEPS

Make = Callable[..., Shadowed]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def two(make: Make) -> tuple[Shadowed, Shadowed]:
    """A run that died of it, and one that was fine without."""
    return make("dead").ill(31).ends(1).end(), make("fine").ill().well(40).end()


def told(cli: Run, *words: str) -> dict[str, Any]:
    """A report for machines."""
    status, out, err = cli("shadow", "report", "--json", *words)
    assert status == 0, err
    return dict(json.loads(out))


def backtest(path: Path, *cases: tuple[str, bool, bool, str]) -> Path:
    """A backtest's result: group, healthy, told and by which severity, all by one rule."""
    rows = [
        {"id": group, "group": group, "kind": "nan_inf", "replayed": True, "healthy": healthy,
         "found": None if healthy else spoke, "failed": spoke if healthy else None,
         "alert": POISON if spoke else None, "severity": severity if spoke else None}
        for group, healthy, spoke, severity in cases
    ]  # fmt: skip
    path.write_text(json.dumps({"overall": {}, "cases": rows}))
    return path


# -- pooling ------------------------------------------------------------------------------------------


def test_runs_are_pooled_by_rule(cli: Run, two: tuple[Shadowed, Shadowed]) -> None:
    """One hit and one miss of one rule in two runs, with Wilson's bounds, steps saved and lost."""
    rule = told(cli, *(run.bench.run.path for run in two))["rules"][POISON]
    assert (rule["would_have_acted"], rule["hit"], rule["miss"], rule["runs"]) == (2, 1, 1, 2)
    assert rule["hit_rate"] == 0.5 and rule["hit_rate_95"] == pytest.approx([0.0945, 0.9055], abs=1e-4)
    assert (rule["steps_saved"], rule["steps_lost"]) == (19, 11)


def test_interventions_stand_at_the_top(cli: Run, two: tuple[Shadowed, Shadowed]) -> None:
    """How often in a thousand healthy steps, with the steps they were counted in, before anything else."""
    status, out, _ = cli("shadow", "report", *(run.bench.run.path for run in two))
    first, second, third = out.splitlines()[:3]
    assert status == 0
    assert first.startswith("interventions: 32.79 in 1,000 healthy steps") and "2 in 61" in first
    assert second.startswith("not called for: 16.39 in 1,000") and "1 in 61" in second
    assert third == "over 2 runs and 112 steps, of which 61 healthy"


def test_nothing_is_no_evidence(cli: Run, make: Make) -> None:
    """A quiet run: no rule has a rate, and the line says so."""
    run = make(last=30).end()
    status, out, _ = cli("shadow", "report", run.bench.run.path)
    assert status == 0 and "0.00 in 1,000" in out and "no evidence for one, and none against it" in out
    assert told(cli, run.bench.run.path)["rules"] == {}


def test_without_healthy_steps_there_is_no_rate(cli: Run, make: Make) -> None:
    """An agent that no trainer has spoken to."""
    run = make(last=0).end()
    assert "no healthy steps to count them in" in cli("shadow", "report", run.bench.run.path)[1]
    assert told(cli, run.bench.run.path)["interventions_per_1000"]["rate"] is None


# -- once ---------------------------------------------------------------------------------------------


def test_a_journal_given_twice_counts_once(cli: Run, two: tuple[Shadowed, Shadowed], tmp_path: Path) -> None:
    """By its path, in a folder, and as a copy of its file under another name."""
    run = two[1]
    folder = tmp_path / "证据"
    folder.mkdir()
    shutil.copy(run.journal, folder / "copy.db")
    found = told(cli, run.bench.run.path, run.bench.run.path, "--evidence", str(folder))
    assert found["rules"][POISON]["miss"] == 1 and len(found["runs"]) == 1
    assert len(found["counted_once"]) == 1


def test_of_an_older_copy_the_journal_itself_counts(cli: Run, make: Make, tmp_path: Path) -> None:
    """The copy was too young to say; the journal has the answer."""
    run, folder = make().ill(), tmp_path / "old"
    folder.mkdir()
    with sqlite3.connect(run.journal) as db:
        db.execute("VACUUM INTO ?", (str(folder / "copy.db"),))
    db.close()
    os.chmod(folder / "copy.db", 0o600)
    run.well(40).end()
    rule = told(cli, run.bench.run.path, "--evidence", str(folder))["rules"][POISON]
    assert (rule["miss"], rule["undecided"], rule["runs"]) == (1, 0, 1)


def test_a_report_is_evidence_again(cli: Run, two: tuple[Shadowed, Shadowed], tmp_path: Path) -> None:
    """What was exported counts as the journals did, once, and also where they are gone."""
    folder = tmp_path / "kept"
    folder.mkdir()
    first = told(cli, *(run.bench.run.path for run in two))
    (folder / "report.json").write_text(json.dumps(first))
    again = told(cli, two[0].bench.run.path, "--evidence", str(folder))
    alone = told(cli, "--evidence", str(folder))
    assert first["rules"] == again["rules"] == alone["rules"] and len(again["runs"]) == 2
    assert first["interventions_per_1000"] == alone["interventions_per_1000"]


def test_a_folder_of_run_directories(cli: Run, two: tuple[Shadowed, Shadowed], tmp_path: Path) -> None:
    """Runs as they lie: what else there is in them is no evidence and no fault."""
    found = told(cli, "--evidence", str(tmp_path))
    assert len(found["runs"]) == 2 and found["left_out"] == []


# -- what is damaged ----------------------------------------------------------------------------------


def break_chain(path: str) -> None:
    """Somebody edits an entry."""
    with sqlite3.connect(path) as db:
        db.execute("UPDATE entries SET body = replace(body, 'rollback', 'rollbacc')")
    db.close()


def cut(path: str) -> None:
    """Half of the file is gone."""
    os.truncate(path, os.path.getsize(path) // 2)


@pytest.mark.parametrize("damage", [break_chain, cut], ids=["an entry edited", "cut in half"])
def test_a_damaged_journal_is_named_and_left_out(
    cli: Run, two: tuple[Shadowed, Shadowed], damage: Callable[[str], None]
) -> None:
    """The other run counts; nobody is led to think that both did."""
    damage(two[0].journal)
    found = told(cli, *(run.bench.run.path for run in two))
    assert len(found["runs"]) == 1 and found["rules"][POISON]["hit"] == 0
    assert [one["path"] for one in found["left_out"]] == [os.path.realpath(two[0].journal)]
    assert "left out: " in cli("shadow", "report", *(run.bench.run.path for run in two))[1]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 100_000, "[1, 2]", '{"what": "gyrostat shadow report", "version": 9, "runs": []}',
     '{"what": "gyrostat shadow report", "version": 1, "runs": [{"run": 5}]}',
     '{"what": "gyrostat shadow report", "version": 1, "runs": 7}',
     '{"overall": {}, "cases": [5]}', '{"overall": {}, "cases": [{"group": "a"}]}', "\udcff"],
    ids=["empty", "half", "deep", "a list", "newer", "an odd run", "odd runs", "an odd case", "half a case", "no text"],
)  # fmt: skip
def test_what_is_no_evidence_is_named(cli: Run, tmp_path: Path, text: str) -> None:
    """One line each, no stack trace, status 0."""
    (tmp_path / "odd.json").write_text(text, errors="surrogateescape")
    found = told(cli, "--evidence", str(tmp_path))
    assert [os.path.basename(one["path"]) for one in found["left_out"]] == ["odd.json"] and not found["rules"]


def test_a_report_of_another_window_is_left_out(cli: Run, two: tuple[Shadowed, Shadowed], tmp_path: Path) -> None:
    """What was given fifty steps is not pooled with what is given twenty."""
    (tmp_path / "kept.json").write_text(json.dumps(told(cli, two[0].bench.run.path)))
    found = told(cli, two[1].bench.run.path, "--within", "20", "--evidence", str(tmp_path))
    assert any("give the journals" in one["why"] for one in found["left_out"])


@pytest.mark.parametrize("change", [{"healthy": "many"}, {"steps": None}, {"occasions": [{"rule": 5}]}], ids=str)
def test_a_report_with_odd_values_is_left_out(
    cli: Run, two: tuple[Shadowed, Shadowed], tmp_path: Path, change: dict[str, Any]
) -> None:
    """Each value has its type, or the whole of it is not believed."""
    report = told(cli, two[0].bench.run.path)
    report["runs"][0] |= change
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "odd.json").write_text(json.dumps(report))
    assert len(told(cli, "--evidence", str(folder))["left_out"]) == 1


@pytest.mark.parametrize("words", [("/nowhere",), ("--evidence", "/nowhere")], ids=["a run", "a folder"])
def test_what_is_not_there_is_said(cli: Run, words: tuple[str, ...]) -> None:
    """Status 2 and one line."""
    status, _, err = cli("shadow", "report", *words)
    assert status == 2
    one_line(err, "/nowhere")


# -- backtests ----------------------------------------------------------------------------------------


def test_backtests_stand_apart(cli: Run, two: tuple[Shadowed, Shadowed], tmp_path: Path) -> None:
    """A fault found in time and a healthy run called ill are shown, and counted only where that is asked for."""
    folder = tmp_path / "tests"
    folder.mkdir()
    cases = [("a", False, True, "critical"), ("b", False, True, "critical"), ("c", True, True, "critical")]
    backtest(
        folder / "one.json", *cases, ("d", False, True, "warning"), ("e", True, False, ""), ("f", False, False, "")
    )
    shutil.copy(folder / "one.json", folder / "copy.json")
    words = (two[0].bench.run.path, "--evidence", str(folder))
    rule = told(cli, *words)["rules"][POISON]
    assert (rule["hit"], rule["miss"], rule["backtests"]) == (1, 0, {"hit": 2, "miss": 1})
    rule = told(cli, *words, "--with-backtests")["rules"][POISON]
    assert (rule["hit"], rule["miss"]) == (3, 1)
    assert "not counted above; --with-backtests counts them" in cli("shadow", "report", *words)[1]


def test_a_rule_that_only_backtests_know_is_shown(cli: Run, tmp_path: Path) -> None:
    """With no occasion in any run, and without a rate unless it is asked for."""
    backtest(tmp_path / "one.json", ("a", False, True, "critical"))
    rule = told(cli, "--evidence", str(tmp_path))["rules"][POISON]
    assert (rule["would_have_acted"], rule["hit_rate"], rule["backtests"]["hit"]) == (0, None, 1)


def test_what_gyrostat_backtest_writes_is_read(cli: Run, tmp_path: Path) -> None:
    """The real command's own result, and not only what this file makes up."""
    series = [[step, "NaN" if step > 60 else 1.0 + step % 3 * 0.01] for step in range(80)]
    case = {"id": "a", "kind": "nan_inf", "signal": "loss", "healthy": False, "series": series, "onset_step": 61,
            "must_fire_by_step": 70}  # fmt: skip
    (tmp_path / "corpus.jsonl").write_text(json.dumps(case) + "\n")
    status, out, _ = cli("backtest", "--json", str(tmp_path / "corpus.jsonl"))
    (tmp_path / "result.json").write_text(out)
    assert status == 0
    assert told(cli, "--evidence", str(tmp_path))["rules"][POISON]["backtests"] == {"hit": 1, "miss": 0}


# -- bounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [0.0001, 0.5, 0.9])
def test_nothing_of_nothing_is_no_evidence(least: float) -> None:
    """Whatever is asked."""
    assert share(0, 0).value is None and not passes(0, 0, least)


@pytest.mark.parametrize(
    "hits, misses, least, more",
    [(0, 0, 0.9, 35), (34, 0, 0.9, 1), (35, 0, 0.9, 0), (35, 1, 0.9, 17), (0, 0, 0.5, 4), (10, 10, 0.5, 11)],
)
def test_how_many_more_hits(hits: int, misses: int, least: float, more: int) -> None:
    """So many, and not one fewer, make the bound pass."""
    assert needed(hits, misses, least) == more
    assert passes(hits + more, misses, least) and (more == 0 or not passes(hits + more - 1, misses, least))


def test_no_number_of_hits_may_be_enough() -> None:
    """A bound that nothing reaches is said to be none."""
    assert needed(0, 50_000, 0.99999) is None


def test_a_score_keeps_what_is_not_known_apart() -> None:
    """Undecided and acted are in no share; saved counts deaths whose way back is known, lost counts misses alone."""
    base = Occasion("R", "i", "nonfinite", "rollback", 30, 0.0, "d", Verdict.HIT, "", 10)
    unknown = base._replace(cost=None, to_death=9)
    others = [base._replace(verdict=word) for word in (Verdict.MISS, Verdict.UNDECIDED, Verdict.ACTED)]
    found = [base._replace(to_death=25), base, unknown, *others]
    one = score("R", found, (0, 0), False)
    assert (one.hits, one.misses, one.undecided, one.acted, one.occasions) == (3, 1, 1, 1, 6)
    assert (one.saved, one.saved_of, one.lost, one.lost_of) == (15, 1, 10, 1)
    assert one.share.value == 0.75


def test_the_page_says_the_defaults() -> None:
    """``docs/shadow.md`` names what is given to come back, what is asked, and how many hits that takes."""
    page = (Path(__file__).parents[3] / "docs" / "shadow.md").read_text(encoding="utf-8")
    assert f"`--within` steps ({WITHIN})" in page and f"`--least` ({LEAST})" in page
    assert f"({QUIET_STEPS} clean steps)" in page and f"that takes {needed(0, 0, LEAST)} hits" in page
