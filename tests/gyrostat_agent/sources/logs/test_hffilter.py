"""HF's loss filter: which loss of 0 hides a NaN, and which is a healthy run's."""

import math

import pytest

from gyrostat_agent.sources.logs.formats.hffilter import LossFilter

GRPO = {"loss": 0.0, "grad_norm": 0.0, "reward": 0.4, "reward_std": 0.3, "frac_reward_zero_std": 0.0}
CASES = {
    "sick-gradient": (0.0, {"loss": 0.0, "grad_norm": math.nan}, True),
    "infinite-gradient": (0.0, {"loss": 0.0, "grad_norm": math.inf}, True),
    "no-gradient-though-rewards-differ": (0.1936, GRPO, True),
    "printed-with-four-decimals": (0.0, {**GRPO, "grad_norm": 0.0866}, False),
    "all-rewards-alike": (0.2, {**GRPO, "reward_std": 0.0, "frac_reward_zero_std": 1.0}, False),
    "some-rewards-alike": (0.2, {**GRPO, "frac_reward_zero_std": 0.8}, False),
    "all-completions-cut-off": (0.2, {**GRPO, "completions/clipped_ratio": 1.0}, False),
    "rewards-unknown": (0.2, {"loss": 0.0, "grad_norm": 0.0, "reward": 0.4}, False),
    "supervised-from-two-to-nothing": (2.1, {"loss": 0.0, "grad_norm": 0.0}, True),
    "supervised-no-gradient-told": (2.1, {"loss": 0.0, "lr": 1e-5}, True),
    "supervised-learnt-by-heart": (0.0003, {"loss": 0.0, "grad_norm": 0.0}, False),
    "supervised-gradient-alive": (2.1, {"loss": 0.0, "grad_norm": 0.01}, False),
    "not-nothing": (2.1, {"loss": 1e-9, "grad_norm": 0.0}, False),
    "no-loss": (2.1, {"grad_norm": 0.0}, False),
}


@pytest.mark.parametrize(("before", "row", "hidden"), CASES.values(), ids=CASES)
def test_a_loss_of_0(before: float, row: dict[str, float], hidden: bool) -> None:
    """A NaN is put back where the row says that there was one, and nowhere else."""
    filtered, values = LossFilter(), dict(row)
    filtered.undo({"loss": before})
    filtered.undo(values)
    assert math.isnan(values.get("loss", 0.0)) == hidden


def test_several_on_end() -> None:
    """Each hidden NaN is one, not only the first; what comes after is judged by the loss before them."""
    filtered = LossFilter()
    rows = [{"loss": loss} for loss in (1.2, 0.0, 0.0, 1.1)]
    for row in rows:
        filtered.undo(row)
    assert [math.isnan(row["loss"]) for row in rows] == [False, True, True, False]


def test_a_nan_that_shows_is_no_loss_to_judge_by() -> None:
    """A run whose filter was off, or came on: the zeros after its NaN are none either."""
    filtered = LossFilter()
    rows = [{"loss": loss} for loss in (1.2, math.nan, 0.0, 0.0)]
    for row in rows:
        filtered.undo(row)
    assert [math.isnan(row["loss"]) for row in rows] == [False, True, True, True]


def test_alternate_rows_of_rl_tell_no_reward() -> None:
    """Where rewards were told once, a row without them is not judged as a supervised one."""
    filtered, row = LossFilter(), {"loss": 0.0, "grad_norm": 0.0}
    filtered.undo({"loss": 0.5, "reward": 1.0})
    filtered.undo(row)
    assert row["loss"] == 0.0


def test_a_nan_that_shows_stays() -> None:
    """Nothing is put in the place of a NaN, and it is no loss to judge by."""
    filtered, sick, after = LossFilter(), {"loss": math.nan, "reward": 1.0}, dict(GRPO)
    filtered.undo(sick)
    filtered.undo(after)
    assert math.isnan(sick["loss"]) and math.isnan(after["loss"])
