import math
from pathlib import Path
from typing import Any

import pytest

from gyrostat_reference.ranks import Alone, joined


@pytest.fixture
def numbers(trained: Any) -> list[dict[str, Any]]:
    """What two ranks were told by the small collectives."""
    _, found = trained("ddp", 2)
    return list(found)


def test_sums_are_the_same_bits_on_every_rank(numbers: list[dict[str, Any]]) -> None:
    """Ranks that steer by a sum steer alike; a NaN of one rank is a NaN for all."""
    assert numbers[0]["sums"] == numbers[1]["sums"]
    plain, poisoned, cancelled, count = map(float.fromhex, numbers[0]["sums"])
    assert (plain, cancelled, count) == (0.1 + 0.2, 0.0, 2.0)
    assert math.isnan(poisoned)


def test_bytes_come_in_rank_order(numbers: list[dict[str, Any]]) -> None:
    """Bytes of any length come through whole, none at all among them."""
    assert [each["gathered"] for each in numbers] == [["", "01"]] * 2
    assert [each["nothing"] for each in numbers] == [["", ""]] * 2


def test_nan_is_the_largest(numbers: list[dict[str, Any]]) -> None:
    """A NaN is seen by all, whichever rank has it: a maximum that drops it would hide the fault."""
    assert [each["largest"] for each in numbers] == [1.0, 1.0]
    assert all(math.isnan(value) for each in numbers for value in each["largest of nan"])


def test_two_threads_have_two_groups(numbers: list[dict[str, Any]]) -> None:
    """What a checkpoint's thread asks never answers what the training asked."""
    assert [each["two threads"] for each in numbers] == [True, True]


def test_hung_rank_ends_the_wait(launched: Any, tmp_path: Path) -> None:
    """A rank that is alive and silent costs the timeout, and the message says who waited, and how long."""
    (found,) = launched("hung", "ddp", 2, tmp_path, ends=False)
    assert found["lost"].startswith("RankLost: rank 0 of 2: another rank is gone, or did not answer within 2 s (")
    assert 1.0 < found["seconds"] < 15.0


def test_one_process_needs_no_group() -> None:
    """Without torchrun, or with one rank of it, nothing of torch.distributed is touched."""
    for environ in ({}, {"WORLD_SIZE": "1", "RANK": "0"}):
        ranks = joined(environ)
        assert isinstance(ranks, Alone)
        assert (ranks.sums([1, math.inf]), ranks.gathered(b"x"), ranks.largest(2)) == ([1.0, math.inf], [b"x"], 2.0)
        assert ranks.aside() is ranks
        ranks.close()


@pytest.mark.parametrize(
    ("environ", "what"),
    [
        pytest.param({"WORLD_SIZE": "2", "RANK": "0"}, "'MASTER_PORT' is missing", id="no-port"),
        pytest.param({"WORLD_SIZE": "2", "RANK": "x", "MASTER_PORT": "1"}, "'x' is missing or no number", id="rank"),
    ],
)
def test_half_an_environment(environ: dict[str, str], what: str) -> None:
    """Several ranks without what torchrun sets is said to be so, with what is missing."""
    with pytest.raises(ValueError, match=f"WORLD_SIZE=2 asks for several ranks, but .*{what}.*torchrun"):
        joined(environ)
