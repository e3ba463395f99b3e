"""A PyTorchJob of the training operator v1: ``spec.runPolicy.suspend``; its pods are removed, and made anew after."""

from collections.abc import Sequence
from typing import Any

from gyrostat_agent.kubernetes.jobs.kind import JobKind, active, ended, holds, queued, without
from gyrostat_agent.kubernetes.request import Object


def _is_off(job: Object) -> bool:
    return bool(((job.get("spec") or {}).get("runPolicy") or {}).get("suspend"))


def _is_still(job: Object) -> bool:
    told = (job.get("status") or {}).get("replicaStatuses") or {}
    return holds(job, "Suspended") and sum(active(one, "active") for one in told.values()) == 0


def _switch(on: bool) -> dict[str, Any]:
    return {"spec": {"runPolicy": {"suspend": not on}}}


def _keep_off(job: Object, nodes: Sequence[str]) -> tuple[dict[str, Any], str]:
    replicas = job["spec"]["pytorchReplicaSpecs"]
    found = {
        name: {"template": {"spec": {"affinity": without(replica["template"].get("spec") or {}, nodes)}}}
        for name, replica in replicas.items()
    }
    return {"spec": {"pytorchReplicaSpecs": found}}, ""


def _over(job: Object) -> str:
    return ended(job, "Succeeded", "Failed")


def _unfit(job: Object) -> str:
    policy = (job.get("spec") or {}).get("runPolicy") or {}
    by = str(policy.get("managedBy") or "")
    return f"another cluster's controller runs it ({by[:80]})" if by.startswith("kueue.x-k8s.io/") else queued(job)


KIND = JobKind(
    "kubeflow.org/v1", "PyTorchJob", "pytorchjobs", "training.kubeflow.org/job-name",
    _is_off, _is_still, _switch, _keep_off, _over, _unfit,
)  # fmt: skip
