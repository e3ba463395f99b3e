"""A JobSet: ``spec.suspend``. Of its pods' templates it takes no affinity, so that no node can be left out of it."""

from collections.abc import Sequence
from typing import Any

from gyrostat_agent.kubernetes.jobs.kind import JobKind, active, ended, holds, is_suspended, queued, suspending
from gyrostat_agent.kubernetes.request import Object


def _is_still(job: Object) -> bool:
    told = (job.get("status") or {}).get("replicatedJobsStatus") or []
    return holds(job, "Suspended") and sum(active(one, "active") for one in told) == 0


def _keep_off(job: Object, nodes: Sequence[str]) -> tuple[dict[str, Any], str]:
    return {}, "a JobSet's pods take no change of affinity: cordon the node instead"


def _over(job: Object) -> str:
    return ended(job, "Completed", "Failed")


KIND = JobKind(
    "jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets", "jobset.sigs.k8s.io/jobset-name",
    is_suspended, _is_still, suspending, _keep_off, _over, queued,
)  # fmt: skip
