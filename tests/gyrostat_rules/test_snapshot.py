"""Snapshots: what is written down is read back as it was, whatever state a run has reached."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from run_story import NAN, Story, healthy_run
from strange_runs import Move, live, runs

from gyrostat_rules import snapshot
from gyrostat_rules.engine import Engine
from gyrostat_rules.snapshot import from_plain, to_plain
from gyrostat_rules.state import Action, State


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(runs)
def test_what_is_read_back_is_written_the_same(run: list[Move]) -> None:
    """A snapshot of what was restored from a snapshot is that snapshot, to the byte."""
    data = live(healthy_run().supervisor(), run).engine.snapshot()
    assert snapshot.dump(snapshot.load(State, data)) == data


def test_it_is_json_without_nan() -> None:
    """Any reader can read it: numbers that are not finite are spelled."""
    story = healthy_run()
    story.step(21, loss=NAN, kl=math.inf, grad_norm=-math.inf)

    def refuse(word: str) -> float:
        raise AssertionError(word)

    json.loads(story.engine.snapshot(), parse_constant=refuse)
    window = Engine.restore(story.engine.snapshot()).state.windows["trainer/0"]
    assert math.isnan(window["loss"].values[-1])
    assert (window["kl"].values[-1], window["grad_norm"].values[-1]) == (math.inf, -math.inf)


def test_steps_keep_their_type() -> None:
    """A bucket's step comes back as a number, not as the text that JSON makes of a key."""
    story = Story(world=2).begin()
    story.step(3, ranks=[0])
    assert list(Engine.restore(story.engine.snapshot()).state.buckets) == [3]


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"[1]", b"null", b"\xff", b'{"~":"nan"}', b'"x"', b"7"], ids=repr)
def test_what_is_none_is_refused(data: bytes) -> None:
    """A damaged snapshot raises what the agent expects, and nothing else."""
    with pytest.raises((ValueError, TypeError)):
        Engine.restore(data)


@pytest.mark.parametrize("word", ['"trainer/0"', '"loss"', "life-a", '{"~":"nan"}'])
def test_what_was_changed_inside_is_refused_or_read(word: str) -> None:
    """A snapshot with a piece of it gone is never an error of another kind."""
    story = healthy_run()
    story.applied(21)
    text = story.engine.snapshot().decode()
    assert word in text
    for other in ("7", "null", "[]", '{"a":1}', '"b"'):
        try:
            Engine.restore(text.replace(word, other).encode())
        except (ValueError, TypeError):
            continue


def test_what_cannot_be_written_says_so() -> None:
    """An object that is no plain value is a mistake of ours, named."""
    with pytest.raises(TypeError, match="set cannot be written into a snapshot"):
        snapshot.dump({"a": {1, 2}})


def test_what_an_older_version_did_not_know_has_its_default() -> None:
    """A sidecar that is upgraded in mid-run goes on with the actions that the old one began."""
    raw = to_plain(Action("i0001.1", "i0001", 0, "turn", 10))
    old = from_plain(Action, raw[:-2])
    assert old == Action("i0001.1", "i0001", 0, "turn", 10)
    with pytest.raises((TypeError, ValueError)):
        from_plain(Action, raw[:3])
    with pytest.raises(ValueError, match="another version"):
        from_plain(Action, [*raw, 1])
