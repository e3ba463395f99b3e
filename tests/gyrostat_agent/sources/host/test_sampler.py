"""The sampler: one sample at a time, at the caller's seconds, in a thread that nothing ends."""

import threading
import time

from gyrostat_agent.sources.rates import Rates
from gyrostat_agent.sources.sampler import Sampler


class Taker:
    """Gives the time it was asked at, once it may."""

    def __init__(self) -> None:
        self.may, self.rang, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.threads: set[int] = set()
        self.fails = False

    def take(self, now: float) -> float:
        self.threads.add(threading.get_ident())
        assert self.may.wait(20)
        if self.fails:
            raise OSError("no such device")
        return now

    def sampler(self) -> Sampler[float]:
        return Sampler(self.take, self.ended.set, 1.0, self.rang.set)


def test_a_sample_comes_by_the_next_call() -> None:
    """The loop asks, goes on, and is woken."""
    taker = Taker()
    sampler = taker.sampler()
    assert sampler.drain(10.0) == [] and sampler.drain(10.5) == [] and sampler.drain(15.0) == []
    assert sampler.waiting(15.0) == 5.0
    taker.may.set()
    assert taker.rang.wait(20)
    assert sampler.waiting(15.0) == 0.0
    assert sampler.drain(15.5) == [10.0]
    taker.rang.clear()
    assert taker.rang.wait(20) and sampler.drain(15.6) == [15.5]
    assert taker.threads and threading.get_ident() not in taker.threads and len(taker.threads) == 1
    sampler.close()
    assert taker.ended.is_set()


def test_a_sample_that_fails_is_told_and_the_next_is_taken() -> None:
    """A fault of one second is not the end of looking."""
    taker = Taker()
    sampler = taker.sampler()
    taker.may.set()
    taker.fails = True
    sampler.drain(10.0)
    assert taker.rang.wait(20)
    taker.rang.clear()
    (fault,) = sampler.drain(10.0)
    assert isinstance(fault, OSError) and "no such device" in str(fault)
    taker.fails = False
    sampler.drain(11.0)
    assert taker.rang.wait(20) and sampler.drain(11.0) == [11.0]
    sampler.close()


def test_one_that_never_looked_is_closed_too() -> None:
    """What was opened beforehand is let go of."""
    taker = Taker()
    taker.sampler().close()
    assert taker.ended.is_set() and not taker.threads


def test_closing_does_not_wait_for_a_device_that_hangs() -> None:
    """An agent that is told to end ends; the thread ends when the device lets it."""
    taker = Taker()
    sampler = taker.sampler()
    sampler.drain(10.0)
    began = time.monotonic()
    sampler.close()
    assert time.monotonic() - began < 5.0 and not taker.ended.is_set()
    taker.may.set()
    assert taker.ended.wait(20)


def test_a_rate_is_growth_by_time() -> None:
    """And none is made of a first value, of a counter that began anew, or of a clock that stood still."""
    rates = Rates()
    told = [
        rates.of("bytes", count, now) for count, now in ((10, 1), (30, 2), (30, 4), (5, 5), (9, 5), (10, 4), (12, 6))
    ]
    assert told == [None, 20.0, 0.0, None, None, None, 1.0]
    assert rates.of("others", 7, 6) is None
