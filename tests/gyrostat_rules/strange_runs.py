"""Runs as nobody planned them: any item in any order, deep enough to reach every state of an incident."""

import math
from collections.abc import Callable

from hypothesis import strategies as st
from run_story import NAN, Story

from gyrostat.wire import Ack, Exit, ExpertLoad, Hello, KnobState, Record
from gyrostat_rules.inputs import (
    Answer,
    Batch,
    CheckpointSeen,
    Command,
    Delivery,
    Died,
    Ended,
    FaultLine,
    Input,
    SourceState,
    Tick,
)
from gyrostat_rules.outcome import in_flight

_NUMBERS = st.sampled_from([1.0, 0.0, -1.0, 1e308, math.nan, math.inf, -math.inf])
_LIVES = st.sampled_from(["life-a", "life-b", "life-c"])
_RANKS = st.sampled_from([0, 0, 0, 1, 7])
_ROLES = st.sampled_from(["trainer", "trainer", "trainer", "supervisor", "rollout"])
_STEPS = st.one_of(st.integers(15, 40), st.sampled_from([-5, -1, 0, 1 << 40, (1 << 63) - 1]))
_TIMES = st.floats(900.0, 1200.0)
_NAMES = st.sampled_from(
    ["loss", "grad_norm", "step_applied", "params_finite", "suspect_item", "checkpoint_busy", "custom", "eval/loss"]
)
_LOADS = st.sampled_from([None, None, ExpertLoad(1, 2, 2, (1, 2, 0, 0)), ExpertLoad(0, 0, 0, ())])
_KNOBS = st.sampled_from([
    (),
    (KnobState("lr_scale", 1.0, 0.01, 1.0, 2.0),),
    (KnobState("lr_scale", math.nan, 0.0, 1.0), KnobState("max_grad_norm", 2.0, math.nan, math.inf)),
])  # fmt: skip
_PROCEDURES = st.sampled_from([(), ("rollback", "skip_data", "stop"), ("restart", "release")])

_records = st.builds(
    Record, _ROLES, _RANKS, _LIVES, st.integers(0, 2), st.just(0), _STEPS, _TIMES,
    st.dictionaries(_NAMES, _NUMBERS, max_size=4), _LOADS,
)  # fmt: skip
_healthy = st.builds(
    lambda step, segment, rank: Record("trainer", rank, "life-a", segment, step, step, 1000.0 + step,
                                       {"loss": 1.0, "step_applied": 1.0, "data_cursor": 1.0, "data_items": 1.0}),
    st.integers(15, 60), st.integers(0, 1), _RANKS,
)  # fmt: skip
_poisoned = st.builds(
    lambda step, segment, applied: Record("trainer", 0, "life-a", segment, step, step, 1000.0 + step,
                                          {"loss": math.nan, "step_applied": applied, "suspect_item": 3.0}),
    st.integers(20, 30), st.integers(0, 1), st.sampled_from([0.0, 1.0]),
)  # fmt: skip
_hellos = st.builds(
    Hello, st.sampled_from(["run", "other"]), _ROLES, _RANKS, st.sampled_from([-1, 0, 1, 2, 8]), _LIVES,
    st.integers(0, 2), st.just(1), _KNOBS, _PROCEDURES, st.just("/ck"), st.sampled_from([0, 0, 1, 2, 50]),
)  # fmt: skip
_acks = st.builds(
    Ack, st.integers(0, 5), st.sampled_from(["", "i0001.1", "i0001.2", "i0001.3"]),
    st.sampled_from(["applied", "applied", "refused", "failed"]), _STEPS,
    st.sampled_from(["", "somebody else has turned it"]), st.just({"lr_scale": math.nan}),
    st.sampled_from([{}, {"step": 15}, {"step": "x"}, {"step": -7}]),
)  # fmt: skip
_answers = st.builds(Answer, _ROLES, _RANKS, _LIVES, _acks)
_died = st.builds(
    Died, st.just("super"), st.builds(Exit, _ROLES, _RANKS, st.just(1), st.sampled_from([0, 1, -9]), st.booleans())
)
_checkpoints = st.builds(
    lambda step, segment, fit: CheckpointSeen(f"/ck/{step}-{segment}", step, segment, "x", fit, "", 100.0 + step),
    st.integers(-1, 40), st.integers(0, 2), st.sampled_from(["verified", "verified", "attested", "unfit"]),
)  # fmt: skip
_sources = st.builds(
    SourceState, st.sampled_from(["a", "b"]), st.sampled_from(["fresh", "stale", "gone", "foreign"]), st.just("so")
)
_deliveries = st.builds(
    Delivery, st.sampled_from(["i0001.1", "i0001.2", "none"]), st.sampled_from(["failed", "unknown"]), st.just("why")
)
_faults = st.builds(
    FaultLine, _ROLES, _RANKS, st.sampled_from(["oom", "ecc", "xid_node", "engine_exit", "of a later version"]),
    st.sampled_from(["", "why"]),
)  # fmt: skip
items = st.one_of(
    _healthy, _poisoned, _poisoned, _records, _hellos, _answers, _answers, _checkpoints, _died,
    st.builds(Ended, _ROLES, _RANKS, _LIVES), _sources, _deliveries, _faults,
)  # fmt: skip
_commands = st.builds(
    Command, _TIMES,
    st.sampled_from(["approve", "deny", "pause", "resume", "distrust", "trust", "configure", "ledger", "nonsense"]),
    st.sampled_from([{}, {"action": "i0001.1"}, {"action": "i0001.2"}, {"mode": "act", "approvals": True},
                     {"mode": "shadow"}, {"mode": "act", "approvals": False}, {"incidents": 5, "version": 1}]),
)  # fmt: skip
_inputs = st.one_of(
    st.builds(Batch, _TIMES, st.lists(items, min_size=1, max_size=6).map(tuple)),
    st.builds(Batch, _TIMES, st.lists(items, min_size=1, max_size=6).map(tuple)),
    _commands,
    st.builds(Tick, st.floats(900.0, 1500.0)),
)


