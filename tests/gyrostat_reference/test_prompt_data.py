import pytest

from gyrostat_reference.data import PromptData


def served(data: PromptData, batches: int) -> list[int]:
    items: list[int] = []
    for _ in range(batches):
        batch = data.draw()
        data.accept(batch)
        items += batch.items
    return items


def test_an_epoch_serves_every_item_once_in_an_order_of_its_own() -> None:
    """Two epochs hold the same items, in orders that the seed alone decides."""
    items = served(PromptData(size=64), 8)
    assert sorted(items[:64]) == sorted(items[64:]) == list(range(64))
    assert items[:64] != items[64:]
    assert items == served(PromptData(size=64), 8) != served(PromptData(size=64, seed=1), 8)


def test_a_batch_that_was_not_accepted_comes_back() -> None:
    """Drawing alone does not move the cursor, but what was drawn counts as seen."""
    data = PromptData(size=64)
    assert data.draw().items == data.draw().items
    assert (data.place.cursor, data.place.seen) == (0, 16)


def test_an_item_passed_over_is_never_served_again() -> None:
    """What is passed over is stepped across: no batch is short, and no place is counted twice."""
    data = PromptData(size=64)
    bad = data.draw().items[3]
    data.go_past(frozenset({bad}))
    assert data.place.cursor == 16
    assert bad not in served(data, 20)
    assert data.place.cursor > 16 + 20 * 16


def test_the_first_item_of_a_step_is_foretold() -> None:
    """The item that ``--poison-at-step`` picks is the one that is served first at that step."""
    data = PromptData()
    assert served(data, 3)[32] == data.first_item_of_step(3)


@pytest.mark.parametrize("items", [[-1], [64], [1.0], [True], ["7"], [[1]], list(range(49))])
def test_items_that_cannot_be_passed_over(items: list[object]) -> None:
    """Ids must be ids, and a batch's worth of items must be left."""
    data = PromptData(size=64)
    with pytest.raises(ValueError, match="items"):
        data.checked(items)
