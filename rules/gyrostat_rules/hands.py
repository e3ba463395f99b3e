"""Hands: a knob that a person turns while an incident is open is theirs until it is over.

No action turns it again but by an approval, and nothing that is taken back takes it along: what a hand has set in the
midst of the trouble is a decision of somebody who knows of it. A change that came before the incident may be its cause,
and is what ``put_back`` is for. Seen are changes that the trainer announces in the life and segment that it is in, and
those that its records show under the knob's name. A schedule is no hand: it moves again and again, and does not stand.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gyrostat.wire import Hello, KnobChange, KnobState
from gyrostat_rules.detectors.knobdrift import KnobDrift, knob_drift
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.jump import abandoned
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import Action, Incident, Process, State
from gyrostat_rules.theirs import Hand

_DRIFT = KnobDrift()  # a rate falls and rises by itself: of those only a leap is somebody's
_STANDS = 2  # values told since it was turned, which are the same
_LOOKED, _MOVES = 32, 2  # values before it; so many moves among them, and it moves by itself
_TRAINER = {"role": "trainer", "rank": "0"}
_SAME = 1e-6  # relative; a knob may be kept as float32


def announced(state: State, moment: Moment, process: Process, hello: Hello) -> None:
    """Look at a Hello before it is taken in: which knobs it shows otherwise than the one before."""
    if (hello.role, hello.rank) != ("trainer", 0):
        return
    if (process.incarnation, process.segment) == (hello.incarnation, hello.segment):
        for knob in hello.knobs:
            _compare(state, moment, process, knob)
    elif process.incarnation != hello.incarnation:
        process.moved = {}
        _let_go(state, {knob.name: knob.value for knob in hello.knobs})
    process.announced = state.step if hello.segment == state.segment else -1


def watch(state: State, moment: Moment) -> None:
    """A stage: find the knobs that the records show turned since an incident opened."""
    incidents = [i for i in state.incidents if i.open]
    for incident in incidents:
        if incident.opened_step < 0 <= moment.step:
            incident.opened_step, incident.opened_segment, moment.changed = moment.step, state.segment, True
    if not incidents or not moment.records or (trainer := state.trainer()) is None:
        return
    for reading in knob_drift(_DRIFT, state, moment):
        name = _knob_of(reading)
        if name in trainer.knobs and _TRAINER.items() <= reading.labels.items() and math.isfinite(reading.value):
            _look(state, moment, incidents, name)


def theirs(state: State, name: str) -> Hand | None:
    """The newest turn of this knob by hand during an incident that is still open; None where there is none.

    What was turned at a step that the run has since gone back behind is gone with it.
    """
    found = [i.hands[name] for i in state.incidents if i.open and name in i.hands]
    found = [hand for hand in found if not abandoned(state, hand.segment, hand.step)]
    return max(found, key=lambda hand: (hand.segment, hand.step), default=None)


def reads(state: State, name: str) -> KnobState | None:
    """The knob as it reads now: as announced, or as a hand has set it since."""
    trainer = state.trainer()
    knob, hand = trainer.knobs.get(name) if trainer else None, theirs(state, name)
    if trainer is None or knob is None or hand is None or trainer.announced >= hand.step:
        return knob
    return knob._replace(value=hand.value)


def left(state: State, changes: Sequence[KnobChange]) -> list[KnobChange]:
    """Those of these changes back that a hand has not overtaken: back to where a hand has put it is well."""
    return [c for c in changes if (hand := theirs(state, c.name)) is None or _is_same(hand.value, c.value)]


def in_the_way(state: State, incident: Incident, action: Action) -> Hand | None:
    """The hand on a knob that this action would turn. Of ``put_back`` one in its own incident alone counts: what was
    turned before that is just what it mends."""
    hands = [incident.hands.get(c.name) if action.remedy == "put_back" else theirs(state, c.name) for c in action.knobs]
    return next((h for h in hands if h is not None and not abandoned(state, h.segment, h.step)), None)


# -- what is announced --------------------------------------------------------------------------------


def _compare(state: State, moment: Moment, process: Process, knob: KnobState) -> None:
    old = process.knobs.get(knob.name)
    if old is None or not math.isfinite(knob.value) or _is_same(old.value, knob.value):
        return
    if _is_ours(state, knob.name, knob.value) or any(a.procedure in ("rollback", "restart") for a in _out(state)):
        return
    process.moved[knob.name] = process.moved.get(knob.name, 0) + 1
    scheduled = process.moved[knob.name] > _MOVES or _moves_itself(state, knob.name, _told(state, knob.name)[1])
    if scheduled and theirs(state, knob.name) is None:
        return
    incidents = [i for i in state.incidents if i.open and _is_timed(state, process, i)]
    _note(state, moment, incidents, Hand(knob.name, knob.value, old.value, max(state.step, 0), state.segment))


def _is_ours(state: State, name: str, value: float) -> bool:
    """True for a value that our newest directive about this knob gave it, or, while it is out, found there."""
    newest = max(_turned(state, name), default=None)
    return newest is not None and any(_is_same(value, known) for known in newest[1:])


def _is_timed(state: State, process: Process, incident: Incident) -> bool:
    """True where the change is known to lie within the incident: the trainer had announced its knobs since it opened,
    or does so now for this change's own sake. With an answer to us it shows whatever has gathered since the last time.
    """
    return not any(_out(state)) or process.announced >= incident.opened_step >= 0


def _let_go(state: State, knobs: dict[str, float]) -> None:
    """Another life began: a knob that reads otherwise in it is nobody's hand any more."""
    for incident in state.incidents:
        if incident.hands:
            kept = {n: h for n, h in incident.hands.items() if _is_same(knobs.get(n, math.nan), h.value)}
            incident.hands = kept


