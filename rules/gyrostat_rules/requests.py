"""Requests: what a person asks of checkpoints by name: go back to one, give one a tag.

A request opens an incident of its own kind, with the agent's own two ways of going back as its ladder, so that what is
sent, answered and proved is written down as ever. It goes to certified checkpoints alone: a person may choose among
them, and be wrong about the others.
"""

from collections.abc import Mapping
from typing import Any

from gyrostat.wire.fields import clean
from gyrostat_rules.alerts import FIRING
from gyrostat_rules.causes import REQUEST
from gyrostat_rules.certify import name_of, newest_first, unfit
from gyrostat_rules.incidents import OPEN, move
from gyrostat_rules.inputs import CheckpointSeen
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import REQUESTED
from gyrostat_rules.remedies import REMEDIES
from gyrostat_rules.state import Incident, State

LAST_STABLE, STABLE = "last-stable", "stable"
NOT_DONE = "not done: "
_MOST_TAGS, _LONGEST_TAG = 100, 64
_NAMED = 80  # characters of a name: it stands in the incident, in the ledger and on pages


def speaker(arguments: Mapping[str, Any]) -> str:
    """Who says it, in one short line."""
    return " ".join(clean(str(arguments.get("by", ""))[: 2 * _NAMED]).split())[:_NAMED] or "somebody"


def target(state: State, wanted: str) -> tuple[CheckpointSeen | None, list[str]]:
    """The checkpoint that is meant by ``last-stable``, a step or a tag, and a sentence for each that was passed by.

    The last stable one is the newest that somebody has tagged ``stable``; where nobody has, the newest certified. While
    a validation is below its best, none that is newer than the last good one is stable.
    """
    until = well_until(state) if wanted == LAST_STABLE else None
    late = {name_of(seen.path) for seen in newest_first(state) if until is not None and seen.step > until}
    meant = [seen for seen in newest_first(state) if _is_meant(state, wanted, seen, late)]
    said = [] if until is None else [f"those after step {until} not: a validation has been below its best since"]
    for seen in meant:
        if reason := unfit(state, _request(state, "", seen), seen):
            said.append(f"step {seen.step} not: {reason}")
        else:
            return seen, [f"step {seen.step} chosen: {seen.fit}", *said]
    return None, said or [f"no checkpoint is known by {wanted!r}"]


def well_until(state: State) -> int | None:
    """The step of the last validation that was good, while an alert tells of one that is below its best; else None."""
    steps = [a.evidence["well_step"] for a in state.alerts.values() if a.state == FIRING and "well_step" in a.evidence]
    return min(steps, default=None)


def why_not(state: State, seen: CheckpointSeen, *, certified_only: bool = False) -> str:
    """Why nobody can go back to this checkpoint now, or ''. ``certified_only``: whoever would have to do it."""
    incident = _request(state, f"i{state.incident_count + 1:04d}", seen)
    if (reason := unfit(state, incident, seen)) or certified_only:
        return reason
    reasons = [REMEDIES[rung.remedy].fit(state, incident, rung) for rung in REQUESTED.rungs]
    return "; ".join(reasons) if all(reasons) else ""


def go_back(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    """Open the request's incident; its first action is planned in this very moment. Says why not where it cannot be."""
    wanted, by = str(arguments.get("to", ""))[:_NAMED], speaker(arguments)
    seen, said = target(state, wanted)
    if seen is None:
        return f"{NOT_DONE}{'; '.join(said[:4])}"
    if (other := next((i for i in state.incidents if i.kind == REQUEST and i.open), None)) is not None:
        return f"{NOT_DONE}{other.id} is under way already: {other.why}"
    if reason := why_not(state, seen):
        return f"{NOT_DONE}{reason}"
    incident = _request(state, f"i{state.incident_count + 1:04d}", seen)
    state.incident_count += 1
    state.incidents = [*state.incidents, incident]
    incident.fired_at = moment.at
    why = f"{by} asked to go back to step {seen.step} ({wanted})"
    move(moment, incident, OPEN, why)
    return f"{incident.id}: {why}"


def tag(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    """Give the newest verified checkpoint of a step a tag, or take it away; what has one is kept from rotation."""
    word, step, by = str(arguments.get("tag", "")), str(arguments.get("step", ""))[:_NAMED], speaker(arguments)
    if not word.isprintable() or not 0 < len(word) <= _LONGEST_TAG or word.isdecimal() or word == LAST_STABLE:
        return f"{NOT_DONE}{word[:80]!r} is no tag: write letters, not a number, at most {_LONGEST_TAG}"
    if arguments.get("off"):
        names = [name for name, tags in state.tags.items() if word in tags and _step_of(state, name) == step]
        return _untag(state, names, word, by) if names else f"{NOT_DONE}no checkpoint of step {step} is tagged {word}"
    seen = next((s for s in newest_first(state) if str(s.step) == step and s.fit == "verified"), None)
    if seen is None:
        return f"{NOT_DONE}no verified checkpoint of step {step} is known"
    if len(state.tags) >= _MOST_TAGS and name_of(seen.path) not in state.tags:
        return f"{NOT_DONE}{_MOST_TAGS} checkpoints are tagged: take a tag away first"
    tags = state.tags.setdefault(name_of(seen.path), [])
    if word not in tags:
        tags.append(word)
    return f"{by} tagged step {step} {word}: it is kept from rotation"


def _untag(state: State, names: list[str], word: str, by: str) -> str:
    for name in names:
        state.tags[name].remove(word)
        if not state.tags[name]:
            del state.tags[name]
    return f"{by} took the tag {word} away"


def _is_meant(state: State, wanted: str, seen: CheckpointSeen, late: set[str]) -> bool:
    """``late``: names of those that cannot be the last stable one, whatever they are tagged."""
    if wanted == LAST_STABLE:
        stable = {name for name, tags in state.tags.items() if STABLE in tags and name not in late}
        return name_of(seen.path) not in late and (not stable or name_of(seen.path) in stable)
    return str(seen.step) == wanted or wanted in state.tags.get(name_of(seen.path), ())


def _step_of(state: State, name: str) -> str:
    return next((str(seen.step) for seen in state.checkpoints.values() if name_of(seen.path) == name), "")


def _request(state: State, name: str, seen: CheckpointSeen) -> Incident:
    """Nothing is bad after the checkpoint that is wanted: what follows it must only stay well."""
    step = state.step + 1
    trainer = state.trainer()
    return Incident(
        name, REQUEST, "", step, state.step, 0.0, [], seen.step, segment=state.segment,
        life=trainer.incarnation if trainer else "", first_kind=REQUEST, wanted=seen.path,
    )  # fmt: skip
