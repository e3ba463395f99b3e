"""Which nodes are not heard: said once, taken back once, and not of nodes that nobody misses."""

from gyrostat_agent.cluster.roll import SILENT_SECONDS, Roll
from gyrostat_rules.inputs import SourceWord

ONE = frozenset({"node-1"})


def said(roll: Roll, nodes: frozenset[str], now: float) -> list[tuple[str, str]]:
    return [(w.source, w.state) for w in roll.words(nodes, now)]


def test_a_node_is_missed_once_and_heard_again_once() -> None:
    """Not at each look."""
    roll = Roll()
    roll.hear("node-1", 0.0)
    assert said(roll, ONE, 1.0) == [("node node-1", SourceWord.FRESH)]
    assert said(roll, ONE, SILENT_SECONDS) == []
    assert said(roll, ONE, SILENT_SECONDS + 0.1) == [("node node-1", SourceWord.STALE)]
    assert (roll.heard, roll.missing) == (0, 1)
    assert said(roll, ONE, 60.0) == []
    roll.hear("node-1", 61.0)
    assert said(roll, ONE, 61.0) == [("node node-1", SourceWord.FRESH)]


def test_one_that_was_never_heard_is_missed_too() -> None:
    """A new leader knows from the last one's words, or its own journal, that it is there."""
    roll = Roll()
    roll.expect(ONE, 100.0)
    assert said(roll, ONE, 100.0 + SILENT_SECONDS + 1) == [("node node-1", SourceWord.STALE)]


def test_whoever_has_no_ranks_is_missed_by_nobody() -> None:
    """Ranks that ended, or are on another node by now, are no blindness that lasts for ever."""
    roll = Roll()
    roll.hear("node-1", 0.0)
    roll.hear("node-2", 0.0)
    said(roll, frozenset({"node-1", "node-2"}), 1.0)
    roll.leave("node-1")
    assert said(roll, frozenset({"node-2"}), 2.0) == [("node node-1", SourceWord.FRESH)]
    assert said(roll, frozenset({"node-2"}), 20.0) == [("node node-2", SourceWord.STALE)]
    assert said(roll, frozenset(), 21.0) == [("node node-2", SourceWord.FRESH)]
    assert said(roll, frozenset(), 40.0) == []


def test_an_agent_that_ends_in_order_leaves_ranks_that_are_not_seen() -> None:
    """Its trainer goes on: neither dead nor well, from now on and not after a quarter of an hour of silence."""
    roll = Roll()
    roll.hear("node-1", 0.0)
    said(roll, ONE, 1.0)
    roll.leave("node-1")
    (word,) = roll.words(ONE, 2.0)
    assert (word.state, word.detail) == (SourceWord.STALE, "its agent has ended: its ranks are not seen")
    roll.hear("node-1", 3.0)
    assert said(roll, ONE, 3.0) == [("node node-1", SourceWord.FRESH)]
