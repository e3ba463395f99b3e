"""A jump back of the run: what was seen of the steps undone is forgotten, what was decided is kept."""

from gyrostat_rules.alerts import FIRING, RESOLVED, tell
from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.moment import Moment
from gyrostat_rules.remembered import Jump
from gyrostat_rules.state import State

_REMEMBERED = 100


def jumped(state: State, moment: Moment, jump: Jump) -> None:
    """Leave a segment: its alerts that came from records are gone with the steps they came from."""
    state.jumps = [*state.jumps[1 - _REMEMBERED :], jump]
    forget_alerts(state, moment)
    text = f"the run went back to step {jump.step}; segment {jump.segment + 1} begins"
    moment.write(EntryKind.RUN, "trainer/0", "jumped", text, jump.step, segment=jump.segment + 1)


def forget_alerts(state: State, moment: Moment, role: str = "", rank: int = 0) -> None:
    """Drop the alerts that came from records, of all processes or of one whose records are undone or over.

    Who was told that one fires is told that it does no more: else it fires for ever outside.
    """
    from_records = {r.alert for r in moment.pack.rules if not DETECTORS[r.detector].by_time}
    for key, alert in list(state.alerts.items()):
        theirs = not role or (alert.labels.get("role"), alert.labels.get("rank")) == (role, str(rank))
        if alert.rule in from_records and theirs:
            del state.alerts[key]
            if alert.state == FIRING:
                tell(moment, key, alert, RESOLVED)


def rewind(state: State, moment: Moment, key: str, step: int) -> None:
    """Forget what one process has said of ``step`` and later ones: they are undone."""
    for window in state.windows.get(key, {}).values():
        window.rewind(step)
    state.recent[key] = [r for r in state.recent.get(key, []) if r.step < step]
    for later in [s for s in state.buckets if s >= step]:
        state.buckets[later].pop(key, None)
        if not state.buckets[later]:
            del state.buckets[later]
    role, _, rank = key.rpartition("/")
    forget_alerts(state, moment, role, int(rank))


def abandoned(state: State, segment: int, step: int) -> bool:
    """True for a step that a later jump undid."""
    return any(j.segment >= segment and step > j.step for j in state.jumps)
