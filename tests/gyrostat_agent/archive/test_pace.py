"""The bandwidth that was asked for is kept."""

import math

import pytest

from gyrostat_agent.archive.pace import Pace, rate_of
from gyrostat_agent.errors import SetupError


class Clock:
    """Virtual seconds; sleeping moves them."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("part", [1, 1000, 8 << 20], ids=str)
@pytest.mark.parametrize("sending", [0.0, 0.05], ids=["line at once", "line takes time"])
def test_the_rate_is_kept(part: int, sending: float) -> None:
    """100 parts take the time that 99 of them are due, and no time that the line took is lost."""
    clock = Clock()
    pace = Pace(part * 10.0, clock, clock.sleep)
    for _ in range(100):
        pace.take(part)
        clock.now += sending
    assert clock.now == pytest.approx(9.9 + sending)


def test_what_was_not_used_is_not_saved_up() -> None:
    """After an hour without a byte no burst follows."""
    clock = Clock()
    pace = Pace(10.0, clock, clock.sleep)
    pace.take(10)
    clock.now += 3600
    began = clock.now
    for _ in range(5):
        pace.take(10)
    assert clock.now - began == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("said", "rate"),
    [("50MB", 50e6), ("800KB/s", 8e5), ("1.5GiB", 1.5 * 2**30), ("12", 12.0), ("", math.inf)],
)  # fmt: skip
def test_rates_are_read(said: str, rate: float) -> None:
    """As people write them."""
    assert rate_of(said) == rate


@pytest.mark.parametrize("said", ["fast", "-1MB", "0", "nan", "1e9", "5 Mbit"], ids=str)
def test_a_rate_that_is_none_is_one_sentence(said: str) -> None:
    """It says how to write one."""
    with pytest.raises(SetupError, match="write bytes a second as 50MB"):
        rate_of(said)
