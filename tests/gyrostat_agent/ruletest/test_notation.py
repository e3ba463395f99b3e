"""A series' values as people write them: what each spelling says, and where one says nothing."""

import math

import pytest

from gyrostat_agent.ruletest.notation import MOST, spelled


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1 2 -3.5", [1, 2, -3.5]),
        ("1+0.5x3", [1, 1.5, 2, 2.5]),
        ("1-0.5x2", [1, 0.5, 0]),
        ("-1-1x1", [-1, -2]),
        ("0.5x2", [0.5, 0.5, 0.5]),
        ("7x0", [7]),
        ("_ 1 _x2", [None, 1, None, None]),
        ("Inf -Inf +inf", [math.inf, -math.inf, math.inf]),
        ("Infx1", [math.inf, math.inf]),
        ("1e-3 2E2 .5 5.", [0.001, 200, 0.5, 5]),
        ("1e-7+1e-7x1", [1e-7, 2e-7]),
    ],
    ids=["plain", "rising", "falling", "negative", "repeated", "not repeated", "gaps", "infinite", "infinities",
         "exponents", "exponent steps"],
)  # fmt: skip
def test_a_spelling_says_what_it_says_to_prometheus(text: str, values: list[float | None]) -> None:
    """``axn`` and ``a+bxn`` give n + 1 values and ``_xn`` n gaps, so that what is known from there holds here."""
    found = spelled(text)
    assert not found.slips and list(found.values) == pytest.approx(values)


def test_nan_is_told_as_nan() -> None:
    """The value that we are here for."""
    (value, *rest) = spelled("NaN nanx1").values
    assert value is not None and math.isnan(value) and len(rest) == 2


def test_noise_is_of_the_size_that_is_said_and_the_same_each_time() -> None:
    """A test that holds here holds elsewhere; another series has noise of its own."""
    values = [v for v in spelled("10~0.5x999", "loss").values if v is not None]
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    assert mean == pytest.approx(10, abs=0.1) and spread == pytest.approx(0.5, rel=0.1)
    assert spelled("10~0.5x999", "loss").values == tuple(values) != spelled("10~0.5x999", "kl").values


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("1x20 5y3 2", 6, "'5y3' says no values"),
        ("1 2 1+0.1", 5, "'1+0.1' does not say how often"),
        ("1~0.1", 1, "does not say how often"),
        ("1x-3", 1, "says no values"),
        ("_+1x3", 1, "says no values"),
        ("1x٣", 1, "says no values"),
        (f"1x{MOST}", 1, "more than"),
        ("1x9999999999", 1, "says no values"),
        (f"1x10 _x{MOST}", 6, "more than"),
        ("  ", 1, "no values"),
    ],
    ids=["a wrong letter", "no times", "noise without times", "negative times", "a gap that rises", "other digits",
         "too many", "far too many", "too many gaps", "nothing"],
)  # fmt: skip
def test_a_slip_is_told_with_its_place(text: str, place: int, what: str) -> None:
    """In a line of fifty values the wrong one is found by its place."""
    slip = spelled(text).slips[0]
    assert slip.place == place and what in slip.what and slip.fix


def test_all_slips_are_told_at_once() -> None:
    """Nobody mends one, runs, and is told of the next."""
    assert [slip.place for slip in spelled("a 1 b 2 c").slips] == [1, 5, 9]
