"""The comparison, the verdict and the figures of --json."""

import json
from pathlib import Path

import pytest
from demo_runs import DIED, FAULT, STEPS, comparison_of, course_of, paper, read_back, rolled_back, skipped_data

from gyrostat_agent.demo import comparison
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.mending import mending
from gyrostat_agent.demo.sources import JournalSource


def test_a_mended_run_is_told_as_mended(tmp_path: Path) -> None:
    """The verdict names the remedy, its step, the reward beside the clean one, and the untreated death."""
    shown = comparison_of(course_of(skipped_data(tmp_path / "agent")))
    assert mending(shown).mended
    assert comparison.verdict(shown) == (
        "Mended: skip_data at step 13, and the run reached step 30 at reward 0.755 (clean 0.755; steps lost: 2);"
        " untreated it died after step 11."
    )


@pytest.mark.parametrize("how", ["died", "no incident", "not at the end", "unresolved"])
def test_what_is_not_mended_is_never_called_so(how: str, tmp_path: Path) -> None:
    """A death, a silent sidecar, a run cut short or an open incident: the verdict says which."""
    course = Course() if how == "no incident" else course_of(skipped_data(tmp_path / "agent"))
    if how == "not at the end":
        course.points.pop()
    if how == "unresolved":
        course.cases["i0001"].state = "held"
    shown = comparison_of(course, died=DIED if how == "died" else "")
    assert not mending(shown).mended
    assert comparison.verdict(shown).startswith("Not mended: ")


def test_json_has_the_figures_of_every_run(tmp_path: Path) -> None:
    """Rewards, null for a death; incidents with every rung, those passed by too; what was lost."""
    shown = comparison_of(course_of(rolled_back(tmp_path / "agent")), scenario="nan_applied")
    figures = json.loads(json.dumps(comparison.as_json(shown), allow_nan=False))
    assert figures["clean"] == pytest.approx(0.755) and figures["untreated"] is None
    assert figures["treated"] == pytest.approx(0.755)
    assert (figures["scenario"], figures["seed"], figures["lost_steps"], figures["seconds"]) == (
        "nan_applied",
        0,
        1,
        24.0,
    )
    assert figures["incidents"] == [
        {
            "kind": "nonfinite", "onset_step": 11, "fired_step": 11, "resolved_step": 21,
            "actions": [
                {"rung": 1, "remedy": "skip_data", "verdict": "deny", "outcome": "", "applied_step": None},
                {"rung": 2, "remedy": "rollback", "verdict": "allow", "outcome": "done", "applied_step": 12},
            ],
        }
    ]  # fmt: skip


def test_json_says_whether_it_was_mended_and_why(tmp_path: Path) -> None:
    """What the table of results is made of: the judgement, its reason, the steps gone back to, and the run's length."""
    figures = comparison.as_json(comparison_of(course_of(rolled_back(tmp_path / "agent")), scenario="nan_applied"))
    assert (figures["mended"], figures["why"]) == (True, f"rollback at step {FAULT + 1}")
    assert (figures["went_back_to"], figures["steps"], figures["fault_step"]) == ([FAULT - 1], STEPS, FAULT)


def test_json_says_why_it_was_not_mended(tmp_path: Path) -> None:
    """The same keys, the reason in words, and no step where the run never went back."""
    shown = comparison_of(course_of(skipped_data(tmp_path / "agent")), died="out of memory")
    figures = json.loads(json.dumps(comparison.as_json(shown), allow_nan=False))
    assert (figures["mended"], figures["went_back_to"], figures["treated"]) == (False, [], None)
    assert figures["why"] == "with the sidecar the run still died: out of memory"


def test_an_incident_that_goes_on_has_no_resolved_step(tmp_path: Path) -> None:
    """Not resolved is null, never a number that reads as a step."""
    recording = skipped_data(tmp_path / "agent")
    course = Course()
    for one in JournalSource(recording.journal).news():
        course.take([one])
        if course.step == STEPS - 10:
            break
    assert comparison.as_json(comparison_of(course))["incidents"][0]["resolved_step"] is None


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_table_fits_eighty_columns(encoding: str, tmp_path: Path) -> None:
    """Three runs side by side fit the narrowest terminal that people use, in its own characters."""
    console, stream = paper(encoding)
    comparison.show(console, comparison_of(course_of(rolled_back(tmp_path / "agent"))))
    text = read_back(stream)
    assert max(map(len, text.split("\n"))) <= 80
    assert all(word in text for word in ("clean", "untreated", "treated", "rollback: done", "steps lost"))
