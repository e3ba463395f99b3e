"""No new checkpoint for too long: what a rollback would lose grows with every step."""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules import series
from gyrostat_rules.detectors.gauge import ABOVE, Gauge
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.inputs import CheckpointSeen
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State, key_of

SAVED = ("checkpoint_seconds", "checkpoint_bytes")  # told once for each, by the trainer's log or by the host
_LOOKED_AT = 32  # the newest, of each who tells of them
_GAPS = 5  # the newest, by which a run's own spacing is known


class Overdue(NamedTuple):
    """Breached where the newest checkpoint is ``times`` the longest of its last gaps old, in steps, but no less than
    ``least``; where that is more than ``after``, at ``after``, or at one and a half gaps where these are longer.

    Before a run has saved three times its spacing is not known, and it is ``after``. A run that names a folder for its
    checkpoints and has none is judged from its first step on; one that has told of none is not looked at.
    """

    after: Annotated[int, Field(ge=1)] = 1000
    times: Annotated[float, Field(ge=1)] = 3.0
    least: Annotated[int, Field(ge=0)] = 50


def overdue(params: Overdue, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading for trainer 0. The onset is the step after which the checkpoint was due."""
    trainer = state.trainer()
    if trainer is None or trainer.ended or not trainer.spoken or state.step <= params.least:
        return
    if _has_new(params, state):
        return  # the cheap way out, of many steps
    saved = _saved(state)
    if not saved and (state.checkpoints or not trainer.root):  # those that are left behind say nothing of the rest
        return
    newest, limit = saved[-1] if saved else _first_step(state), _limit(params, saved)
    age = state.step - newest
    if age > limit:
        since = f"the newest is that of step {newest}" if saved else "none has been seen"
        why = f"no checkpoint for {age} steps at step {state.step}: {since}; the limit is {limit}"
        labels = {"role": trainer.role, "rank": str(trainer.rank)}
        yield Reading(labels, float(age), newest + limit, why, {"value": age, "limit": limit, "newest": newest})


def overdue_gauges(params: Overdue, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge for trainer 0: how many steps ago the newest checkpoint was saved."""
    trainer = state.trainer()
    if trainer is None or trainer.ended or not trainer.spoken:
        return
    saved = _saved(state)
    if saved or (trainer.root and not state.checkpoints):
        newest = saved[-1] if saved else _first_step(state)
        said = f"the newest is that of step {newest}" if saved else "none has been seen since the first step"
        labels = {"role": trainer.role, "rank": str(trainer.rank)}
        age, limit = float(state.step - newest), float(_limit(params, saved))
        yield Gauge(labels, "", age, limit, ABOVE, said, "steps without a checkpoint")


def _has_new(params: Overdue, state: State) -> bool:
    """True where the one that was seen last is of the run as it goes now, and less than ``least`` steps old."""
    last = next(reversed(state.checkpoints.values()), None)
    return last is not None and 0 <= state.step - last.step <= params.least and not _is_left(state, last)


def _saved(state: State) -> Sequence[int]:
    """The newest steps of the run, as it goes now, at which a checkpoint was seen, told of, or being written."""
    newest = islice(reversed(state.checkpoints.values()), _LOOKED_AT)
    found = {seen.step for seen in newest if not _is_left(state, seen)}
    for windows in state.windows.values():
        found.update(step for name in SAVED if name in windows for step in windows[name].steps[-_LOOKED_AT:])
    busy = state.windows.get(key_of("trainer", 0), {}).get(series.CHECKPOINT_BUSY)
    if busy is not None:  # one that goes on is not overdue; how long it took is another rule's matter
        pairs = zip(reversed(busy.steps), reversed(busy.values), strict=True)
        found.update([next((step for step, value in pairs if value > 0), -1)])
    return sorted(step for step in found if 0 <= step <= state.step)


def _is_left(state: State, seen: CheckpointSeen) -> bool:
    """True for one of a stretch that the run has gone back from."""
    return any(jump.segment >= seen.segment and seen.step > jump.step for jump in state.jumps)


def _first_step(state: State) -> int:
    windows = state.windows.get(key_of("trainer", 0), {}).values()
    return min((window.steps[0] for window in windows if window.steps), default=state.step)


def _limit(params: Overdue, saved: Sequence[int]) -> int:
    gaps = [later - earlier for earlier, later in pairwise(saved)][-_GAPS:]
    if len(gaps) < 2:
        return params.after
    gap = max(gaps)
    return round(max(params.least, min(params.times * gap, max(params.after, 1.5 * gap))))
