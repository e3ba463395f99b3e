"""For how long a page has been the same: by its bytes and the clock that it was asked by."""

from gyrostat_agent.sources.repeats import Repeats


def test_it_is_counted_from_the_first_of_the_same_pages() -> None:
    """One changed digit begins anew."""
    repeats = Repeats()
    pages = [(b"power 71.2", 100.0), (b"power 71.2", 130.0), (b"power 71.3", 160.0), (b"power 71.3", 250.0)]
    assert [repeats.seconds(body, at) for body, at in pages] == [0.0, 30.0, 0.0, 90.0]


def test_a_clock_that_is_set_back_begins_anew() -> None:
    """And no age is below 0."""
    repeats = Repeats()
    assert [repeats.seconds(b"same", at) for at in (1000.0, 400.0, 430.0)] == [0.0, 0.0, 30.0]
