"""Numerals: every spelling that trainers print is the number it means, and nothing else is one."""

import math

import pytest

from gyrostat_agent.sources.logs.numerals import number, numbers

SPELT = {
    "1": 1.0, "-0.0113": -0.0113, "5.500000E-05": 5.5e-5, "1e-06": 1e-6, " 12 ": 12.0, "'0.0132'": 0.0132,
    '"3"': 3.0, "1,530": 1530.0, "12,345.5": 12345.5, "52.1%": 0.521, "1.2B": 1.2e9, "0.01K": 10.0, "3M": 3e6,
    "12.3GiB": 12.3, "61.20 GiB": 61.2, "31.20s": 31.2, "9ms": 9.0, "8.2s/it": 8.2, "np.float64(0.1873)": 0.1873,
    "np.float32(-1e-06)": -1e-6, "tensor(1.2345)": 1.2345, "tensor(3.5, device='cuda:0')": 3.5,
    "tensor(2., dtype=torch.float64)": 2.0, "True": 1.0, "false": 0.0, "inf": math.inf, "-inf": -math.inf,
    "Infinity": math.inf, "-Infinity": -math.inf, "INF": math.inf, "+inf": math.inf,
}  # fmt: skip
NAN = ["nan", "NaN", "NAN", "-nan", "null", "None", "N/A", "np.float64(nan)", "tensor(nan, device='cuda:0')", "'nan'"]
NONE = ["", "abc", "1.2.3", "7/900", "0:01:02", "1_000", "--", "1e", "tensor([1, 2])", "np.float64()", "1 2", "0x10",
        "2026-01-02", "v1.2", "()", "1%%", "nanx", "information"]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SPELT.items())
def test_each_spelling_is_its_number(text: str, value: float) -> None:
    """Quotes, wrappers, units, scales, commas: none of them changes the number."""
    assert number(text) == pytest.approx(value)


@pytest.mark.parametrize("text", NAN)
def test_each_spelling_of_nan_is_nan(text: str) -> None:
    """The one value that everything here is for."""
    assert math.isnan(number(text) or 0.0)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_number_is_none(text: str) -> None:
    """A date, a version or a fraction must not become a metric."""
    assert number(text) is None


def test_pairs_are_read_alike_with_and_without_a_word_among_them() -> None:
    """One that is no number does not take the others with it."""
    assert numbers([("a", "1"), ("b", "2")]) == {"a": 1.0, "b": 2.0}
    read = numbers([("a", "1"), ("b", "word"), ("c", "nan"), ("d", "7%")])
    assert {**read, "c": 0.0} == {"a": 1.0, "c": 0.0, "d": 0.07} and math.isnan(read["c"])


def test_a_long_text_costs_its_length_alone() -> None:
    """A megabyte of digits, commas or brackets is refused or read in no time."""
    for text in ("1," * 500_000, "(" * 500_000, "tensor(" * 100_000 + ")", "9" * 500_000 + "x"):
        assert number(text) is None or math.isinf(number(text) or 0.0)
