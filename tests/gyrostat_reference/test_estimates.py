import json
import math
from typing import Any

import pytest
import torch
from torch import Generator

from gyrostat_reference.estimates import Estimates
from gyrostat_reference.gepo import Band
from gyrostat_reference.opefo import Flow
from gyrostat_reference.pivotrl import Pivot, Pool
from gyrostat_reference.running import Running, of_rank
from gyrostat_reference.task import EQUALS, FIRST_COUNT, VOCABULARY

THIRD = 1 / 3  # no short decimal: a rounded number would show
LIVED = Estimates(
    THIRD,
    Band(-0.1 * THIRD, 1.7, 12, 0.7999999999999999),
    Flow(THIRD, (1.1, 5e-324, 0.1 + 0.2), 0.004, 0.9, -THIRD),
    Pool((Pivot((FIRST_COUNT, 3, EQUALS, 2), 17), Pivot((FIRST_COUNT + 2, 0, EQUALS), 511)), 10, THIRD, 0.2, 1),
    {"reward_average": 0.1 + 0.2, "entropy_average": -0.0},
    warm_from=40,
    noise_since=-1,
)


def _json(estimates: Estimates) -> Any:
    """As a checkpoint has it: JSON without NaN."""
    return json.loads(json.dumps(estimates.encode(), allow_nan=False))


@pytest.mark.parametrize("estimates", [pytest.param(LIVED, id="lived"), pytest.param(Estimates(), id="fresh")])
def test_estimates_come_back_bit_for_bit(estimates: Estimates) -> None:
    """Through JSON every number is the same to the last bit, and NaN, which is null there, is NaN again."""
    assert repr(Estimates.decode(_json(estimates))) == repr(estimates)


def test_what_is_not_there_yet_is_null() -> None:
    """A checkpoint is JSON that every reader takes, and none takes NaN."""
    raw = _json(Estimates())
    assert raw["sigma"] is None and raw["band"] == [None, None, 0, None]
    assert math.isnan(Estimates.decode(raw).sigma)


@pytest.mark.parametrize(
    ("where", "nonsense"),
    [
        pytest.param(("sigma",), "0.5", id="text for a number"),
        pytest.param(("sigma",), True, id="truth for a number"),
        pytest.param(("sigma",), math.inf, id="infinity"),
        pytest.param(("sigma",), 10**400, id="beyond every float"),
        pytest.param(("band",), [0.1, 0.2, 3], id="a short band"),
        pytest.param(("band",), None, id="no band"),
        pytest.param(("band", 2), -1, id="fewer than no batches"),
        pytest.param(("band", 2), 1.5, id="half a batch"),
        pytest.param(("flow",), [], id="a list for a flow"),
        pytest.param(("flow", "first"), 3, id="a number for the first entropies"),
        pytest.param(("flow", "first"), ["a"], id="text among the first entropies"),
        pytest.param(("flow", "first"), [None], id="nothing among the first entropies"),
        pytest.param(("flow", "alpha"), {}, id="an object for the bonus"),
        pytest.param(("pool",), [10, 0.4, 0.2], id="a short pool"),
        pytest.param(("pool", 0), None, id="profiled at no step"),
        pytest.param(("pivots",), [[[FIRST_COUNT, 3], 17]], id="a prefix shorter than a prompt"),
        pytest.param(("pivots",), [[[], 17]], id="an empty prefix"),
        pytest.param(("pivots",), [[[FIRST_COUNT, 3, EQUALS, 1, 2, 3, 4], 17]], id="a prefix that is a whole answer"),
        pytest.param(("pivots",), [[[FIRST_COUNT, 3, VOCABULARY], 17]], id="a token that there is not"),
        pytest.param(("pivots",), [[[FIRST_COUNT, 3, EQUALS], -1]], id="an item that there is not"),
        pytest.param(("averages",), [1.0], id="a list for the averages"),
        pytest.param(("averages", "reward_average"), None, id="nothing for an average"),
        pytest.param(("warm_from",), -1, id="a warm-up before the start"),
        pytest.param(("noise_since",), -2, id="noise before it is off"),
    ],
)
def test_nonsense_is_refused(where: tuple[Any, ...], nonsense: object) -> None:
    """A damaged checkpoint is refused when it is read, by an error that the reader knows."""
    raw = place = _json(LIVED)
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = nonsense
    with pytest.raises((ValueError, KeyError, TypeError)):
        Estimates.decode(raw)


@pytest.mark.parametrize("name", sorted(LIVED.encode()))
def test_missing_part_is_refused(name: str) -> None:
    """Nothing is filled in by default: an estimate that is silently fresh would judge the run anew."""
    raw = _json(LIVED)
    del raw[name]
    with pytest.raises(KeyError):
        Estimates.decode(raw)


def _running(seed: int) -> Running:
    return Running.of(Generator().manual_seed(seed), LIVED)


def _draws(running: Running) -> list[float]:
    random = Generator()
    running.put_into(random)
    return torch.rand(8, generator=random).tolist()


def test_running_goes_on_drawing_where_it_was() -> None:
    """Through JSON, the next random numbers are those that would have come."""
    random = Generator().manual_seed(3)
    torch.randn(5, generator=random)
    raw = json.loads(json.dumps(Running.of(random, LIVED).encode(), allow_nan=False))
    back = Running.decode(raw)
    assert _draws(back) == torch.rand(8, generator=random).tolist()
    assert back.estimates == LIVED


@pytest.mark.parametrize("random", ["", "00", "no hex", "ff" * 5056, 7, None])
def test_state_of_no_generator_is_refused(random: object) -> None:
    """It would end the first draw, long after the checkpoint was taken for whole."""
    with pytest.raises((ValueError, KeyError, TypeError, RuntimeError)):
        Running.decode(_running(0).encode() | {"random": random})


def test_same_world_takes_up_its_own() -> None:
    """Each rank of as many as before goes on with what was its."""
    ranks = [_running(0), _running(1)]
    assert [of_rank(ranks, rank, 2) for rank in range(2)] == ranks


@pytest.mark.parametrize("world", [1, 3, 300])
def test_another_world_draws_anew_and_each_rank_its_own(world: int) -> None:
    """No two ranks draw the same rollouts, none those of the old ranks, and all know what was estimated."""
    old = [_running(0), _running(1)]
    new = [of_rank(old, rank, world) for rank in range(world)]
    assert len({running.random for running in (*new, *old)}) == world + 2
    assert all(running.estimates == LIVED for running in new)
    assert [of_rank(old, rank, world) for rank in range(world)] == new
