"""Advice: what would have been done about an incident, and what a person looks at next, from pack and runbooks."""

import re
from importlib import resources

from gyrostat_rules.pack import RulePack
from gyrostat_rules.remedies import REMEDIES

_CHECKS = 3
_ITEM = re.compile(r"^\d+\. (.+(?:\n {2,}\S.*)*)", re.MULTILINE)


def action(pack: RulePack, kind: str, *, harmed: bool = False) -> str:
    """The mildest rung of the playbook for that kind, in words; '' where there is none.

    ``harmed``: bad updates were applied, so that what only keeps them from coming again is too late.
    """
    book, left_out = pack.playbook(kind), {"page", *(("put_back", "skip_data") if harmed else ())}
    rungs = [rung for rung in book.rungs if rung.remedy not in left_out] if book else []
    if not rungs:
        return "ask a person" if book else ""
    knobs = ", ".join(plan.words() for plan in rungs[0].knobs)
    return REMEDIES[rungs[0].remedy].summary + (f": {knobs}" if knobs else "")


def checks(runbook: str) -> tuple[str, ...]:
    """The first things that a runbook has people check by hand."""
    try:
        text = (resources.files("gyrostat_rules") / "runbooks" / f"{runbook}.md").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ()
    _, _, behind = text.partition("## How to check by hand")
    found = [" ".join(item.split()) for item in _ITEM.findall(behind.partition("\n## ")[0])]
    return tuple(_closed(item) for item in found[:_CHECKS])


def _closed(item: str) -> str:
    """What introduces a command points at it: commands stay in the runbook."""
    return f"{item[:-1]}; the runbook has the command" if item.endswith(":") else item
