"""Lines: whatever wrote them and however they are cut, each comes once, whole and bare."""

import random

import pytest

from gyrostat_agent.sources.logs import lines
from gyrostat_agent.sources.logs.lines import Line, Lines, clean


def texts(*chunks: bytes) -> list[str]:
    """The lines of a stream that comes in these pieces."""
    cutter = Lines()
    found = [line.text for chunk in chunks for line in cutter.feed(chunk)]
    return [*found, *(line.text for line in cutter.end())]


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"plain", Line("plain")),
        (b"\x1b[31mstep: 12  \x1b[38;2;180;60;0mloss: 3.1\x1b[39m", Line("step: 12  loss: 3.1")),
        (b"\x1b[36m(TaskRunner pid=4711)\x1b[0m step:12 - a:1", Line("step:12 - a:1", -1, "TaskRunner")),
        (b"(main_task pid=812, ip=10.0.0.7) step:0 - a:1", Line("step:0 - a:1", -1, "main_task")),
        (b"[rank3]:[titan] step: 12", Line("[titan] step: 12", 3)),
        (b"[default0]: [rank1]: x", Line("x", 1)),
        (b"[default7]:x", Line("x", 7)),
        (b"0: iteration 5", Line("iteration 5", 0)),
        (b"node-17: iteration 5", Line("iteration 5")),
        (b"(A pid=1) loss 1 [repeated 7x across cluster]", Line("loss 1", -1, "A")),
        (b"\xef\xbb\xbfstep 1", Line("step 1")),
        ("损失: 0.5".encode(), Line("损失: 0.5")),
        ("损失".encode("gbk"), Line("\ufffd\ufffd\u02a7")),
        (b"[2026-01-02 03:04:05] iteration 5", Line("[2026-01-02 03:04:05] iteration 5")),
        (b"[5]", Line("[5]")),
        (b"http://host: no prefix", Line("http://host: no prefix")),
        (b"step 3: loss 5", Line("step 3: loss 5")),
        (b"Step12: loss 5", Line("Step12: loss 5")),
        (b"(not a prefix) x", Line("(not a prefix) x")),
        (b"", Line("")),
    ],
)  # fmt: skip
def test_prefixes_and_colours_are_taken_off(raw: bytes, line: Line) -> None:
    """What Ray, torchrun, a launcher or a terminal added is gone; the rank is kept, and all of the line itself."""
    assert clean(raw) == line


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_what_a_shell_of_windows_wrote_is_read(encoding: str) -> None:
    """PowerShell redirects in UTF-16: every line, the first with its mark of byte order too."""
    text = "step:1 - loss:nan\r\nstep:2 - loss:0.5\r\n"
    assert texts(text.encode(encoding)) == ["step:1 - loss:nan", "step:2 - loss:0.5"]


def test_a_hole_costs_no_line() -> None:
    """A log that was cut to nothing while its writer went on begins with zeros, up to where that stood."""
    assert texts(b"\0" * 5000 + b"step:9 - loss:nan\n") == ["step:9 - loss:nan"]


def test_a_carriage_return_ends_a_line() -> None:
    """The numbers are the tail behind a progress bar that was drawn many times."""
    assert texts(b"10%|#  | 1/9\r20%|## | 2/9\r\n{'loss': 1}\n") == ["10%|#  | 1/9", "20%|## | 2/9", "{'loss': 1}"]


@pytest.mark.parametrize("seed", range(20))
def test_it_does_not_matter_where_a_stream_is_cut(seed: int) -> None:
    """A line that comes in pieces, one byte at a time at worst, is one line; an end of \\r\\n cut in two is one end."""
    text = b"first\r\nsecond\rthird\n\n\nfourth \xe6\x8d\x9f\nhalf a line"
    where = sorted(random.Random(seed).sample(range(len(text)), 8))
    pieces = [text[a:b] for a, b in zip([0, *where], [*where, len(text)], strict=True)]
    assert texts(*pieces) == texts(text) == ["first", "second", "third", "fourth 损", "half a line"]


def test_a_line_without_end_costs_a_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 MB without a newline: its beginning is given once, the rest is passed over, what follows is read."""
    monkeypatch.setattr(lines, "MOST", 1000)
    cutter = Lines()
    found = [line for _ in range(200) for line in cutter.feed(b"x" * 500)]
    assert cutter.held <= 1500
    found += cutter.feed(b"yyy\nnext\n")
    assert [len(line.text) for line in found] == [1000, 4] and cutter.cut == 1
    assert found[-1].text == "next"


def test_whatever_the_bytes_are_nothing_is_raised() -> None:
    """Binary junk, half an escape, NUL: lines all the same."""
    rng = random.Random(1)
    for _ in range(300):
        junk = rng.randbytes(200)
        assert texts(junk, b"\x1b[", rng.randbytes(50), b"\nstep 7\n")[-1] == "step 7"  # and what follows is read
