"""One pod, moved: told to go by its uid, so that its successor of the same name is never the one that goes. Pure."""

from typing import Any

from gyrostat_agent.kubernetes.request import Object, Ref, Request, create


def ref(name: str, namespace: str) -> Ref:
    """Where a pod lies."""
    return Ref("v1", "pods", name, namespace)


def evict(pod: Object) -> Request:
    """Through its disruption budget, which may say no for now."""
    meta = pod["metadata"]
    body: dict[str, Any] = {
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }  # fmt: skip
    return create(ref(meta["name"], meta["namespace"])._replace(part="eviction"), body)


def denied(pod: Object) -> str:
    """Why this pod must not be moved, or ''."""
    meta = pod["metadata"]
    if not any(r.get("controller") for r in meta.get("ownerReferences") or []):
        return "no controller owns it: nobody would begin it again"
    return "it is being ended already" if meta.get("deletionTimestamp") else ""
