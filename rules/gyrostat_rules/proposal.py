"""Proposal: a way back that waits for a person, where a validation has gone below its best.

A validation judges the weights, and the set that it was made on: which of the two has changed no rule can tell. So
nothing is ever done about it, in whatever mode. What is said is which checkpoint the last stable one is, and the
command that goes back to it; once, and again only where that is another.
"""

from gyrostat_rules.alerts import FIRING
from gyrostat_rules.causes import REQUEST
from gyrostat_rules.certify import name_of
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import CheckpointSeen
from gyrostat_rules.moment import Moment
from gyrostat_rules.requests import LAST_STABLE, STABLE, target, well_until
from gyrostat_rules.state import Alert, State

PROPOSED, OVER = "proposed", "over"
SUBJECT = "rollback"


def propose(state: State, moment: Moment) -> None:
    """Say what could be gone back to, that it is another by now, or that it is over."""
    until = well_until(state)
    if until is None and not state.proposed:
        return
    asked = any(i.kind == REQUEST and i.open for i in state.incidents)
    seen = target(state, LAST_STABLE)[0] if until is not None and not asked else None
    said = _words(state, until, seen) if until is not None and not asked else ""
    if said == state.proposed:
        return
    state.proposed = said
    if not said:
        why = "a person has asked to go back" if asked else "no validation is below its best any more"
        moment.write(EntryKind.PROPOSAL, SUBJECT, OVER, why)
        return
    moment.write(
        EntryKind.PROPOSAL, SUBJECT, PROPOSED, said, well_step=until, alerts=[key for key, _ in _regressed(state)],
        target={"path": seen.path, "digest": seen.digest, "target_step": seen.step} if seen else None,
    )  # fmt: skip


def _words(state: State, until: int, seen: CheckpointSeen | None) -> str:
    """What is proposed; nothing in it changes from step to step, or it would be said at each."""
    told = ", ".join(sorted({f"{a.labels.get('series', a.rule)} since step {a.onset}" for _, a in _regressed(state)}))
    if seen is None:
        return (
            f"below its best: {told}; nothing of step {until} or before is certified, so there is nothing to go back "
            "to; gyrostat checkpoints list says why"
        )
    what = f"tagged {STABLE}" if STABLE in state.tags.get(name_of(seen.path), ()) else "certified"
    return (
        f"below its best: {told}; the last stable checkpoint is that of step {seen.step}, {what}; "
        f"to go back: gyrostat checkpoints rollback --to {LAST_STABLE}"
    )


def _regressed(state: State) -> list[tuple[str, Alert]]:
    return [(key, a) for key, a in state.alerts.items() if a.state == FIRING and "well_step" in a.evidence]
