"""Histograms of an interval, and what can be read from them."""

import math

import pytest

from gyrostat_agent.sources.buckets import Buckets, added, described, quantile, since

BOUNDS = (1.0, 2.0, 4.0)


@pytest.mark.parametrize(
    ("counts", "share", "value"),
    [
        ((10, 0, 0, 0), 0.5, 0.5),  # evenly from 0 to the first bound
        ((10, 10, 0, 0), 0.5, 1.0),
        ((10, 10, 0, 0), 0.99, 1.98),
        ((0, 0, 10, 0), 0.5, 3.0),
        ((0, 0, 0, 10), 0.99, 4.0),  # above the last bound nothing is known
        ((98, 1, 0, 1), 0.99, 2.0),
        ((0, 0, 0, 0), 0.5, math.nan),
    ],
)
def test_quantiles_are_those_of_prometheus(counts: tuple[float, ...], share: float, value: float) -> None:
    """Worked out by hand, as histogram_quantile does."""
    assert quantile(Buckets(BOUNDS, counts), share) == pytest.approx(value, nan_ok=True)


def test_bounds_below_zero() -> None:
    """The first bucket then begins at its bound."""
    assert quantile(Buckets((-1.0, 1.0), (5, 5, 0)), 0.25) == -1.0


def test_an_interval_is_the_difference() -> None:
    """Of two readings that only grow."""
    before, now = Buckets(BOUNDS, (5, 0, 1, 0), 9.0), Buckets(BOUNDS, (5, 4, 1, 0), 15.0)
    assert since(now, before) == Buckets(BOUNDS, (0, 4, 0, 0), 6.0)


@pytest.mark.parametrize(
    "before",
    [None, Buckets((1.0,), (9, 9), 9.0), Buckets(BOUNDS, (0, 0, 2, 0), 9.0)],
    ids=["unknown", "other bounds", "begun anew"],
)
def test_without_a_reading_to_compare_all_of_it_is_new(before: Buckets | None) -> None:
    """A process that began anew has counted all it shows since then."""
    now = Buckets(BOUNDS, (5, 4, 1, 0), 15.0)
    assert since(now, before) == now


def test_several_engines_are_added() -> None:
    """Those that share the first one's bounds."""
    rows = [Buckets(BOUNDS, (1, 2, 3, 4), 1.0), Buckets((9.0,), (1, 1), 1.0), Buckets(BOUNDS, (1, 0, 0, 0), 2.0)]
    assert added(rows) == Buckets(BOUNDS, (2, 2, 3, 4), 3.0)


@pytest.mark.parametrize(
    ("interval", "names"),
    [
        (Buckets(BOUNDS, (0, 0, 0, 0), 0.0), set()),
        (Buckets(BOUNDS, (1, 0, 0, 0), math.nan), {"t/p50", "t/p99"}),
        (Buckets(BOUNDS, (1, 0, 0, 0), 0.5), {"t/p50", "t/p99", "t/mean"}),
        (Buckets((), (4,), 8.0), {"t/mean"}),
    ],
    ids=["nothing came", "no sum", "all", "no buckets"],
)
def test_only_what_is_known_is_told(interval: Buckets, names: set[str]) -> None:
    """A quantile of nothing is absent, not NaN: nobody measured anything."""
    assert set(described("t", interval)) == names


@pytest.mark.parametrize("odd", [math.inf, math.nan, 1e308])
def test_numbers_out_of_the_world_do_not_raise(odd: float) -> None:
    """Whatever a page says."""
    rows = [Buckets(BOUNDS, (odd, odd, 1, 0), odd), Buckets(BOUNDS, (1, odd, 1, 0), -odd)]
    described("t", added(rows))
    since(*rows)
