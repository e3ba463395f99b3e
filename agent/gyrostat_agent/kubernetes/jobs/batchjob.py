"""A batch Job: ``spec.suspend``; its pods are counted as active until told to end, and as terminating after."""

from collections.abc import Sequence
from typing import Any

from gyrostat_agent.kubernetes.jobs.kind import JobKind, active, ended, holds, is_suspended, queued, suspending, without
from gyrostat_agent.kubernetes.request import Object


def _is_still(job: Object) -> bool:
    return holds(job, "Suspended") and active(job.get("status"), "active", "terminating") == 0


def _keep_off(job: Object, nodes: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Older API servers take this of a Job that never ran alone: the answer is 422 then, and it is begun without."""
    pod = job["spec"]["template"].get("spec") or {}
    return {"spec": {"template": {"spec": {"affinity": without(pod, nodes)}}}}, ""


def _over(job: Object) -> str:
    return ended(job, "Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")


KIND = JobKind(
    "batch/v1", "Job", "jobs", "batch.kubernetes.io/job-name",
    is_suspended, _is_still, suspending, _keep_off, _over, queued,
)  # fmt: skip