# -- what records show --------------------------------------------------------------------------------


def _knob_of(reading: Reading) -> str:
    """The knob that a reading of drift is about; '' for the small steps of a rate, which schedules take."""
    name = reading.evidence.get("knob", "")
    return str(reading.evidence.get("series", "") if not name or name in _DRIFT.rates else name)


def _look(state: State, moment: Moment, incidents: list[Incident], name: str) -> None:
    steps, values = _told(state, name)
    place = len(values) - 1
    while place > 0 and _is_same(values[place - 1], values[-1]):
        place -= 1
    hand = Hand(name, values[-1], values[place - 1], steps[place], state.segment) if place else None
    known = theirs(state, name)
    if hand is None or len(values) - place < _STANDS or (known is not None and _is_same(known.value, hand.value)):
        return
    if _is_ours(state, name, hand.value) or (known is None and _moves_itself(state, name, values[:place])):
        return
    since = (hand.segment, hand.step)
    _note(
        state, moment, [i for i in incidents if since > (i.opened_segment, i.opened_step) and i.opened_step >= 0], hand
    )


def _told(state: State, name: str) -> tuple[Sequence[int], Sequence[float]]:
    window = state.windows.get("trainer/0", {}).get(name)
    return (window.steps, window.values) if window else ((), ())


def _moves_itself(state: State, name: str, values: Sequence[float]) -> bool:
    """True for a series that has moved again and again without us."""
    moves = sum(not _is_same(before, after) for before, after in pairwise(values[-_LOOKED:]))
    return moves - sum(1 for _ in _turned(state, name)) >= _MOVES


# -- both ---------------------------------------------------------------------------------------------


def _note(state: State, moment: Moment, incidents: list[Incident], hand: Hand) -> None:
    """It is theirs: written down once, and taken out of what would be taken back."""
    if not incidents:
        return
    for incident in incidents:
        incident.hands = {**incident.hands, hand.knob: hand}
    for action in (a for i in state.incidents if i.open for a in i.actions):
        action.restores = [change for change in action.restores if change.name != hand.knob]
    text = (
        f"{hand.knob} was turned by hand from {hand.before:g} to {hand.value:g} at step {hand.step}, while "
        f"{', '.join(i.id for i in incidents)} is open: it is theirs, and is left there"
    )
    moment.write(EntryKind.RUN, "trainer/0", "turned", text, knob=hand.knob, value=hand.value, found=hand.before)


def _turned(state: State, name: str) -> Iterator[tuple[int, float, float]]:
    """Of each directive of ours about a knob its number, its value, and what it finds there until it is answered."""
    out = {action.number for action in _out(state)}
    for incident in state.incidents:
        for action in (a for a in incident.actions if a.number):
            found = [(c.value, c.expect if action.number in out else c.value) for c in action.knobs if c.name == name]
            yield from ((action.number, *values) for values in found)


def _out(state: State) -> Iterator[Action]:
    """Actions that are sent and not answered."""
    for incident in state.incidents:
        yield from (a for a in incident.actions if a.number and not a.outcome and a.applied_step < 0)


def _is_same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME)
