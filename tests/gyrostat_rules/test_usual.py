"""What is usual is found by short ways; they must give what the long way gives, to the last bit."""

import math
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from gyrostat_rules.detectors.spike import Spike, _is_near, _yard
from gyrostat_rules.detectors.usual import Usual, usual

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False) | st.sampled_from([0.0, 1.0, 1.5, -1.0, 1e-9])
POSITIVE = st.floats(1e-9, 1e6)


def long_way(values: list[float], *, log: bool, floor: float) -> Usual | None:
    """By the definition: every logarithm, every deviation."""
    positive = [v for v in values if v > 0] if log else []
    by_log = bool(positive) and len(positive) >= 0.9 * len(values)
    kept = [math.log(v) for v in positive] if by_log else values
    middle = median(kept)
    spread = 1.4826 * median([abs(v - middle) for v in kept])
    if by_log:
        return Usual(middle, max(spread, math.log1p(floor), 1e-12), True)
    spread = max(spread, floor * abs(middle))
    return Usual(middle, spread, False) if spread > 0 else None


@given(st.lists(NUMBERS, min_size=1, max_size=70) | st.lists(POSITIVE, min_size=1, max_size=70), st.booleans())
def test_the_short_way_to_what_is_usual_is_exact(values: list[float], log: bool) -> None:
    """Median and deviation are those of the definition, whatever the values are."""
    found, wanted = usual(values, log=log, floor=0.05), long_way(values, log=log, floor=0.05)
    assert (found is None) == (wanted is None)
    if found is not None and wanted is not None:
        assert (found.middle, found.log) == (wanted.middle, wanted.log)
        assert math.isclose(found.spread, wanted.spread, rel_tol=1e-15)


@given(st.lists(NUMBERS | POSITIVE, min_size=32, max_size=70), NUMBERS | POSITIVE, st.booleans(), st.floats(1, 40))
def test_no_spike_is_passed_by_on_the_cheap_way_out(
    before: list[float], newest: float, log: bool, limit: float
) -> None:
    """What is called near without being measured is near when it is measured."""
    params = Spike(series=("x",), z=limit, log=log)
    if _is_near(params, before, newest):
        yard = _yard(params, before, [newest])
        assert yard is None or yard.far[-1] <= yard.limit


def test_a_far_value_is_measured() -> None:
    """The cheap way out is no way out for what is far."""
    assert not _is_near(Spike(series=("x",)), [1.0] * 64, 1.4)
    assert _is_near(Spike(series=("x",)), [1.0] * 64, 1.2)
