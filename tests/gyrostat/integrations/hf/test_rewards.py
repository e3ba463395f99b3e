"""What reward functions return, of every kind that TRL takes; they must return it unwatched too."""

import asyncio
import functools
import inspect
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.replacements import Replacements
from gyrostat.integrations.hf.rewards import Rewards


def returned(*functions: Any, call: Callable[[Any], Any] = lambda f: f()) -> dict[str, Any]:
    """What is told of one call of each of these reward functions; each must return what it returns unwatched."""
    trainer = SimpleNamespace(reward_funcs=list(functions), model=SimpleNamespace(training=True))
    rewards, replacements = Rewards(trainer, Notices()), Replacements()
    rewards.watch(replacements)
    for watched in trainer.reward_funcs:
        call(watched)
    replacements.undo()
    assert trainer.reward_funcs == list(functions)
    return rewards.take()


class Object:
    """A reward function that is an object."""

    def __call__(self) -> list[float]:
        return [1.0, 2.0]


VALUES: dict[str, Any] = {
    "list": [1.0, 2.0], "tuple": (1, 2), "with None": [1.0, None, 2.0], "tensor": torch.tensor([1.0, 2.0]),
    "array": np.array([1.0, 2.0]), "bfloat16": torch.tensor([1.0, 2.0], dtype=torch.bfloat16),
    "tensors": [torch.tensor(1.0), torch.tensor(2.0)], "numpy scalars": [np.float32(1.0), np.float64(2.0)],
}  # fmt: skip


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_rewards_of_any_kind_are_read(values: Any) -> None:
    """Whatever TRL takes."""

    def mine() -> Any:
        return values

    told = returned(mine)
    assert (told["returned/mine/rewards"], told["returned/mine/min"], told["returned/mine/max"]) == (1.5, 1.0, 2.0)
    assert (told["reward_finite"], told["reward_missing_fraction"]) == (1.0, 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_function_that_returns_nothing_finite_is_lost(bad: float) -> None:
    """Its mean is what it returned."""

    def mine() -> list[float]:
        return [bad, bad]

    told = returned(mine)
    assert told["returned/mine/rewards"] == pytest.approx(bad, nan_ok=True)
    assert (told["reward_finite"], told["reward_missing_fraction"]) == (0.0, 1.0)


def test_one_infinite_value_is_missing() -> None:
    """It shows in the span; the mean is that of the others."""

    def mine() -> list[float]:
        return [1.0, math.inf, 2.0, 3.0]

    told = returned(mine)
    assert (told["returned/mine/rewards"], told["returned/mine/max"], told["reward_missing_fraction"]) == (
        2.0,
        math.inf,
        0.25,
    )


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_nan_shows_wherever_it_stands(place: int) -> None:
    """In the span, and in the share of the worst function; another function that is well does not hide it."""

    def mine() -> list[float]:
        return [math.nan if i == place else 1.0 for i in range(4)]

    def well() -> list[float]:
        return [0.0] * 4

    told = returned(mine, well)
    assert math.isnan(told["returned/mine/min"])
    assert math.isnan(told["returned/mine/max"])
    assert (told["returned/mine/rewards"], told["reward_finite"], told["reward_missing_fraction"]) == (1.0, 7 / 8, 0.25)


def test_objects_and_partials_are_called_as_they_are() -> None:
    """TRL takes all that can be called; a partial has no name, and goes by its place."""

    def mine(value: float) -> list[float]:
        return [value]

    told = returned(Object(), functools.partial(mine, 3.0))
    assert [value for name, value in told.items() if name.endswith("/rewards")] == [1.5, 3.0]


def test_an_asynchronous_function_stays_one() -> None:
    """TRL awaits what says that it is asynchronous; an object whose call is, too."""

    class Later:
        async def __call__(self) -> list[float]:
            await asyncio.sleep(0)
            return [4.0]

    def call(function: Any) -> None:
        assert inspect.iscoroutinefunction(function)
        assert asyncio.run(function()) == [4.0]

    async def later(value: float) -> list[float]:
        return [value]

    told = returned(Later(), functools.partial(later, 4.0), call=call)
    assert (told["returned/0/rewards"], told["returned/1/rewards"]) == (4.0, 4.0)


def test_an_iterator_is_not_used_up(capsys: pytest.CaptureFixture[str]) -> None:
    """Looking at it would leave nothing for the trainer: it is said, and left alone."""
    left: list[float] = []

    def mine() -> Any:
        return (value for value in (1.0, 2.0))

    told = returned(mine, call=lambda f: left.extend(f()))
    assert left == [1.0, 2.0]
    assert told == {}
    assert "what reward function mine returns is not looked at: generator" in capsys.readouterr().err


def test_a_reward_that_raises_raises() -> None:
    """The trainer's own error is the trainer's."""

    def mine() -> None:
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        returned(mine)


def test_a_reward_model_is_read_from_its_logits() -> None:
    """As TRL reads it; it stays a module, for TRL asks."""

    class Scores(nn.Module):
        def forward(self) -> Any:
            return SimpleNamespace(logits=torch.tensor([[1.0], [2.0]]))

    told = returned(Scores())
    assert [float(told[f"returned/0/{part}"]) for part in ("rewards", "min", "max")] == [1.5, 1.0, 2.0]


def test_an_evaluation_is_no_step() -> None:
    """What is scored while the model does not train is told of no step."""
    trainer = SimpleNamespace(reward_funcs=[lambda: [1.0]], model=SimpleNamespace(training=False))
    rewards = Rewards(trainer, Notices())
    rewards.watch(Replacements())
    assert trainer.reward_funcs[0]() == [1.0]
    assert rewards.take() == {}
