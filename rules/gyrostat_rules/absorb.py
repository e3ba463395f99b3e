"""The first stage: take in what was said. Facts go into the state at once, records into windows and steps.

Nothing is judged here. A jump back of the run (a rollback, a restart) rewinds the windows and drops the alerts
that came from the steps undone: a detector that is not rewound with the weights fires a second time on
nothing (ALGORITHMS §6).
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from gyrostat.wire import Hello, Record
from gyrostat_rules import experts
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Answer, CheckpointSeen, Delivery, Died, Ended, Item, SourceState
from gyrostat_rules.jump import forget_alerts, jumped
from gyrostat_rules.moment import Moment
from gyrostat_rules.outcome import answered, delivered, replaced
from gyrostat_rules.state import Jump, Process, State, Window, key_of

_RECENT = 4
_STEP_TIMES = 32
_CHECKPOINTS = 200
_WAIT_SECONDS = 5.0  # how long a step waits for ranks that have not spoken


def absorb(state: State, moment: Moment, item: Item) -> None:
    """Take in one thing that was said."""
    moment.changed = True
    _TAKERS[type(item)](state, moment, item)


def due(state: State, at: float) -> Iterator[tuple[int, bool, tuple[Record, ...]]]:
    """``(step, complete, records)`` of the steps to look at now, in order, each rank's record by its number.

    A step is due when all ranks have spoken, when a later one is complete, or when it has waited too long.
    """
    world = state.world()
    complete = [s for s, b in state.buckets.items() if _ranks(b) >= world]
    last = max(complete, default=-(1 << 62))
    for step in sorted(state.buckets):
        bucket = state.buckets[step]
        if step <= last or at - min(r.time for r in bucket.values()) > _WAIT_SECONDS:
            del state.buckets[step]
            yield step, True, tuple(bucket[k] for k in sorted(bucket, key=_rank_order))
        elif any(not math.isfinite(sum(r.values.values())) for r in bucket.values()):
            yield step, False, tuple(bucket[k] for k in sorted(bucket, key=_rank_order))


def _ranks(bucket: dict[str, Record]) -> int:
    return sum(key.startswith("trainer/") for key in bucket)


def _rank_order(key: str) -> tuple[str, int]:
    role, _, rank = key.partition("/")
    return role, int(rank)


# -- one taker for each kind of item ------------------------------------------------------------------


def _take_hello(state: State, moment: Moment, hello: Hello) -> None:
    key = key_of(hello.role, hello.rank)
    old = state.processes.get(key)
    new_life = old is None or old.incarnation != hello.incarnation
    process = Process(hello.role, hello.rank) if old is None else old
    state.processes[key] = process
    process.incarnation, process.world, process.root = hello.incarnation, hello.world, hello.checkpoint_root
    process.last_directive = hello.last_directive
    process.knobs = {k.name: k for k in hello.knobs}
    process.procedures = list(hello.procedures)
    process.ended, process.asked = ("", False) if new_life else (process.ended, process.asked)
    process.segment = hello.segment
    if hello.role == "trainer":
        state.run = state.run or hello.run
        state.next_directive = max(state.next_directive, hello.last_directive + 1)
    if new_life:
        process.step_seconds, process.last_at = [], moment.at
        text = f"{hello.role} {hello.rank} of {hello.world} began, segment {hello.segment}"
        moment.write(EntryKind.RUN, key, "began", text, incarnation=hello.incarnation, pid=hello.pid)
        if old is not None:
            forget_alerts(state, moment, hello.role, hello.rank)
        if old is not None and key == "trainer/0":
            replaced(state, moment, hello)


def _take_record(state: State, moment: Moment, record: Record) -> None:
    key = key_of(record.role, record.rank)
    process = state.processes.setdefault(key, Process(record.role, record.rank, record.incarnation))
    if process.last_step >= record.step and process.last_step >= 0:
        _rewind(state, moment, key, record)
    elif process.last_step >= 0 and record.time > process.last_at:
        process.step_seconds = [*process.step_seconds[-_STEP_TIMES:], record.time - process.last_at]
    process.last_step, process.last_at, process.segment = record.step, max(process.last_at, record.time), record.segment
    windows = state.windows.setdefault(key, {})
    for name, value in _with_balance(record).items():
        windows.setdefault(name, Window()).add(record.step, value)
    state.recent[key] = [*state.recent.get(key, [])[-_RECENT:], record._replace(load=None)]
    state.buckets.setdefault(record.step, {})[key] = record
    if record.role == "trainer":
        state.step, state.segment = record.step, record.segment


def _with_balance(record: Record) -> dict[str, float]:
    if record.load is None:
        return record.values
    low = experts.worst(record.load)
    return {**record.values, "expert_rho_eff": low.rho_eff, "expert_dead_share": low.dead_share}


def _rewind(state: State, moment: Moment, key: str, record: Record) -> None:
    """The process says a step again: forget what it said of that step and later ones."""
    for window in state.windows.get(key, {}).values():
        window.rewind(record.step)
    state.recent[key] = [r for r in state.recent.get(key, []) if r.step < record.step]
    for step in [s for s in state.buckets if s >= record.step]:
        state.buckets[step].pop(key, None)
        if not state.buckets[step]:
            del state.buckets[step]
    jump = Jump(record.segment - 1, record.step - 1)
    if record.role == "trainer" and jump not in state.jumps and record.segment > state.segment:
        jumped(state, moment, jump)


def _take_answer(state: State, moment: Moment, answer: Answer) -> None:
    answered(state, moment, answer)


def _take_ended(state: State, moment: Moment, ended: Ended) -> None:
    process = state.processes.get(key_of(ended.role, ended.rank))
    if process is not None and process.incarnation == ended.incarnation and not process.ended:
        process.ended = "bye"
        moment.write(EntryKind.RUN, key_of(ended.role, ended.rank), "ended", f"{ended.role} {ended.rank} said goodbye")


def _take_died(state: State, moment: Moment, died: Died) -> None:
    key = key_of(died.exit.role, died.exit.rank)
    process = state.processes.setdefault(key, Process(died.exit.role, died.exit.rank))
    status = died.exit.status
    how = f"exit {status}" if status >= 0 else f"signal {-status}"
    process.ended, process.asked = how, died.exit.asked
    text = f"{died.exit.role} {died.exit.rank} ended: {how}" + (", as asked" if died.exit.asked else "")
    moment.write(EntryKind.RUN, key, "ended", text, status=status, asked=died.exit.asked)


def _take_checkpoint(state: State, moment: Moment, seen: CheckpointSeen) -> None:
    known = state.checkpoints.get(seen.path)
    if known == seen:
        return
    state.checkpoints[seen.path] = seen
    for path in sorted(state.checkpoints, key=lambda p: state.checkpoints[p].saved_at)[:-_CHECKPOINTS]:
        del state.checkpoints[path]
    text = f"checkpoint of step {seen.step} is {seen.fit}" + (f": {seen.why}" if seen.why else "")
    moment.write(EntryKind.CHECKPOINT, seen.path, seen.fit, text, seen.step, digest=seen.digest)


def _take_source(state: State, moment: Moment, source: SourceState) -> None:
    if state.sources.get(source.source) == [source.state, source.detail]:
        return
    state.sources[source.source] = [source.state, source.detail]
    moment.write(EntryKind.SOURCE, source.source, source.state, f"{source.source}: {source.detail}")


def _take_delivery(state: State, moment: Moment, delivery: Delivery) -> None:
    delivered(state, moment, delivery)


_TAKERS: dict[type, Callable[[State, Moment, Any], None]] = {
    Record: _take_record,
    Hello: _take_hello,
    Answer: _take_answer,
    Ended: _take_ended,
    Died: _take_died,
    CheckpointSeen: _take_checkpoint,
    SourceState: _take_source,
    Delivery: _take_delivery,
}
