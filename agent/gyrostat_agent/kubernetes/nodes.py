"""Nodes: kept out of scheduling, within a budget and never below a number of healthy ones. Pure: objects in, a patch
out.

``spec.taints`` is one list without keys: a patch replaces all of it, a cloud's own among them. So it is read, changed
and sent back whole, on the condition that nothing was changed meanwhile; a conflict means reading again.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from gyrostat_agent.kubernetes.jobs.kind import holds
from gyrostat_agent.kubernetes.request import Object, Ref, Request, annotations_of, patch, version_of

KEY = "gyrostat-kept-out"  # annotation: by whom and why
TAINT = "gyrostat-kept-out"
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"


class Limits(NamedTuple):
    """``budget``: nodes that may be kept out at once; ``least``: healthy ones that must remain."""

    budget: int = 1
    least: int = 1


def ref(name: str) -> Ref:
    """Where a node lies."""
    return Ref("v1", "nodes", name)


def cordon(node: Object, by: str, why: str) -> Request:
    """Nothing new is scheduled there; what runs goes on."""
    return _changed(node, _note(by, why), {"unschedulable": True})


def taint(node: Object, by: str, why: str, effect: str = NO_SCHEDULE) -> Request:
    """The same by a taint, which what tolerates it passes; with NoExecute, what runs there is ended."""
    others = [t for t in _taints(node) if not (t.get("key") == TAINT and t.get("effect") == effect)]
    return _changed(node, _note(by, why), {"taints": [*others, {"key": TAINT, "value": "true", "effect": effect}]})


def let_in(node: Object) -> Request:
    """Take back what was done here; what others have done stays."""
    ours = is_ours(node)
    spec: dict[str, Any] = {"taints": [t for t in _taints(node) if t.get("key") != TAINT] or None}
    if ours and (node.get("spec") or {}).get("unschedulable"):
        spec["unschedulable"] = None
    return _changed(node, {KEY: None}, spec)


def denied(node: Object, everyone: Sequence[Object], limits: Limits) -> str:
    """Why this node must not be kept out now, or ''. Asked again for the same node, it is no second one."""
    name = node["metadata"]["name"]
    out = [n["metadata"]["name"] for n in everyone if is_ours(n) and n["metadata"]["name"] != name]
    if len(out) >= limits.budget:
        return f"{len(out)} of at most {limits.budget} nodes are kept out already: {', '.join(sorted(out)[:5])}"
    left = sum(is_healthy(n) for n in everyone if n["metadata"]["name"] != name)
    if left < limits.least:
        return f"{left} healthy nodes would remain, and at least {limits.least} must"
    return "" if is_ours(node) or not is_out(node) else "somebody else keeps it out already"


def is_ours(node: Object) -> bool:
    """True where it was kept out from here."""
    return KEY in annotations_of(node)


def is_out(node: Object) -> bool:
    """True where nothing new is scheduled on it."""
    spec = node.get("spec") or {}
    return bool(spec.get("unschedulable")) or any(t.get("key") == TAINT for t in _taints(node))


def is_healthy(node: Object) -> bool:
    """True where it is ready and takes pods."""
    return holds(node, "Ready") and not is_out(node)


def _changed(node: Object, annotations: Object, spec: Object) -> Request:
    meta = {"resourceVersion": version_of(node), "annotations": annotations}
    return patch(ref(node["metadata"]["name"]), {"metadata": meta, "spec": spec})


def _note(by: str, why: str) -> dict[str, str]:
    return {KEY: json.dumps({"by": by[:100], "why": why[:300]}, ensure_ascii=False)}


def _taints(node: Object) -> list[Any]:
    return list((node.get("spec") or {}).get("taints") or [])
