"""The timeline on a terminal, in a pipe, and where the encoding has no bars."""

from pathlib import Path

import pytest
from demo_runs import STEPS, course_of, paper, read_back, record, rolled_back, skipped_data

from gyrostat_agent.demo import strokes
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.progress import Progress
from gyrostat_agent.demo.sources import JournalSource
from gyrostat_agent.demo.terminal import open_console
from gyrostat_agent.demo.timeline import Timeline


def shown(journal: Path, encoding: str = "utf-8", width: int = 80, terminal: bool = False) -> str:
    """What the timeline prints of a whole run."""
    console, stream = paper(encoding, width, terminal)
    course = Course()
    with Timeline(console, STEPS) as timeline:
        timeline.show(course, course.take(JournalSource(journal).news()))
    return read_back(stream)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_plain_lines_fit_and_hold_no_control_codes(width: int, tmp_path: Path) -> None:
    """In a pipe each line is text alone and fits 80 columns, or 100 where there are more."""
    text = shown(rolled_back(tmp_path / "agent").journal, width=width)
    assert text.isprintable() is False and "\x1b" not in text and "\r" not in text
    assert max(map(len, text.split("\n"))) <= min(width, 100)


def test_every_step_and_every_word_of_the_story_is_printed(tmp_path: Path) -> None:
    """Nobody who reads the log of a demonstration misses a step or a decision."""
    recording = skipped_data(tmp_path / "agent")
    text = shown(recording.journal)
    words = " ".join(text.split())
    assert [int(line[:5]) for line in text.split("\n") if line[:5].strip().isdigit()] == list(range(1, STEPS + 1))
    assert all(" ".join(line.text.split()) in words for line in course_of(recording).lines)


def test_a_value_that_is_not_finite_is_seen(tmp_path: Path) -> None:
    """NaN and infinity are spelled and drawn; a skipped step says so."""
    lines = shown(skipped_data(tmp_path / "agent").journal).split("\n")
    bad = next(line for line in lines if line.startswith("   11 "))
    assert "inf" in bad and "nan" in bad and "x" in bad and bad.endswith("skipped")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_ascii_where_there_are_no_bars(encoding: str, tmp_path: Path) -> None:
    """A terminal whose encoding has no block characters gets bars of ASCII, not an error."""
    text = shown(skipped_data(tmp_path / "agent").journal, encoding)
    assert text.isascii() and "######" in text


def test_a_chinese_encoding_has_what_is_printed(tmp_path: Path) -> None:
    """zh_CN.GBK and UTF-8 terminals alike can show every character that is printed."""
    assert "11" in shown(skipped_data(tmp_path / "agent").journal, "gbk")


def test_a_terminal_has_a_footer_that_is_drawn_over(tmp_path: Path) -> None:
    """On a terminal the run as a whole stands below the lines, and is gone at the end."""
    text = shown(skipped_data(tmp_path / "agent").journal, terminal=True)
    assert "\x1b[" in text and f"of {STEPS}" in text and "checkpoint 10 verified" in text


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_a_terminal_that_declines_gets_plain_lines(setting: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR and TERM=dumb are obeyed on a terminal too, as --no-color is."""
    _, stream = paper()
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.setenv(name, setting.get(name, "xterm" if name == "TERM" else ""))
    open_console(stream=stream).print("words", style="bold red")
    open_console(no_color=True, stream=stream).print("words", style="bold red")
    assert read_back(stream) == "words\nwords\n"


def test_progress_is_told_now_and_then_and_at_the_end() -> None:
    """A run in the background gives a line every twenty steps and one when it ends, not one a look."""
    console, stream = paper()
    course = Course()
    with Progress(console, 40) as progress:
        for step in range(1, 41):
            course.take([record(step)])
            progress.show("clean", course, running=True)
        progress.show("clean", course, running=False)
    lines = read_back(stream).split("\n")
    assert [line.split("of")[0].split()[-1] for line in lines if line] == ["20", "40", "40"]
    assert lines[-2].endswith("done")


@pytest.mark.parametrize(
    ("values", "drawn"),
    [([0.0, 1.0], "   _#"), ([float("nan")], "    x"), ([], "     "), ([2.0] * 9, "_____")],
    ids=["rising", "not finite", "nothing yet", "all the same"],
)
def test_sparklines(values: list[float], drawn: str) -> None:
    """The newest values stand on the right, from the lowest character to the highest."""
    assert strokes.sparkline(strokes.ASCII, values, 5, strokes.span_of(values)) == drawn
