"""Read a pack file: YAML text in, a RulePack out, or every mistake in it with line, column and the fix.

Called by the engine when it is fed a Pack, and by whoever checks one before that. The text is handed in: nothing
here opens a file. A pack that parses uses detectors, remedies, kinds and alerts that exist; it is not promised
that its thresholds are wise.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from gyrostat_rules.pack import Effect, Harm, KnobPlan, Playbook, Rule, RulePack, Rung
from gyrostat_rules.packchecks import CHECKS, Finding, findings, parameters
from gyrostat_rules.packdraft import GroupDraft, PackDraft, PlaybookDraft, RuleDraft, RungDraft, keys_at
from gyrostat_rules.packerrors import Mistake, PackError
from gyrostat_rules.packmerge import read_all
from gyrostat_rules.packtree import REFUSED, Tree

__all__ = ["Mistake", "PackError", "parse"]


def parse(text: str, name: str = "pack") -> RulePack:
    """The pack that ``text`` declares, or as one all those that ``---`` lines part in it.

    Raises PackError with all mistakes, ``name`` standing for the file in it.
    """
    tree = read_all(text)
    found = [] if tree.value is REFUSED else list(_look(tree.value))
    mistakes = [*tree.mistakes, *(_placed(f, tree) for f in found)]
    if mistakes:
        raise PackError(name, mistakes)
    return _pack(PackDraft.model_validate(tree.value))


def _look(value: Any) -> Iterator[Finding]:
    try:
        PackDraft.model_validate(value)
    except ValidationError as error:
        yield from findings(error, (), keys_at)
    for check in CHECKS:
        yield from check(value)


def _placed(finding: Finding, tree: Tree) -> Mistake:
    place = tree.place(finding.path, key=finding.at_key)
    return Mistake(*place, finding.what, finding.fix)


def _pack(draft: PackDraft) -> RulePack:
    rules = tuple(rule for group in draft.groups for rule in _rules(group))
    ladders = (r for group in draft.groups for r in group.rules if r.remedies)
    playbooks = [*draft.playbooks, *(PlaybookDraft(incident=r.incident, rungs=r.remedies) for r in ladders)]
    return RulePack(draft.pack, rules, tuple(_playbook(p) for p in playbooks))


def _rules(group: GroupDraft) -> Iterator[Rule]:
    for draft in group.rules:
        shared = {name: getattr(draft, name) for name in Rule._fields if name in RuleDraft.model_fields}
        yield Rule(**shared, params=parameters(draft.detector, draft.with_), group=group.name)


def _playbook(draft: PlaybookDraft) -> Playbook:
    return Playbook(
        draft.incident,
        tuple(_rung(r) for r in draft.rungs),
        budget_actions=draft.budget.actions,
        budget_steps=draft.budget.steps,
        ceiling_incidents=draft.ceiling.incidents,
        ceiling_steps=draft.ceiling.steps,
        cooldown=draft.cooldown,
        standstill_incidents=draft.standstill.incidents,
        standstill_steps=draft.standstill.steps,
        most_lost=draft.blast_radius.steps,
        most_knobs=draft.blast_radius.knobs,
        most_ranks=draft.blast_radius.ranks,
    )


def _rung(draft: RungDraft) -> Rung:
    knobs = tuple(
        KnobPlan(k.name, k.times, k.to, k.at_least, k.at_most, k.keep or draft.keep, k.then) for k in draft.knobs
    )
    effects = tuple(Effect(**e.model_dump()) for e in draft.effects)
    harm = Harm(**draft.harm.model_dump()) if draft.harm else None
    budget = (draft.budget.actions, draft.budget.steps) if draft.budget else ()
    return Rung(draft.remedy, draft.horizon, knobs, draft.settle, effects, harm, *budget)
