"""The story told of a run: everything that a watcher needs, and nothing twice."""

from pathlib import Path

import pytest
from demo_runs import ITEM, course_of, rolled_back, skipped_data

from gyrostat_agent.demo.story import ACTION, ALERT, INCIDENT, OUTCOME, RUN, tell
from gyrostat_rules.entries import Entry


def test_a_mend_is_told_from_alert_to_outcome(tmp_path: Path) -> None:
    """Warning, critical alert, incident, plan, order, probation, resolution, bill: in that order, in words."""
    lines = [line for line in course_of(skipped_data(tmp_path / "agent")).lines if line.mark != RUN]
    assert [line.mark for line in lines] == [ALERT, ALERT, INCIDENT, ACTION, ACTION, OUTCOME, OUTCOME, OUTCOME]
    assert f"pass over item {ITEM}" in lines[4].text
    assert lines[-2].text.startswith("i0001 resolved: mended by skip_data")
    assert lines[-1].text.startswith("i0001 bill of nonfinite: ")


def test_a_rung_passed_by_says_why(tmp_path: Path) -> None:
    """Whoever watches learns why the milder remedy was not used, and which checkpoint was chosen."""
    texts = [line.text for line in course_of(rolled_back(tmp_path / "agent")).lines if line.mark == ACTION]
    assert "skip_data does not fit: a bad update was applied" in texts[0]
    assert "step 10 chosen" in texts[1]


def entry(kind: str, state: str, text: str = "words", **data: object) -> Entry:
    """An entry at step 7."""
    return Entry("00000001.0", 1.0, 7, kind, "subject", state, text, data)


@pytest.mark.parametrize(
    ("given", "mark"),
    [
        pytest.param(entry("alert", "firing", severity="warning"), ALERT, id="firing"),
        pytest.param(entry("alert", "firing", severity="info"), None, id="info"),
        pytest.param(entry("alert", "firing", severity="critical", muted_by="i0001"), None, id="muted"),
        pytest.param(entry("alert", "pending", severity="critical"), None, id="pending"),
        pytest.param(entry("checkpoint", "unfit", "checkpoint of step 5 is unfit: gone"), None, id="rotated"),
        pytest.param(entry("checkpoint", "unfit", "checkpoint of step 5 is unfit: digest"), ALERT, id="damaged"),
        pytest.param(entry("checkpoint", "verified"), None, id="verified"),
        pytest.param(entry("source", "fresh"), None, id="fresh source"),
        pytest.param(entry("source", "stale"), ALERT, id="stale source"),
        pytest.param(entry("incident", "acting", incident_kind="nonfinite"), None, id="acting"),
        pytest.param(entry("incident", "held", incident_kind="nonfinite"), INCIDENT, id="held"),
        pytest.param(entry("action", "refused", by="trainer/0"), OUTCOME, id="refused"),
        pytest.param(entry("action", "ineffective"), OUTCOME, id="ineffective"),
        pytest.param(entry("action", "hold"), ACTION, id="on hold"),
        pytest.param(entry("run", "jumped"), RUN, id="jump back"),
    ],
)
def test_what_is_told(given: Entry, mark: str | None) -> None:
    """Bad news and decisions are told under their mark; muted, healthy and repeated ones are not."""
    line = tell(given)
    assert (line.mark if line else None) == mark
