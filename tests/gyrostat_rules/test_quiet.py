"""One that falls silent while those beside it speak is told; a run that pauses is not."""

from collections.abc import Iterable

import pytest
from run_story import Story

from gyrostat.wire import Record
from gyrostat_rules.detectors import Reading
from gyrostat_rules.detectors.quiet import Quiet, quiet
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import RulePack


def tell(story: Story, steps: range, servers: Iterable[int], seconds: float = 10.0) -> Story:
    """Servers that tell a record each step."""
    for step in steps:
        story.at += seconds
        told = (Record("rollout", r, f"r{r}", 0, step, step, story.at, {"cache_use": 0.5}) for r in servers)
        story.batch(story.record(step), *told)
    return story


def read(story: Story, **how: float) -> list[Reading]:
    """What is breached now."""
    moment = Moment(story.at, 1, RulePack("none", (), ()), (), story.engine.state.step)
    return list(quiet(Quiet(("rollout",), **how), story.engine.state, moment))  # type: ignore[arg-type]


def test_one_of_three_servers_is_gone() -> None:
    """It is told two minutes later, and named, with the step at which it was to be heard."""
    story = tell(Story().begin(), range(1, 21), (0, 1, 2))
    assert not read(tell(story, range(21, 33), (0, 2)))
    (reading,) = read(tell(story, range(33, 34), (0, 2)))
    assert (reading.labels, reading.onset) == ({"role": "rollout", "rank": "1"}, 21)


def test_it_is_over_when_it_speaks_again() -> None:
    """A server that was restarted is no alarm any more."""
    story = tell(tell(Story().begin(), range(1, 21), (0, 1)), range(21, 41), (0,))
    assert read(story) and not read(tell(story, range(41, 42), (0, 1)))


@pytest.mark.parametrize("servers", [(), (2,)], ids=["nobody speaks", "a server nobody knew"])
def test_where_all_pause_none_is_gone(servers: tuple[int, ...]) -> None:
    """Servers wait while the trainer trains; one that begins meanwhile is no measure."""
    story = tell(Story().begin(), range(1, 21), (0, 1))
    found = read(tell(story, range(21, 24), servers, seconds=100.0))
    assert bool(found) == bool(servers)


def test_a_slow_speaker_has_its_own_measure() -> None:
    """One record in ten minutes is not gone after three."""
    story = Story().begin()
    for begin in range(1, 60, 10):
        tell(tell(story, range(begin, begin + 1), (0, 1)), range(begin + 1, begin + 10), (0,))
    assert not read(tell(story, range(61, 75), (0,)))


def test_one_that_said_goodbye_or_has_just_begun_is_none() -> None:
    """An engine that is scaled down ends; one that has told once may still be loading."""
    story = tell(tell(Story().begin(), range(1, 2), (0, 1)), range(2, 40), (0,))
    assert not read(story)


def test_a_source_that_is_blind_says_nothing() -> None:
    """What is not read is not silent."""
    story = tell(tell(Story().begin(), range(1, 21), (0, 1)), range(21, 41), (0,))
    assert read(story)
    story.source("gone", "records")
    assert not read(story)
