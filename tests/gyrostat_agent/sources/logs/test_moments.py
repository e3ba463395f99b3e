"""Moments: the stamps of loggers as Unix seconds."""

import pytest

from gyrostat_agent.sources.logs.moments import moment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2026-01-02 03:04:05] x", 1767323045.0),
        (" [2026-01-02 03:04:05.678901] iteration", 1767323045.678901),
        ("[2026-01-02 03:04:05,678] [INFO]", 1767323045.678),
        ("2026-01-02T03:04:05Z", 1767323045.0),
        ("2026-01-02T11:04:05+08:00 x", 1767323045.0),
        ("2026-01-01T22:04:05.5-0500 x", 1767323045.5),
        ("2026-02-30 03:04:05", None),
        ("2026-01-02 33:04:05", None),
        ("2026-01-02T03:04:05+99:00", None),
        ("0000-01-02 03:04:05", None),
        ("9999-12-31 23:59:59", 253402300799.0),
        ("03:04:05 INFO", None),
        ("", None),
        (" " * 500 + "2026-01-02 03:04:05", None),
    ],
    ids=["seconds", "microseconds", "comma", "zulu", "zone", "zone-without-colon", "no-such-day", "no-such-hour",
         "no-such-zone", "year-0", "year-9999", "no-day", "empty", "far-away"],
)  # fmt: skip
def test_moment(text: str, expected: float | None) -> None:
    """Each spelling; what is no moment is none."""
    assert moment(text) == (None if expected is None else pytest.approx(expected))
