"""The engine: the same inputs give the same entries, whatever they are, and nothing that is fed breaks it."""

import math
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_story import CORE, NAN, Story, healthy_run, replay
from strange_runs import Move, live, runs

from gyrostat.wire import Exit, ExpertLoad, Hello
from gyrostat_rules import snapshot
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Batch, Died, Input, Pack, Tick
from gyrostat_rules.packfile import PackError
from gyrostat_rules.state import State

_MANY = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def begun(supervised: bool = True) -> Story:
    """A run that acts without asking, at step 20."""
    story = healthy_run()
    return story.supervisor() if supervised else story


@_MANY
@given(runs, st.booleans())
def test_nothing_that_is_fed_breaks_it(run: list[Move], begun_before: bool) -> None:
    """Ack before Hello, exit of the unknown, steps that go back, a world that shrinks: never an error."""
    engine = live(begun() if begun_before else Story(), run).engine
    assert Engine.restore(engine.snapshot()).snapshot() == engine.snapshot()


@_MANY
@given(runs)
def test_a_tick_that_changed_nothing_leaves_no_trace(run: list[Move]) -> None:
    """It is not journaled, so the state must be what it was, to the byte."""

    class Watched(Story):
        def feed(self, given: Input) -> list[Entry]:
            before = self.engine.snapshot()
            entries = super().feed(given)
            if not self.engine.changed:
                assert (self.engine.snapshot(), entries) == (before, [])
            return entries

    story = Watched().begin().checkpoint(10).steps(1, 12)
    for move in run:
        live(story, [move])
        story.tick(0.5)


@_MANY
@given(runs, st.integers(0, 60))
def test_the_journal_gives_the_run_again(run: list[Move], crash: int) -> None:
    """What was journaled, fed again, from the start or from a snapshot on the way, gives the same entries and state."""

    class Journaled(Story):
        def feed(self, given: Input) -> list[Entry]:
            entries = super().feed(given)
            if not self.engine.changed:
                self.inputs.pop()
            return entries

    story = live(Journaled().begin().checkpoint(10).steps(1, 12), run)
    again, told = replay(story.inputs)
    assert snapshot.dump(told) == snapshot.dump(story.entries)
    assert again.snapshot() == story.engine.snapshot()
    first, before = replay(story.inputs[:crash])
    second = Engine.restore(first.snapshot())
    after = [e for given_input in story.inputs[crash:] for e in second.feed(given_input)]
    assert snapshot.dump([*before, *after]) == snapshot.dump(story.entries)


@_MANY
@given(runs)
def test_what_was_told_is_what_is(run: list[Move]) -> None:
    """Who reads the entries alone knows what fires and where each incident stands; no two entries share an id."""
    story = live(begun(), run)
    outside: set[str] = set()
    for entry in story.entries:
        if entry.kind == "alert" and entry.state == "firing":
            outside.add(entry.subject)
        if entry.kind == "alert" and entry.state == "resolved":
            outside.discard(entry.subject)
    assert outside == {k for k, a in story.engine.state.alerts.items() if a.state == "firing"}
    ids = [e.id for e in story.entries]
    assert len(ids) == len(set(ids))
    told = {e.subject: e.state for e in story.entries if e.kind == "incident"}
    assert {i.id: i.state for i in story.incidents} == {i.id: told[i.id] for i in story.incidents}


@_MANY
@given(runs)
def test_nothing_is_sent_twice(run: list[Move]) -> None:
    """Each directive's number is new and greater, and each action is sent once."""
    sent = [e for e in live(begun(), run).entries if "orders" in e.data and e.kind == "action"]
    numbers = [e.data["number"] for e in sent]
    assert numbers == sorted(set(numbers))
    assert len({e.subject for e in sent}) == len(sent)


@_MANY
@given(runs)
def test_no_incident_waits_for_ever(run: list[Move]) -> None:
    """Two hours of ticks, or a healthy run of sixty steps, end whatever was open."""
    story = live(begun(), run)
    for _ in range(6):
        story.tick(3700.0)
    assert {i.state for i in story.incidents} <= {"resolved", "stopped", "probation", "held"}
    assert all(i.fired_at > story.at - 2 * 3700.0 for i in story.incidents if i.state == "held")


