"""A TrainJob of Kubeflow Trainer v2: ``spec.suspend``. Only ``runtimePatches`` may change of the rest, while it
stands still.

Its arguments and environment are fixed: where it resumes from, the trainer finds in the pointer beside its
checkpoints.
"""

from collections.abc import Sequence
from typing import Any

from gyrostat_agent.kubernetes.jobs.kind import JobKind, active, ended, holds, is_suspended, queued, suspending, without
from gyrostat_agent.kubernetes.request import Object

MANAGER = "gyrostat/agent"  # the entry of ``runtimePatches`` that is ours; those of others are sent back as they were
_TRAINER = "node"  # replicated job of the trainer's pods


def _is_still(job: Object) -> bool:
    told = (job.get("status") or {}).get("jobsStatus") or []
    return holds(job, "Suspended") and sum(active(one, "active") for one in told) == 0


def _keep_off(job: Object, nodes: Sequence[str]) -> tuple[dict[str, Any], str]:
    """A merge patch replaces the list as a whole: all of it is sent, and only our entry differs."""
    entries = list((job.get("spec") or {}).get("runtimePatches") or [])
    ours: Object = next((e for e in entries if e.get("manager") == MANAGER), {})
    pod = {"affinity": without(_pod(ours), nodes)}
    one = {"name": _TRAINER, "template": {"spec": {"template": {"spec": pod}}}}
    entry = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [one]}}}}
    return {"spec": {"runtimePatches": [*(e for e in entries if e.get("manager") != MANAGER), entry]}}, ""


def _pod(entry: Object) -> Object:
    """Our own earlier word on the trainer's pods."""
    try:
        jobs = entry["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        found: Object = next(j["template"]["spec"]["template"]["spec"] for j in jobs if j["name"] == _TRAINER)
    except (KeyError, TypeError, StopIteration):
        return {}
    return found


def _over(job: Object) -> str:
    return ended(job, "Complete", "Failed")


KIND = JobKind(
    "trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs", "jobset.sigs.k8s.io/jobset-name",
    is_suspended, _is_still, suspending, _keep_off, _over, queued,
)  # fmt: skip