def _on(story: Story, count: int) -> None:
    story.steps(story.engine.state.step + 1, min(story.engine.state.step + count, 1 << 40))


def _bad(story: Story, applied: int) -> None:
    story.step(story.engine.state.step + 1, loss=NAN, step_applied=float(applied % 2), suspect_item=3.0)


def _mended(story: Story, number: int) -> None:
    for _ in range(1 + number % 2):
        _bad(story, number)
    _answer(story, 0)
    _on(story, number)


def _approve(story: Story, _: int) -> None:
    if story.engine.state.incidents and story.incident.actions:
        story.command("approve", action=story.action.id, by="Ada")


def _answer(story: Story, number: int) -> None:
    result = ("applied", "applied", "applied", "refused", "failed")[number % 5]
    for _, action in in_flight(story.engine.state):
        detail = {"step": action.arguments["step"]} if "step" in action.arguments else {}
        ack = Ack(action.number, action.id, result, story.engine.state.step + 1, "no", {}, detail)
        story.batch(*(Answer("trainer", rank, story.life, ack) for rank in range(story.engine.state.world())))
    story.segment = story.engine.state.segment


def _reborn(story: Story, number: int) -> None:
    story.begin(life=f"life-{number}", last=number % 3)


# What a run does of its own, so that the strange things below meet it in every state.
_WAYS: tuple[Callable[[Story, int], object], ...] = (
    _on, _on, _bad, _bad, _mended, _mended, _mended, _answer, _answer, _approve, _reborn,
    lambda story, n: story.died(-(n % 2)),
    lambda story, n: story.tick(60.0 * n),
    lambda story, n: story.checkpoint(max(0, story.engine.state.step - n), segment=story.segment),
    lambda story, n: story.bye(),
)  # fmt: skip
_moves = st.tuples(st.integers(0, len(_WAYS) - 1), st.integers(1, 12))
Move = Input | tuple[int, int]
runs: st.SearchStrategy[list[Move]] = st.lists(st.one_of(*[_moves] * 5, _inputs), min_size=4, max_size=30)


def live(story: Story, run: list[Move]) -> Story:
    """Live a run in a story."""
    for move in run:
        if isinstance(move[0], int) and not isinstance(move, (Batch, Tick, Command)):
            _WAYS[move[0]](story, int(move[1]))
        else:
            story.feed(move)  # type: ignore[arg-type]
    return story
