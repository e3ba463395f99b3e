"""Of many ranks the first eight speak for the others in numbers; what is a rank's own is looked at on every one."""

import pytest
from run_story import NAN, Story

from gyrostat.wire import Record
from gyrostat_rules.entries import EntryKind

WORLD = 24


def many(last: int = 30) -> Story:
    """A run of two dozen ranks, well up to a step; each tells its own compute time."""
    story = Story(world=WORLD).begin()
    for step in range(1, last + 1):
        tell(story, step, {})
    return story


def tell(story: Story, step: int, odd: dict[int, dict[str, float]]) -> None:
    """One step of all ranks; ``odd`` is what some of them say instead."""
    story.at += 1.0
    said = [{"compute_time": 1.0 + rank / 100, "reward": 0.5, **odd.get(rank, {})} for rank in range(WORLD)]
    story.batch(*(story.record(step, rank, **values) for rank, values in enumerate(said)))


def fired(story: Story, rule: str) -> list[str]:
    """Which of a rule's alerts fired."""
    return [e.subject for e in story.entries if e.kind == EntryKind.ALERT and e.state == "firing" and rule in e.subject]


@pytest.mark.parametrize("rank", [0, 7, 8, 23])
def test_a_value_that_is_not_finite_is_found_on_every_rank(rank: int) -> None:
    """The first one names its rank, and one that was applied opens the incident."""
    story = many()
    tell(story, 31, {rank: {"loss": NAN}})
    assert fired(story, "NonFinitePoison") == [f"NonFinitePoison{{rank={rank},role=trainer}}"]
    assert story.incident.kind == "nonfinite"


@pytest.mark.parametrize("rank", [3, 8, 23])
def test_a_slow_rank_is_found_among_all(rank: int) -> None:
    """What ranks are compared by is kept of every rank."""
    story = many()
    for step in range(31, 36):
        tell(story, step, {rank: {"compute_time": 2.5}})
    assert fired(story, "RankStraggles") == [f"RankStraggles{{rank={rank},role=trainer,series=compute_time}}"]


def test_a_rank_that_falls_silent_is_found() -> None:
    """A step is looked at without the rank that no longer speaks, and it is told by name."""
    story = many()
    for step in range(31, 36):
        story.at += 10.0
        story.batch(*(story.record(step, rank) for rank in range(WORLD) if rank != 20))
    story.tick(4000.0)
    assert any("rank=20" in key for key in story.engine.state.alerts)


def test_memory_does_not_grow_with_ranks() -> None:
    """Of the ninth rank on only what ranks are compared by is kept; of the first eight all."""
    story = many()
    windows = story.engine.state.windows
    assert "reward" in windows["trainer/7"]
    assert set(windows["trainer/8"]) == set(windows["trainer/23"]) == {"compute_time"}


def test_gpus_and_engines_all_speak_for_themselves() -> None:
    """The rule is for trainer ranks: a node's sixteenth GPU is not like its first."""
    story = many()
    story.batch(Record("gpu", 15, "driver", 0, 1, 30, story.at, {"gpu_temperature": 50.0}))
    assert set(story.engine.state.windows["gpu/15"]) == {"gpu_temperature"}


def test_a_jump_back_is_taken_on_every_rank() -> None:
    """A rank of the many that says a step again is looked at anew."""
    story = many()
    story.segment = 1
    for step in range(21, 27):
        tell(story, step, {23: {"compute_time": 2.5}})
    assert story.engine.state.windows["trainer/23"]["compute_time"].steps == list(range(1, 27))
    assert [e.state for e in story.entries if e.state == "jumped"] == ["jumped"]
    assert story.engine.state.recent["trainer/23"][-1].step == 26
