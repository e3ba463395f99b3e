from pathlib import Path
from typing import Any

import pytest

FOUR = pytest.mark.full
CASES = [
    pytest.param(("ddp", 2), id="ddp-2"), pytest.param(("fsdp2", 2), id="fsdp2-2"),
    pytest.param(("ddp", 4), id="ddp-4", marks=FOUR), pytest.param(("fsdp2", 4), id="fsdp2-4", marks=FOUR),
]  # fmt: skip
Found = tuple[Path, list[dict[str, Any]]]


@pytest.fixture(params=CASES)
def found(request: pytest.FixtureRequest, trained: Any) -> Found:
    """The root of the checkpoints, and what each rank found."""
    how, world = request.param
    root, facts = trained(how, world)
    assert len(facts) == world
    return root, facts


def test_ranks_begin_with_the_same_weights(found: Found) -> None:
    """Ranks that were seeded differently begin alike."""
    assert len({each["begun alike"] for each in found[1]}) == 1


def test_step_is_that_of_one_process(found: Found) -> None:
    """The mean over a global batch of uneven parts has one process's gradient; rollouts between change nothing."""
    for each in found[1]:
        assert each["norms"] == found[1][0]["norms"]
        assert each["norms"] == pytest.approx(each["plain"], rel=1e-4)
        assert each["far"] < 1e-3  # AdamW moves a weight by 1e-3 a step whatever its gradient is


def test_undone_step_is_undone_bit_for_bit(found: Found) -> None:
    """After put_back all ranks hold the same bits as before, and take the same step again."""
    assert len({value for each in found[1] for value in each["put back"]}) == 1
    assert len({value for each in found[1] for value in each["taken again"]}) == 1
    assert found[1][0]["put back"][0] != found[1][0]["taken again"][0]


def test_checkpoint_is_begun_by_all_or_none(found: Found) -> None:
    """While one rank still writes, no rank begins; every rank counts it."""
    for each in found[1]:
        assert (each["folder"], each["again"]) == (str(found[0] / "step-00000004"), "None")
        assert (each["missed"], each["failed"], each["fault"]) == (1, 0, "")
