"""Validations below the best that there was, memory that fills up, a KL that comes down of a dead policy."""

import random

import pytest
from number_run import Numbers, episodes, series

from gyrostat_rules.detectors.filling import Filling, filling
from gyrostat_rules.detectors.hollow import Hollow, hollow
from gyrostat_rules.detectors.regression import Regression, regression

CLIMB = [0.40, 0.45, 0.50, 0.55, 0.60, 0.61, 0.60]


def validated(values: list[float]) -> dict[int, int]:
    return Numbers(regression, Regression(("eval/accuracy",))).told(series("eval/accuracy", values)).alarms


def test_twice_below_the_best_is_told_since_the_first() -> None:
    """Once is weather."""
    assert validated([*CLIMB, 0.35, 0.34]) == {8: 7}
    assert not validated([*CLIMB, 0.35, 0.60])


def test_it_is_over_when_the_best_is_there_again() -> None:
    """A version that is as good as the best is one to keep."""
    assert set(validated([*CLIMB, 0.35, 0.34, 0.60, 0.60])) == {8}


@pytest.mark.parametrize("share", [0.03, 0.1, 0.25], ids=lambda share: f"noise of {share:.0%}")
def test_noise_is_no_regression(share: float) -> None:
    """Of 2,000 noisy validations of a policy that stays as it is at most two stretches are told."""
    told = 0
    for seed in range(50):
        dice = random.Random(seed)
        told += episodes(validated([max(0.0, dice.gauss(0.5, 0.5 * share)) for _ in range(40)]))
    assert told <= 2


def test_memory_without_a_total_is_not_judged() -> None:
    """Sixty of what?"""
    rows = [{"gpu_mem_gb": 50.0 + i} for i in range(40)]
    params = Filling(("gpu_mem_gb",), ("gpu_mem_total_gb",))
    assert not Numbers(filling, params).told(rows).alarms
    told = Numbers(filling, params).told({**row, "gpu_mem_total_gb": 90.0} for row in rows).alarms
    assert told and 20 <= min(told) < 34


@pytest.mark.parametrize("missing", ["reward", "truncated_fraction"])
def test_a_small_kl_alone_is_nothing(missing: str) -> None:
    """That the policy is dead is said by reward and answers, and by both."""
    kl = [0.02] * 20 + [5.0] * 3 + [0.2] * 9
    rows = [{"kl": v, "reward": 0.0, "truncated_fraction": 1.0} for v in kl]
    assert Numbers(hollow, Hollow()).told(rows).alarms
    assert not Numbers(hollow, Hollow()).told({n: v for n, v in row.items() if n != missing} for row in rows).alarms
