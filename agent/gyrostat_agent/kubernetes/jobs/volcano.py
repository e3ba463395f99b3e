"""A Volcano Job: told by a Command, which the controller takes away before it carries it out, so at most once.

So a name that is always the same proves nothing once the command is gone: whether it was carried out is read off the
job, whose ``status.version`` and ``status.retryCount`` grow with each restart. Nothing of its pods' templates may be
changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gyrostat_agent.kubernetes.jobs.kind import JobKind, active, queued
from gyrostat_agent.kubernetes.request import Object, Ref

API, PLURAL = "bus.volcano.sh/v1alpha1", "commands"
RESTART, HOLD, GO_ON = "RestartJob", "AbortJob", "ResumeJob"
_ENDED = ("Completed", "Failed", "Terminated", "Completing", "Terminating")
_RETRIES = 3  # of a job that says nothing of maxRetry


def _phase(job: Object) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def _is_off(job: Object) -> bool:
    return _phase(job) in ("Aborting", "Aborted")


def _is_still(job: Object) -> bool:
    return _phase(job) == "Aborted" and active(job.get("status"), "running", "pending", "terminating") == 0


def _keep_off(job: Object, nodes: Sequence[str]) -> tuple[dict[str, Any], str]:
    return {}, "a Volcano Job takes no change of its pods: cordon the node instead"


def _over(job: Object) -> str:
    return f"it has ended ({_phase(job)})" if _phase(job) in _ENDED else ""


def _unfit(job: Object) -> str:
    """Beyond its retries, a restart is the job's end: the controller counts this one as any other."""
    most = (job.get("spec") or {}).get("maxRetry") or _RETRIES
    done = marks(job)["retries"]
    if done + 1 >= most:
        return f"a restart would end it: {done} of maxRetry {most} are used up, and Volcano fails it at the last"
    return queued(job)


def marks(job: Object) -> Mapping[str, int]:
    """What grows with each restart."""
    status = job.get("status") or {}
    return {"version": int(status.get("version") or 0), "retries": int(status.get("retryCount") or 0)}


def was_restarted(job: Object, before: Mapping[str, int]) -> bool:
    """True where the controller has begun it anew since ``before`` was read."""
    return _phase(job) == "Restarting" or any(value > before.get(name, 0) for name, value in marks(job).items())


def command_ref(name: str, namespace: str) -> Ref:
    """Where a command lies."""
    return Ref(API, PLURAL, name, namespace)


def command(job: Object, name: str, action: str, reason: str) -> dict[str, Any]:
    """A command to this job, of fixed name; it goes when the job does."""
    meta = job["metadata"]
    target = {"apiVersion": KIND.api, "kind": KIND.kind, "name": meta["name"], "uid": meta["uid"], "controller": True}
    return {
        "apiVersion": API, "kind": "Command",
        "metadata": {"name": name, "namespace": meta["namespace"], "ownerReferences": [target]},
        "action": action, "target": target, "reason": "Gyrostat", "message": reason[:300],
    }  # fmt: skip


KIND = JobKind(
    "batch.volcano.sh/v1alpha1", "Job", "jobs", "volcano.sh/job-name",
    _is_off, _is_still, None, _keep_off, _over, _unfit,
)  # fmt: skip
