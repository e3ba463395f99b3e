"""What one must know of a kind of job to hold it and to begin it again; each kind is a value of this."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gyrostat_agent.kubernetes.request import Object, Ref

_QUEUE = "kueue.x-k8s.io/queue-name"
_HOST = "kubernetes.io/hostname"


class JobKind(NamedTuple):
    """``is_off``: it has been told to stand still; ``is_still``: it does, by its condition and by what it counts.

    ``switch(on)``: the part of a merge patch that stops or begins it; None for Volcano, which takes commands.
    ``keep_off(job, nodes)``: the part that keeps its pods off nodes, '' and why where this kind takes none.
    ``over``: how it has ended, ''; ``pods``: the label of its pods; ``unfit``: why it is not to be restarted.
    """

    api: str
    kind: str
    plural: str
    pods: str
    is_off: Callable[[Object], bool]
    is_still: Callable[[Object], bool]
    switch: Callable[[bool], dict[str, Any]] | None
    keep_off: Callable[[Object, Sequence[str]], tuple[dict[str, Any], str]]
    over: Callable[[Object], str]
    unfit: Callable[[Object], str]

    def ref(self, name: str, namespace: str) -> Ref:
        """Where one lies."""
        return Ref(self.api, self.plural, name, namespace)


def is_suspended(job: Object) -> bool:
    """``is_off`` of the kinds that are stopped by ``spec.suspend``."""
    return bool((job.get("spec") or {}).get("suspend"))


def suspending(on: bool) -> dict[str, Any]:
    """``switch`` of those."""
    return {"spec": {"suspend": not on}}


def holds(job: Object, condition: str) -> bool:
    """True where the job's status says so."""
    found = job.get("status", {}).get("conditions") or []
    return any(c.get("type") == condition and c.get("status") == "True" for c in found)


def ended(job: Object, *conditions: str) -> str:
    """The first of these conditions that holds, as words, or ''."""
    return next((f"it has ended ({c})" for c in conditions if holds(job, c)), "")


def queued(job: Object) -> str:
    """Why it is not ours to suspend, or '': a queue that does so itself would begin it at once, or never."""
    if queue := (job.get("metadata", {}).get("labels") or {}).get(_QUEUE):
        return f"it is in queue {str(queue)[:80]} of Kueue, which alone suspends and begins it"
    by = str((job.get("spec") or {}).get("managedBy") or "")
    return f"another cluster's controller runs it ({by[:80]})" if by.startswith("kueue.x-k8s.io/") else ""


def active(counts: Mapping[str, Any] | None, *names: str) -> int:
    """Sum of what a status counts under these names."""
    return sum(int((counts or {}).get(name) or 0) for name in names)


def without(spec: Object, nodes: Sequence[str]) -> dict[str, Any]:
    """``affinity`` of a pod that stays off these nodes: each of the terms says so, for any one is enough."""
    affinity = dict(spec.get("affinity") or {})
    near = dict(affinity.get("nodeAffinity") or {})
    needed = dict(near.get("requiredDuringSchedulingIgnoredDuringExecution") or {})
    terms = [_off(term, nodes) for term in needed.get("nodeSelectorTerms") or [{}]]
    near["requiredDuringSchedulingIgnoredDuringExecution"] = {**needed, "nodeSelectorTerms": terms}
    return {**affinity, "nodeAffinity": near}


def _off(term: Object, nodes: Sequence[str]) -> dict[str, Any]:
    """One term with the nodes left out; what it left out already stays out, once."""
    others = list(term.get("matchExpressions") or [])
    ours = next((e for e in others if e.get("key") == _HOST and e.get("operator") == "NotIn"), None)
    names = sorted({*(ours.get("values") or [] if ours else []), *nodes})
    kept = [e for e in others if e is not ours]
    return {**term, "matchExpressions": [*kept, {"key": _HOST, "operator": "NotIn", "values": names}]}
