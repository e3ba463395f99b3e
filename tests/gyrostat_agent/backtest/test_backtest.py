"""``gyrostat backtest`` as people call it, and the corpus that comes with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gyrostat_agent.cli.group import gyrostat
from gyrostat_agent.errors import SetupError

PUBLIC = Path(__file__).parents[3] / "benchmarks" / "detection" / "public_cases.jsonl"
Line = Callable[..., dict[str, Any]]
Write = Callable[..., Path]
Called = Callable[..., Result]


@pytest.fixture(scope="module")
def public() -> dict[str, Any]:
    """What the pack that comes with it makes of the public cases."""
    result = CliRunner().invoke(gyrostat, ["backtest", "--json", str(PUBLIC)])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_no_public_case_is_lost(public: dict[str, Any]) -> None:
    """Each line is judged, or listed as not replayable; the lines of one run that tell one kind are one case."""
    ids = [json.loads(text)["id"] for text in PUBLIC.read_text(encoding="utf-8").splitlines()]
    assert sorted(case["id"] for case in public["cases"]) == sorted(ids)
    overall = public["overall"]
    replayed = [case for case in public["cases"] if case["replayed"]]
    assert len(replayed) + overall["not_replayable"] == overall["listed"] == len(ids)
    assert overall["cases"] == len({(case["group"], case["kind"], case["healthy"]) for case in replayed}) > 55


def test_public_runs_with_a_nan_are_found(public: dict[str, Any]) -> None:
    """All but F022a: its gradients were NaN, says its reporter, but the numbers it gives are all finite."""
    cases = [case for case in public["cases"] if case["kind"] == "nan_inf" and case["found"] is not None]
    assert len(cases) > 10 and {case["id"] for case in cases if not case["found"]} <= {"F022a"}
    assert all(case["onset_error"] == 0 for case in cases if case["found"])


def test_public_faults_that_can_be_replayed_are_found(public: dict[str, Any]) -> None:
    """Three points or more that are in order: a verdict by the deadline, after one to three rows mostly.

    All but F088: six rewards within one percent of each other are what a large batch shows in health, too.
    """
    lines = map(json.loads, PUBLIC.read_text(encoding="utf-8").splitlines())
    wanted = {line["id"] for line in lines if line["replay"] and not line["healthy"] and line["series"]}
    missed = [case["id"] for case in public["cases"] if case["id"] in wanted and case["replayed"] and not case["found"]]
    assert len(wanted) > 12 and missed in ([], ["F088"])


def test_no_public_healthy_run_is_called_ill(public: dict[str, Any]) -> None:
    """An incident that is none costs a night's sleep, or a run."""
    assert [case["id"] for case in public["cases"] if case["failed"]] == [] and public["overall"]["failed"] == 0
    assert public["overall"]["false_incidents"] == 0


def test_the_answer_for_machines_has_what_is_promised(public: dict[str, Any]) -> None:
    """Who compares two packs reads these."""
    assert public["overall"].keys() >= {"recall", "precision", "false_incidents", "cases"}
    assert all(kind.keys() >= {"recall", "cases"} for kind in public["kinds"].values())
    assert sum(kind["cases"] for kind in public["kinds"].values()) == public["overall"]["cases"]


def test_the_answer_for_people_says_which_and_why(called: Called, write: Write, line: Line) -> None:
    """The table, then what was missed, what was false and what was not replayed, each with its reason."""
    path = write(
        line(1, 1, 20, id="found", onset_step=3), line(1, 1, id="\x1b[31mmissed"),
        line(1, 200, id="false", healthy=True), line(id="told", evidence="claim"),
    )  # fmt: skip
    result = called(path)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0 and "\x1b" not in result.stdout
    assert lines[0].split()[:2] == ["kind", "found"] and lines[1].split()[:5] == ["loss_spike", "1", "of", "2", "50%"]
    assert "false incidents: 1 in 2 healthy steps: 500.0 in 1,000 (95 %: 94.5 to 905.5)" in lines
    assert "  ?[31mmissed (loss_spike, loss): never fired: Noted, LossHigh (steps seen: 2)" in lines
    assert "  false (loss_spike, loss): LossGone opened an incident (divergence) at step 2" in lines
    assert "  it has no numbers (claim): told" in lines


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ("recall=0.5,false_incidents=1", 0, ""),
        ("recall=0.9,false_incidents=0", 1, "recall is 0.5, at least 0.9"),
        ("false_incidents=0", 1, "false_incidents is 1, at most 0"),
        ("warnings_per_1000=0", 0, ""),
        ("precision=0.6", 1, "precision is 0.5"),
    ],
)
def test_what_is_required_decides_the_exit_status(
    called: Called, write: Write, line: Line, asked: str, status: int, words: str
) -> None:
    """A score is no failure unless somebody says so; then it is said which figure fell short."""
    path = write(line(1, 20), line(1, 1, id="b"), line(1, 200, id="c", healthy=True))
    result = called("--require", asked, path)
    assert result.exit_code == status and words in result.stderr


def test_what_nothing_was_counted_for_is_not_met(called: Called, write: Write, line: Line) -> None:
    """No fault in the corpus proves no recall."""
    result = called("--require", "recall=0.1", write(line(1, 1, healthy=True)))
    assert result.exit_code == 1 and "no case to tell it by" in result.stderr


@pytest.mark.parametrize("asked", ["recal=1", "recall", "recall=much", "", "recall=1;x=2"])
def test_a_requirement_that_says_nothing_is_told(called: Called, write: Write, line: Line, asked: str) -> None:
    """A slip of the finger must not pass for a gate that holds."""
    error = called("--require", asked, write(line(1))).exception
    assert isinstance(error, SetupError) and "false_incidents" in str(error)


def test_several_processes_say_the_same(called: Called, write: Write, line: Line) -> None:
    """Faster, and in the same order."""
    path = write(*(line(1, 20 * (n % 2), id=f"F{n}", must_fire_by_step=2) for n in range(20)))
    assert called("--json", "--jobs", "2", path).stdout == called("--json", path).stdout


def test_the_same_corpus_gives_the_same_score(called: Called, write: Write, line: Line) -> None:
    """Whatever the time and the machine."""
    path = write(line(1, 20, "NaN"), line(1, 1, id="b", healthy=True))
    assert called("--json", path).stdout == called("--json", path).stdout


def test_help_shows_how_it_is_called() -> None:
    """Examples, and what the exit statuses mean."""
    text = CliRunner().invoke(gyrostat, ["backtest", "--help"]).stdout
    assert "gyrostat backtest cases.jsonl" in text and "Exit status 0" in text and "--require" in text
