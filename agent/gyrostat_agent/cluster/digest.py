"""Digest: what of all that an agent sees is told to the one that decides. Called in the loop, after each pass.

Told are its own trainer ranks, and its alerts as they turn: a node judges its own hardware and engines, whose numbers
bear the same names on every node. Of the many ranks only what they are compared by is told (``manyranks``). Not told:
checkpoints (whoever decides looks at them itself), sources, and trainers that are only read from a log, whose rank
nobody has announced.
"""

from collections.abc import Iterable, Iterator, Sequence

from gyrostat.wire import Exit, Hello, Record
from gyrostat_rules.alerts import FIRING, RESOLVED
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import AlertTold, Answer, Died, Ended, FaultLine, Item
from gyrostat_rules.manyranks import told_of
from gyrostat_rules.state import Process, State

TRAINER = "trainer"
Told = tuple[Item, bool]  # and whether it cannot wait


def told(state: State, items: Iterable[Item], compared: frozenset[str]) -> Iterator[Told]:
    """What of a pass's news is forwarded; ``compared`` are the series by which ranks are compared."""
    ours = own_ranks(state)
    for item in items:
        if isinstance(item, Record):
            if item.role == TRAINER and item.rank in ours:
                short = told_of(item, compared)
                yield short, not _is_finite(short)
        elif isinstance(item, (Hello, Answer, Ended)):
            if item.role == TRAINER:
                yield item, True
        elif isinstance(item, Died):
            for death in _deaths(item, ours):
                yield death, True
        elif isinstance(item, FaultLine) and ours:
            rank = item.rank if item.rank in ours else min(ours)
            yield item._replace(role=TRAINER, rank=rank), True


def turned(state: State, entries: Iterable[Entry]) -> Iterator[Told]:
    """The alerts that have turned, as they are by now."""
    keys = dict.fromkeys(e.subject for e in entries if e.kind == EntryKind.ALERT and e.state in (FIRING, RESOLVED))
    for key in keys:
        alert = state.alerts.get(key)
        if alert is None:
            rule = key.partition("{")[0]
            yield AlertTold(key, rule, {}, RESOLVED, state.step, state.step, 0.0, ""), True
        elif alert.state == FIRING and not alert.node:
            yield _alert(state, key), True


def introduction(state: State) -> list[Item]:
    """All that a new leader must know of this node: its trainer ranks and the alerts that fire."""
    said: list[Item] = [item for p in _own(state) for item in (_hello(state, p), *_end(p))]
    return said + [_alert(state, key) for key, a in state.alerts.items() if a.state == FIRING and not a.node]


def own_ranks(state: State) -> frozenset[int]:
    """The trainer ranks of this node: those that have said Hello here."""
    return frozenset(p.rank for p in _own(state))


def is_beside(state: State) -> bool:
    """Whether the trainer's rank 0 is on this node, and lives."""
    rank0 = state.trainer()
    return rank0 is not None and bool(rank0.incarnation) and not rank0.node and not rank0.ended


def _own(state: State) -> Sequence[Process]:
    return [p for p in state.processes.values() if p.role == TRAINER and p.incarnation and not p.node]


def _deaths(news: Died, ours: frozenset[int]) -> Iterator[Died]:
    """A launcher's end is that of each rank of this node, and no other node's."""
    if news.exit.role != TRAINER:
        return
    if news.exit.rank in ours and 0 not in ours:
        yield news
    elif 0 in ours:
        yield news._replace(exit=news.exit._replace(rank=0))
    else:
        for rank in sorted(ours):
            yield news._replace(exit=news.exit._replace(rank=rank))


def _end(p: Process) -> tuple[Item, ...]:
    """How it ended, as whoever saw it said so; nothing where it lives."""
    how, _, number = p.ended.partition(" ")
    if not p.ended or how not in ("exit", "signal"):
        return (Ended(p.role, p.rank, p.incarnation),) if p.ended else ()
    status = int(number) if how == "exit" else -int(number)
    return (Died("", Exit(p.role, p.rank, p.pid, status, p.asked)),)


def _hello(state: State, p: Process) -> Hello:
    return Hello(
        state.run, p.role, p.rank, p.world, p.incarnation, p.segment, p.pid, tuple(p.knobs.values()),
        tuple(p.procedures), p.root, p.last_directive,
    )  # fmt: skip


def _alert(state: State, key: str) -> AlertTold:
    a = state.alerts[key]
    return AlertTold(key, a.rule, dict(a.labels), FIRING, a.onset, a.last_step, a.value, a.why, dict(a.evidence))


def _is_finite(record: Record) -> bool:
    total = sum(record.values.values())
    return total - total == 0.0