@pytest.mark.parametrize("seeds", [("0", "1")], ids=["two seeds"])
def test_two_processes_give_the_same_bytes(seeds: tuple[str, str]) -> None:
    """The order of a set or of a dict's hash must not decide anything: entries and state are the same to the byte."""
    given_outputs = []
    for seed in seeds:
        done = subprocess.run(
            [sys.executable, os.path.join(os.path.dirname(__file__), "told_run.py")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        given_outputs.append(done.stdout)
    assert given_outputs[0] == given_outputs[1]
    assert len(given_outputs[0]) > 10_000


@pytest.mark.parametrize("world", [1, 3], ids=["1 rank", "3 ranks"])
@pytest.mark.parametrize("size", [2, 7, 1000])
def test_how_records_fall_into_batches_does_not_matter(world: int, size: int) -> None:
    """Steps read one by one or by the thousand give the same alerts and incidents at the same steps."""
    bad = {24, 25, 60, 61, 62, 63, 90}

    def run(chunk: int) -> list[tuple[str, str, str, int]]:
        story = Story(act=False, world=world).begin()
        rows = [
            story.record(s, r, **({"loss": NAN, "step_applied": 0.0} if s in bad and r == world - 1 else {}))
            for s in range(1, 120)
            for r in range(world)
        ]
        for i in range(0, len(rows), chunk):
            story.batch(*rows[i : i + chunk])
        return [(e.kind, e.subject, e.state, e.step) for e in story.entries if e.kind == "alert"] + [
            (i.kind, i.id, i.state, i.onset) for i in story.incidents
        ]

    assert run(size) == run(world)


def test_a_backlog_read_file_by_file_is_the_same_run() -> None:
    """All of one rank's steps come before the next rank's: each step is looked at when its last rank has spoken."""
    story = Story(act=False, world=3).begin()
    rows = [story.record(s, r, **({"loss": NAN} if (s, r) == (33, 1) else {})) for r in range(3) for s in range(1, 60)]
    story.batch(*rows)
    assert [(i.kind, i.onset, i.fired_step, i.state) for i in story.incidents] == [("nonfinite", 33, 33, "resolved")]
    assert not story.engine.state.buckets


def test_what_is_done_is_decided_on_all_that_is_known() -> None:
    """A batch that holds the NaN, the death and the new life must not send a directive to the dead."""
    story = healthy_run().supervisor()
    bad = story.record(21, loss=NAN)
    story.life = "life-b"
    new = [story.hello(), *(story.record(s)._replace(segment=0) for s in range(16, 20))]
    story.batch(bad, Died("super-a", Exit("trainer", 0, 7, 1, False)), *new)
    assert all("life-a" not in e.data["orders"]["directive"] for e in story.entries if "orders" in e.data)


def test_a_pack_that_does_not_parse_leaves_no_trace() -> None:
    """It raises before anything is touched: the journal, which never sees it, still gives the same run."""
    story = begun()
    before = story.engine.snapshot()
    with pytest.raises(PackError):
        story.engine.feed(Pack(story.at, "bad", "pack: [nonsense"))
    assert story.engine.snapshot() == before


def test_the_same_pack_again_is_no_news() -> None:
    """An agent that starts again loads the same rules: nothing is told."""
    story = begun()
    assert story.feed(Pack(story.at, "digest", CORE)) == []


def test_state_does_not_grow_over_a_long_run() -> None:
    """Twenty thousand steps with a new name each, incidents, checkpoints and a silent rank stay in bounds."""
    story = Story(act=False, world=2).begin()
    sizes = []
    for first in range(1, 20_001, 20):
        story.entries.clear()
        story.inputs.clear()
        rows = []
        for step in range(first, first + 20):
            story.at += 1.0
            rows.append(story.record(step, load=ExpertLoad(1, 1, 4, (1, 2, 3, 4)), **{f"new/{step}": 1.0}))
        rows += [story.record(step, 1) for step in range(first, first + 20) if first < 1000]
        rows[0].values["loss"] = NAN if first % 40 == 1 else 1.0
        story.batch(*rows)
        story.checkpoint(first)
        if first == 2001:
            story.world = 1
            story.begin()
        if first in (10_001, 19_981):
            sizes.append(len(story.engine.snapshot()))
    early, late = sizes
    assert late < 1.1 * early
    assert late < 1_500_000


def test_a_rank_on_a_clock_that_is_ahead_does_not_fill_memory() -> None:
    """Steps that wait for a silent rank are let go in time, even where their time is in the future."""
    story = Story(act=False, world=2).begin()
    for step in range(1, 1000):
        story.batch(story.record(step)._replace(time=story.at + 1e6))
    assert len(story.engine.state.buckets) <= 256


def test_a_world_that_shrinks_is_not_waited_for() -> None:
    """After a restart with fewer ranks a step is complete when those have spoken."""
    story = Story(world=8).begin().steps(1, 5)
    story.world = 2
    story.begin(life="life-b")
    story.step(6)
    assert not story.engine.state.buckets
    assert story.engine.state.examined() == 6


def test_the_snapshot_of_an_empty_engine_is_one() -> None:
    """A first start is a restart too."""
    assert Engine.restore(Engine().snapshot()).state == State()
    assert Engine().feed(Tick(1.0)) == []


def test_hello_of_a_huge_world_does_not_hold_up_the_warning() -> None:
    """A run of ten thousand ranks of which one speaks is looked at for NaN at once."""
    story = Story()
    story.batch(Hello("run", "trainer", 0, 10_000, "life-a"))
    story.feed(Batch(story.at, (story.record(1, loss=math.inf),)))
    assert "NonFinitePoison/0" in story.alerts
