"""The first stage: take in what was said. Facts go into the state at once, records into windows and steps.

Nothing is judged here. A jump back of the run (a rollback, a restart) rewinds the windows and drops the alerts
that came from the steps undone: a detector that is not rewound with the weights was seen to fire a second
time on nothing.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gyrostat.wire import Hello, Record
from gyrostat_rules import bystander, experts, faultlog, fellows, hands
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import (
    UNTOLD,
    AlertTold,
    Answer,
    CheckpointSeen,
    Delivery,
    Died,
    Ended,
    FaultLine,
    Item,
    SourceState,
    SourceWord,
)
from gyrostat_rules.jump import forget_alerts, jumped, rewind
from gyrostat_rules.manyranks import is_one_of_many, kept
from gyrostat_rules.moment import Moment
from gyrostat_rules.outcome import answered, delivered, replaced
from gyrostat_rules.remembered import Jump
from gyrostat_rules.standing import HEARD, NODE
from gyrostat_rules.state import Process, State, Window, key_of

_RECENT = 4
_STEP_TIMES = 32
_CHECKPOINTS = 200
_FIRST_LOOK_SECONDS = 5.0  # for the checkpoints of a run that is seen for the first time to be verified
_LOOK_SECONDS = 30.0  # after a ledger was taken up, for records and checkpoints to be seen again
_WAIT_SECONDS = 5.0  # how long a step waits for ranks that have not spoken
_WAITING = 256  # steps that may wait at once: a rank that is silent, on a clock that is ahead, must not fill memory
_SERIES = 2048  # of one process: a name made anew each step must not either


def absorb(state: State, moment: Moment, item: Item) -> None:
    """Take in one thing that was said."""
    moment.changed = True
    _TAKERS[type(item)](state, moment, item)


Step = tuple[int, bool, tuple[Record, ...]]  # step, whether it is complete, each rank's record by its number


def completed(state: State, item: Item) -> Iterator[Step]:
    """The steps that an item completes, in order: its own, where all ranks have now spoken, and older ones."""
    if not isinstance(item, Record) or not _is_complete(state.buckets.get(item.step, {}), _heard(state)):
        return
    for step in sorted(s for s in state.buckets if s <= item.step):
        yield step, True, _in_order(state.buckets.pop(step))


def due(state: State, at: float) -> Iterator[Step]:
    """What else is to be looked at once all news has been taken in: what waits too long, and what cannot wait."""
    world = _heard(state)
    waiting = sorted(state.buckets)
    complete = max((s for s in waiting if _is_complete(state.buckets[s], world)), default=-math.inf)
    for place, step in enumerate(waiting):
        bucket = state.buckets[step]
        late = at - min(r.time for r in bucket.values()) > _WAIT_SECONDS or len(waiting) - place > _WAITING
        if late or step <= complete:
            yield step, True, _in_order(state.buckets.pop(step))
        elif any(not math.isfinite(sum(r.values.values())) for r in bucket.values()):
            yield step, False, _in_order(bucket)


def _heard(state: State) -> int:
    """How many ranks a step waits for: not for those of a node whose agent is not heard."""
    return max(1, state.world() - state.unseen)


def _is_complete(bucket: dict[str, Record], world: int) -> bool:
    return bool(bucket) and len(bucket) >= world and sum(key.startswith("trainer/") for key in bucket) >= world


def _in_order(bucket: dict[str, Record]) -> tuple[Record, ...]:
    return tuple(bucket[k] for k in sorted(bucket, key=_rank_order))


def _rank_order(key: str) -> tuple[str, int]:
    role, _, rank = key.rpartition("/")
    return role, int(rank)


# -- one taker for each kind of item ------------------------------------------------------------------


def _take_hello(state: State, moment: Moment, hello: Hello) -> None:
    key = key_of(hello.role, hello.rank)
    old = state.processes.get(key)
    new_life = old is None or old.incarnation != hello.incarnation
    process = Process(hello.role, hello.rank) if old is None else old
    state.processes[key] = process
    hands.announced(state, moment, process, hello)
    process.incarnation, process.world, process.root = hello.incarnation, hello.world, hello.checkpoint_root
    process.last_directive, process.pid = hello.last_directive, hello.pid
    process.knobs = {k.name: k for k in hello.knobs}
    process.procedures = list(hello.procedures)
    process.ended, process.asked = ("", False) if new_life else (process.ended, process.asked)
    process.segment = hello.segment
    if hello.role == "trainer":
        state.run = state.run or hello.run
        state.next_directive = max(state.next_directive, hello.last_directive + 1)
    if new_life:
        process.step_seconds, process.last_at, process.spoken, process.told = [], moment.at, False, 0
        text = f"{hello.role} {hello.rank} of {hello.world} began, segment {hello.segment}"
        moment.write(EntryKind.RUN, key, "began", text, incarnation=hello.incarnation, pid=hello.pid)
        if old is not None:
            forget_alerts(state, moment, hello.role, hello.rank)
            faultlog.forget(state, *(("", 0) if key == "trainer/0" else (hello.role, hello.rank)))
        if hello.rank == 0:
            _forget_ranks(state, moment, hello.role, hello.world)
        if key == "trainer/0":  # of the first life known here too: the ledger may tell of a directive before it
            replaced(state, moment, hello)
            if state.plan_from == math.inf:
                state.plan_from = moment.at + _LOOK_SECONDS
            elif old is None and hello.checkpoint_root and not state.checkpoints:
                state.look_until = moment.at + _FIRST_LOOK_SECONDS


def _forget_ranks(state: State, moment: Moment, role: str, world: int) -> None:
    """A life of fewer ranks began: those that it has not are no stall and keep no step waiting."""
    for key, process in list(state.processes.items()):
        if process.role == role and process.rank >= max(world, 1):
            rewind(state, moment, key, 0)
            faultlog.forget(state, role, process.rank)
            del state.processes[key]
            state.windows.pop(key, None)
            state.recent.pop(key, None)


def _take_record(state: State, moment: Moment, record: Record) -> None:
    key = key_of(record.role, record.rank)
    process = state.processes.get(key)
    if process is None:
        process = state.processes[key] = Process(record.role, record.rank, record.incarnation)
        if key == "trainer/0" and state.plan_from == math.inf:  # one that is read from a log never says Hello
            state.plan_from = moment.at + _LOOK_SECONDS
    if not bystander.leads(process, record):
        bystander.join(state, key, record)
        return
    bystander.follow(process, record)
    recent = state.recent.setdefault(key, [])
    if recent and _place(recent[-1]) == _place(record):
        record = _joined(recent.pop(), record)
    else:
        process.told += 1
        if process.last_step >= record.step and process.last_step >= 0:
            _go_back(state, moment, key, record)
        elif process.last_step >= 0 and record.time > process.last_at:
            process.step_seconds = [*process.step_seconds[-_STEP_TIMES:], record.time - process.last_at]
    process.spoken = True
    process.last_step, process.last_at, process.segment = record.step, max(process.last_at, record.time), record.segment
    windows, recent = state.windows.setdefault(key, {}), state.recent[key]
    if is_one_of_many(record.role, record.rank):
        _remember(windows, record.step, kept(moment, record))
    else:
        _remember(windows, record.step, record.values)
        _remember(windows, record.step, experts.series_of(record.load, (r.load for r in recent)))
    short = record._replace(load=experts.thin(record.load)) if record.load is not None else record
    state.recent[key] = [*recent[-_RECENT:], short]
    state.buckets.setdefault(record.step, {})[key] = record
    ahead = (record.segment, record.step) > (state.segment, state.step)
    if record.role == "trainer" and (record.rank == 0 or ahead):
        state.step, state.segment = record.step, record.segment


def _place(record: Record) -> tuple[str, int, int]:
    return record.incarnation, record.segment, record.step


def _joined(first: Record, second: Record) -> Record:
    """A step told in two records is one; what was not finite in the first is not made good by the second."""
    odd = {n: v for n, v in first.values.items() if not math.isfinite(v)}
    return second._replace(values={**first.values, **second.values, **odd}, load=second.load or first.load)


def _remember(windows: dict[str, Window], step: int, values: Mapping[str, float]) -> None:
    for name, value in values.items():
        window = windows.get(name)
        if window is None:
            if len(windows) >= _SERIES:
                continue
            window = windows[name] = Window()
        elif window.steps and window.steps[-1] >= step:  # a step that is told in two records
            window.rewind(step)
        window.add(step, value)


def _go_back(state: State, moment: Moment, key: str, record: Record) -> None:
    """The process says a step again: forget what it said of that step and later ones."""
    rewind(state, moment, key, record.step)
    jump = Jump(record.segment - 1, record.step - 1)
    if record.role == "trainer" and jump not in state.jumps and record.segment > state.segment:
        jumped(state, moment, jump)


def _take_answer(state: State, moment: Moment, answer: Answer) -> None:
    answered(state, moment, answer)


def _take_ended(state: State, moment: Moment, ended: Ended) -> None:
    process = state.processes.get(key_of(ended.role, ended.rank))
    if process is not None and process.incarnation == ended.incarnation and not process.ended:
        process.ended = "bye"
        forget_alerts(state, moment, ended.role, ended.rank)
        faultlog.forget_ended(state)
        moment.write(EntryKind.RUN, key_of(ended.role, ended.rank), "ended", f"{ended.role} {ended.rank} said goodbye")


def _take_died(state: State, moment: Moment, news: Died) -> None:
    key = key_of(news.exit.role, news.exit.rank)
    process = state.processes.setdefault(key, Process(news.exit.role, news.exit.rank))
    status = news.exit.status
    how = f"exit {status}" if status >= 0 else f"signal {-status}"
    process.ended, process.asked = how, news.exit.asked
    for other in state.processes.values() if not process.rank else ():  # a launcher's ranks have ended with it
        if other.role == process.role and not other.ended:
            other.ended, other.asked = how, news.exit.asked
            if news.exit.asked:
                forget_alerts(state, moment, other.role, other.rank)
    text = f"{news.exit.role} {news.exit.rank} ended: {how}" + (", as asked" if news.exit.asked else "")
    moment.write(EntryKind.RUN, key, "ended", text, status=status, asked=news.exit.asked)
    if news.exit.asked:
        forget_alerts(state, moment, news.exit.role, news.exit.rank)
    faultlog.forget_ended(state)


def _take_checkpoint(state: State, moment: Moment, seen: CheckpointSeen) -> None:
    known = state.checkpoints.get(seen.path)
    if seen.segment == UNTOLD:
        same = known is not None and known.digest == seen.digest
        seen = seen._replace(segment=known.segment if known is not None and same else state.segment)
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
    if source.source.startswith(NODE):
        fellows.heard(state, source.source.removeprefix(NODE), source.state != SourceWord.STALE)
        if source.state == SourceWord.FRESH and source.detail != HEARD:
            fellows.over(state, moment, source.source.removeprefix(NODE))
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
    FaultLine: faultlog.remember,
    AlertTold: fellows.alerted,
}
