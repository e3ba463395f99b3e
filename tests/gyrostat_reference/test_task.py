import pytest
import torch
from torch import Generator

from gyrostat_reference.task import END, EQUALS, FIRST_COUNT, answer_mask, verify, worked_examples

TWO_DIGITS_TO_3 = [FIRST_COUNT + 1, 3, EQUALS]


@pytest.mark.parametrize(
    ("answer", "reward"),
    [
        pytest.param([1, 2, END, END], 1.0, id="right"),
        pytest.param([5, 5, END, 0], 1.0, id="right modulo 7, whatever follows the end"),
        pytest.param([1, 1, END, END], 0.0, id="wrong sum"),
        pytest.param([3, END, END, END], 0.0, id="too short"),
        pytest.param([1, 1, 1, END], 0.0, id="too long"),
    ],
)
def test_verifier(answer: list[int], reward: float) -> None:
    """A reward is given for exactly K digits, then the end, with the right sum."""
    assert verify(torch.tensor([TWO_DIGITS_TO_3 + answer])).tolist() == [reward]


def test_mask_ends_with_the_first_end() -> None:
    """The end token is part of the answer; what follows it is not."""
    sequences = torch.tensor([[*TWO_DIGITS_TO_3, 1, END, 2, END], [*TWO_DIGITS_TO_3, 1, 2, 3, 4]])
    assert answer_mask(sequences).tolist() == [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]


def test_worked_examples_are_right_unless_spoilt() -> None:
    """Without spoilt digits every example earns its reward."""
    assert verify(worked_examples(64, 0.0, Generator().manual_seed(0))).mean() == 1.0
