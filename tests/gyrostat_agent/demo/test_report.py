"""The report: one page, whole, offline, safe, and of the run that was shown."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from demo_runs import comparison_of, course_of, rolled_back, skipped_data

from gyrostat_agent.demo import report
from gyrostat_agent.demo.charts import CHARTS, draw, marks

EVIL = "<script>alert('&')</script>\"'"


@pytest.fixture
def html(tmp_path: Path) -> str:
    """The report of a run that went back."""
    shown = comparison_of(course_of(rolled_back(tmp_path / "agent")), scenario="nan_applied")
    return report.write(shown, tmp_path).read_text(encoding="utf-8")


def test_the_page_needs_nothing_from_outside(html: str) -> None:
    """It opens offline: no address, no script, no image or style sheet to fetch."""
    assert not re.search(r"https?:|//[a-z]|<script|<link|<img|<iframe|\ssrc=|\shref=|url\(|@import", html)
    assert "$" not in re.sub(r"<pre>.*?</pre>", "", html, flags=re.DOTALL)


def test_the_page_is_well_formed(html: str) -> None:
    """Every element that is opened is closed again, in order."""
    stack: list[str] = []

    class Balance(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "br", "hr"):
                stack.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            assert stack.pop() == tag

    Balance().feed(html)
    assert stack == []


def test_the_story_and_the_comparison_are_in_it(html: str) -> None:
    """What was decided, why, and what came of it stand on the page, and how to go on from there."""
    for words in ("skip_data does not fit", "step 10 chosen", "resolved: mended by rollback", "gyrostat run --run-dir"):
        assert words in html


def test_whatever_a_run_says_is_escaped(tmp_path: Path) -> None:
    """Text out of a run, and the folder's name, can put no element and no attribute into the page."""
    course = course_of(skipped_data(tmp_path / "agent"))
    course.lines = [line._replace(text=EVIL) for line in course.lines]
    course.cases["i0001"].deeds["i0001.1"].remedy = EVIL
    course.cases["i0001"].kind = EVIL
    page = report.page(comparison_of(course, died=EVIL), EVIL)
    assert "<script" not in page and "alert(" in page


@pytest.mark.parametrize("chart", CHARTS, ids=lambda c: c.title)
def test_charts_show_all_runs_and_what_is_not_finite(chart: object, tmp_path: Path) -> None:
    """Each chart is whole SVG with a line a run; the undone stretch and the numbers that are not finite are seen."""
    shown = comparison_of(course_of(rolled_back(tmp_path / "agent")))
    known = next(c for c in CHARTS if c is chart)
    picture = ET.fromstring(draw(known, shown))
    styles = [element.get("class") for element in picture.iter("polyline")]
    assert {"run clean", "run untreated", "run treated"} <= set(styles)
    crosses = [str(element.get("class")) for element in picture.iter("path")]
    assert sorted(crosses) == ([] if known.title == "Entropy" else ["odd treated", "odd untreated"])
    assert all(0 <= float(e.get("x1", 0)) <= 760 for e in picture.iter("line"))


def test_marks_tell_fault_firing_action_and_resolution(tmp_path: Path) -> None:
    """The charts carry a mark for each turn of the story, at its step."""
    recording = skipped_data(tmp_path / "agent")
    [incident] = recording.incidents
    shown = comparison_of(course_of(recording))
    assert [(m.kind, m.step) for m in marks(shown)] == [
        ("fault", 11), ("fired", incident.fired_step), ("action", 13), ("resolved", incident.resolved_step),
        ("died", 11),
    ]  # fmt: skip
