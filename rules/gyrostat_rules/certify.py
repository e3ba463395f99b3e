"""Which checkpoint to go back to, and why each newer one is not it.

Certified is: complete, digest matches and every number finite (*verified*); older than the onset; not of a
stretch that the run has left; no open incident at its step; and either the trainer's guard vouches for the
steps up to it, or K clean steps follow it before the onset. One that already led back here is not tried again.
Where none is so, an open incident of a milder cause is overlooked: uneven experts are better than none.
"""

from gyrostat_rules import series
from gyrostat_rules.causes import REQUEST, graver
from gyrostat_rules.inputs import CheckpointSeen, Fit
from gyrostat_rules.jump import abandoned
from gyrostat_rules.state import Incident, State

CLEAN_STEPS = 10


def choose(state: State, incident: Incident) -> tuple[CheckpointSeen | None, list[str]]:
    """The newest certified checkpoint, and a sentence for each that was looked at before it."""
    known = [s for s in newest_first(state) if not incident.wanted or name_of(s.path) == name_of(incident.wanted)]
    refused = {seen.path: unfit(state, incident, seen) for seen in known}
    target = next((seen for seen in known if not refused[seen.path]), None)
    though = ""
    if target is None:  # where a milder cause was at work all along, its checkpoints are better than a run that ends
        target = next((seen for seen in known if not unfit(state, incident, seen, milder_too=True)), None)
        though = f", though {refused[target.path]}" if target else ""
    newer = known[: known.index(target)] if target else known
    said = [f"step {seen.step} not: {refused[seen.path]}" for seen in newer]
    if target is None:
        return None, said or ["no checkpoint has been seen"]
    when = "as it was asked for" if incident.wanted else f"before the onset at step {incident.onset}"
    return target, [f"step {target.step} chosen: {target.fit}, {when}{though}", *said]


def newest_first(state: State) -> list[CheckpointSeen]:
    """All checkpoints that are known, by age."""
    return sorted(state.checkpoints.values(), key=lambda c: (c.segment, c.step, c.saved_at), reverse=True)


def unfit(state: State, incident: Incident, seen: CheckpointSeen, *, milder_too: bool = False) -> str:
    """Why this checkpoint must not be rolled back to for this incident, or ''; a milder one that was open is no reason
    where ``milder_too``.
    """
    if seen.fit != Fit.VERIFIED:
        return seen.why or seen.fit
    if seen.step >= incident.onset:
        return f"saved at or after the onset, step {incident.onset}"
    if abandoned(state, seen.segment, seen.step):
        return "of a stretch that the run has left"
    if name_of(seen.path) in map(name_of, incident.tried_targets):
        return "already led back to this incident"
    for other in state.incidents:
        if milder_too and incident.kind != REQUEST and graver(incident.kind, other.kind):
            continue
        until = max(other.resolved_step, other.last_bad_step)  # one that was stopped lasted as long as it was bad
        if other is not incident and other.onset <= seen.step and (other.open or seen.step <= until):
            return f"incident {other.id} was open at its step"
    if not _vouched(state, seen) and incident.onset - 1 - seen.step < CLEAN_STEPS:
        return f"only {incident.onset - 1 - seen.step} clean steps follow it, {CLEAN_STEPS} are needed without a guard"
    return ""


def name_of(path: str) -> str:
    """A checkpoint's own name, which it has wherever it lies: a pin of it is the same one."""
    return path.rsplit("/", 1)[-1]


def _vouched(state: State, seen: CheckpointSeen) -> bool:
    """True where the trainer says of its steps whether they were applied: no bad one can have been unseen."""
    windows = state.windows.get("trainer/0", {})
    return series.STEP_APPLIED in windows and seen.step <= state.step
