"""A rule whose detector throws: it is told as broken, all others go on, and nothing is done on its word."""

from collections.abc import Callable, Iterator

import pytest
from run_story import Story, healthy_run, replay

from gyrostat_rules.breakage import STEPS
from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.detectors.drop import drop
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State

RULE = "RewardCollapsed"  # the packs' only rule that uses the detector `drop` on `reward`


@pytest.fixture
def slip(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Give the detector ``drop`` a slip that shows at these steps alone, both ends counted."""

    def between(first: int, last: int) -> None:
        def slipping(params: object, state: State, moment: Moment) -> Iterator[Reading]:
            yield from drop(params, state, moment)  # type: ignore[arg-type]
            if first <= moment.step <= last:
                raise ZeroDivisionError("float division by zero")

        monkeypatch.setitem(DETECTORS, "drop", DETECTORS["drop"]._replace(read=slipping))

    return between


def rewarded(story: Story, first: int, last: int, reward: float = 0.8) -> Story:
    """Steps with a reward, both ends counted."""
    for step in range(first, last + 1):
        story.step(step, reward=reward)
    return story


def run(last: int) -> Story:
    """A healthy run with a reward, two checkpoints behind it."""
    return rewarded(Story().begin().checkpoint(10).checkpoint(15), 1, last)


def said(story: Story) -> list[tuple[str, str, int]]:
    """What was told of rules: which, what, at which step."""
    return [(e.subject, e.state, e.step) for e in story.told(EntryKind.RULE) if e.subject == RULE]


def test_a_rule_that_throws_is_told_once_with_its_place(slip: Callable[[int, int], None]) -> None:
    """At 3 a.m. one line names the rule, what it threw and where, however often it does."""
    slip(21, 40)
    story = run(40)
    assert said(story) == [(RULE, "broken", 21)]
    (entry,) = (e for e in story.told(EntryKind.RULE) if e.subject == RULE)
    assert "ZeroDivisionError, test_breakage.py:" in entry.text
    assert "float division by zero" in entry.text


def test_the_others_go_on(slip: Callable[[int, int], None]) -> None:
    """A NaN is found and acted on in the very step in which another rule throws."""
    slip(21, 40)
    story = run(20)
    story.applied(21, reward=0.8)
    assert story.sent() == ["rollback"]
    assert story.incident.kind == "nonfinite"


def test_it_works_again_when_it_has_not_thrown_for_a_while(slip: Callable[[int, int], None]) -> None:
    """One odd number switches nothing off for good, and what throws now and then is not told every time."""
    slip(21, 22)
    assert said(run(22 + STEPS)) == [(RULE, "broken", 21), (RULE, "works", 22 + STEPS)]


def test_nothing_is_done_on_its_word(slip: Callable[[int, int], None]) -> None:
    """An action that waits for it is held with the reason, and let go when it works again."""
    slip(25, 30)
    story = run(20)
    story.command("pause")
    rewarded(story, 21, 26, reward=0.0)
    story.command("resume")
    assert (story.action.verdict, story.sent()) == ("hold", [])
    assert f"rule {RULE} is broken: ZeroDivisionError" in story.action.reason
    rewarded(story, 27, 30 + STEPS, reward=0.0)
    assert story.sent() == ["rollback"]


def test_no_remedy_passes_or_fails_while_it_throws(slip: Callable[[int, int], None]) -> None:
    """Probation waits: what cannot be seen is neither proof that it holds nor that it does not."""
    slip(30, 60)
    story = rewarded(run(20), 21, 26, reward=0.0)
    assert story.sent() == ["rollback"]
    story.ack(step=20)
    rewarded(story, 21, 60)
    assert story.incident.state == "probation"
    rewarded(story, 61, 60 + STEPS)
    assert story.incident.state == "resolved"


def test_a_run_that_ends_meanwhile_is_not_called_mended(slip: Callable[[int, int], None]) -> None:
    """The incident is stopped with the reason, so that a person looks."""
    slip(30, 60)
    story = rewarded(run(20), 21, 26, reward=0.0)
    story.ack(step=20)
    rewarded(story, 21, 40)
    story.bye()
    story.tick()
    assert story.incident.state == "stopped"
    assert "nobody can say whether it has held" in story.incident.why


def test_a_new_pack_begins_with_no_rule_broken(slip: Callable[[int, int], None]) -> None:
    """Where the rules have been mended, nothing of the old ones is left."""
    slip(21, 21)
    story = run(22)
    story.feed(story.inputs[0]._replace(text=story.inputs[0].text + "\n# mended\n"))  # type: ignore[union-attr, call-arg]
    assert story.engine.state.broken == {}


def test_it_is_replayed_bit_for_bit(slip: Callable[[int, int], None]) -> None:
    """A slip is part of history: the same inputs give the same entries and state, and Ticks leave no trace."""
    slip(21, 30)
    story = run(35)
    engine, entries = replay(story.inputs)
    assert entries == story.entries
    assert engine.snapshot() == story.engine.snapshot()
    turn = story.engine.state.turn
    story.tick(0.0)
    assert story.engine.state.turn == turn


def test_healthy_rules_say_nothing_of_it() -> None:
    """No packed rule throws on a healthy run."""
    assert healthy_run(60).told(EntryKind.RULE) == []
