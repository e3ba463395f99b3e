"""Rows: the steps of a test in the order in which they are told, with what happens after each.

A step back tells steps a second time, so that a step alone says no place: a row's segment counts the steps back
before it, and the n-th value of every series is the n-th row's.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gyrostat_agent.ruletest.draft import CaseDraft, EventDraft
from gyrostat_agent.ruletest.notation import spelled


class Row(NamedTuple):
    """One step: ``life`` counts the trainer's lives before this one."""

    number: int
    segment: int
    step: int
    life: int
    events: tuple[EventDraft, ...]


def rows(case: CaseDraft) -> list[Row]:
    """All steps of a test. An event that lies behind the last of them is none of theirs."""
    found, left = list[Row](), list(case.events)
    segment, step, life = 0, case.first_step, 0
    for number in range(_count(case)):
        events = tuple(e for e in left if e.after == step and e.segment in (None, segment))
        left = [e for e in left if e not in events]
        found.append(Row(number, segment, step, life, events))
        step += 1
        for event in events:
            if event.back_to is not None:
                step, segment = event.back_to, segment + 1
            life += event.new_life and event.role == "trainer"
    return found


def row_of(found: Sequence[Row], step: int, segment: int | None) -> Row | None:
    """The row of a step: of a segment, or the first that tells it."""
    return next((row for row in found if row.step == step and segment in (None, row.segment)), None)


def _count(case: CaseDraft) -> int:
    return max((len(spelled(text).values) for text in _texts(case)), default=0)


def _texts(case: CaseDraft) -> Iterator[str]:
    yield from (series.values for series in case.series)
    for skew in case.experts.skew if case.experts else ():
        yield from (text for text in (skew.top, skew.dead) if text is not None)
