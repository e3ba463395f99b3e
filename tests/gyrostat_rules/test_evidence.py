"""Evidence of several ranks and steps: the item at fault is passed over, whoever named it and whoever spoke last."""

import pytest
from run_story import NAN, Story

from gyrostat_rules.evidence import joined, suspects


def poisoned(story: Story, step: int, items: dict[int, float], applied: float = 0.0) -> None:
    """A step that is not finite on every rank; those of ``items`` name the item that they had."""
    story.at += 1.0
    ill = {"loss": NAN, "step_applied": applied}
    named = {rank: {"suspect_item": item} for rank, item in items.items()}
    story.batch(*(story.record(step, rank, **{**ill, **named.get(rank, {})}) for rank in range(story.world)))


@pytest.mark.parametrize(
    ("items", "wanted"),
    [({0: 222.0}, [222]), ({1: 222.0}, [222]), ({0: 222.0, 1: 9.0}, [222, 9])],
    ids=["of the first rank", "of the second", "of both"],
)
def test_no_rank_undoes_what_another_has_named(items: dict[int, float], wanted: list[int]) -> None:
    """A rank that names no item says nothing about the one that another rank has named."""
    story = Story(world=2).begin().steps(1, 20)
    poisoned(story, 21, items)
    poisoned(story, 22, items)
    assert story.sent() == ["skip_data"]
    assert sorted(story.action.arguments["items"]) == sorted(wanted)


def test_what_is_gone_back_for_passes_all_suspects_over() -> None:
    """After the item was not passed over, a rollback takes it along, though the last word came from another rank."""
    story = Story(world=2).begin().checkpoint(10).checkpoint(15).steps(1, 20)
    poisoned(story, 21, {0: 222.0}, applied=1.0)
    assert story.sent() == ["rollback"]
    assert story.action.arguments["pass_over"] == [222]
    story.ack(step=22)
    story.step(16), story.step(17)
    poisoned(story, 18, {1: 7.0}, applied=1.0)
    assert sorted(story.action.arguments["pass_over"]) == [7, 222]


def test_what_is_known_is_bounded() -> None:
    """A trainer that names a new item at every step fills no ledger."""
    known: dict[str, object] = {}
    for item in range(500):
        known = joined(known, {"data": {"suspect_item": item}})
    assert suspects(known) == list(range(436, 500))
