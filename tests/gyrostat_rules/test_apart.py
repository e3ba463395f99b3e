"""A reward that rises while what it stands for falls; one that does either alone is no hack."""

import pytest
from number_run import Numbers

from gyrostat_rules.detectors.apart import Apart, apart

NOISE = (0.0, 0.03, -0.02, 0.01, -0.03, 0.02)


def run(rewards: list[float], lengths: list[float], name: str = "response_length") -> Numbers:
    """A detector over a reward and what goes with it."""
    params = Apart(("reward",), ("response_length", "any validation score", "any checked reward"))
    rows = [{"reward": reward, name: length} for reward, length in zip(rewards, lengths, strict=True)]
    return Numbers(apart, params).told(rows)


def quiet(level: float, count: int = 12) -> list[float]:
    """A series of the usual noise."""
    return [level * (1 + NOISE[place % len(NOISE)]) for place in range(count)]


@pytest.mark.parametrize(
    "name", ["response_length", "val/test_score/gsm8k/reward/mean@1", "eval_accuracy", "rewards/accuracy_reward"]
)
def test_a_rise_beside_a_fall_is_told(name: str) -> None:
    """Whatever it is called that should have gone with the reward."""
    story = run([*quiet(0.6), 0.8], [*quiet(0.4), 0.1], name)
    assert story.alarms == {12: 12}
    assert story.last[0].labels["series"] == name


@pytest.mark.parametrize(
    ("rewards", "lengths"),
    [
        pytest.param([*quiet(0.6), 0.8], quiet(400.0, 13), id="the reward alone"),
        pytest.param(quiet(0.6, 13), [*quiet(400.0), 100.0], id="the other alone"),
        pytest.param([*quiet(0.6), 0.3], [*quiet(400.0), 100.0], id="both fall"),
        pytest.param([*quiet(0.6), 0.65], [*quiet(400.0), 100.0], id="hardly higher"),
        pytest.param([0.6, 0.8], [400.0, 100.0], id="too young"),
        pytest.param([*quiet(-0.6), 0.8], [*quiet(400.0), 100.0], id="a score that was negative"),
    ],
)
def test_what_is_no_hack(rewards: list[float], lengths: list[float]) -> None:
    """Each half of it alone is another rule's, or nobody's."""
    assert not run(rewards, lengths).alarms
