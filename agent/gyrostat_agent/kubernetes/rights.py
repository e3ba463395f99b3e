"""Rights: which layer of roles grants what, in one table. ``deploy/kustomize`` and docs/kubernetes.md are held to it.

A right that is missing turns one capability off and is said once; nothing else stops.
"""

from typing import NamedTuple

OBSERVE, JOB, NODES, FINISHER = "observe", "job", "nodes", "finisher"


class Right(NamedTuple):
    """``why``: what is not done without it."""

    layer: str
    verb: str
    resource: str
    why: str


KINDS = ("jobs.batch", "jobsets.jobset.x-k8s.io", "trainjobs.trainer.kubeflow.org", "pytorchjobs.kubeflow.org",
         "jobs.batch.volcano.sh")  # fmt: skip
RIGHTS = (
    Right(OBSERVE, "get", "pods", "find the job that owns this pod"),
    Right(OBSERVE, "list", "pods", "see that no trainer of the job runs any more before it is begun again"),
    *(Right(OBSERVE, "get", kind, "see how the job stands; read the ledger that it bears") for kind in KINDS),
    Right(OBSERVE, "create", "events", "say at the job and the pod what was found and done"),
    Right(OBSERVE, "patch", "events", "count what is said again, instead of saying it again"),
    Right(OBSERVE, "get", "leases.coordination.k8s.io", "see who decides, and whether somebody finishes what is begun"),
    Right(OBSERVE, "create", "leases.coordination.k8s.io", "make the lease by which one of several agents decides"),
    Right(OBSERVE, "patch", "leases.coordination.k8s.io", "take, renew and give back that lease"),
    *(Right(JOB, "patch", kind, "hold and begin the job; the ledger and an action's progress stand on it")
      for kind in KINDS),
    Right(JOB, "create", "commands.bus.volcano.sh", "tell Volcano to restart, abort or resume its job"),
    Right(JOB, "create", "pods/eviction", "move one pod, within its disruption budget"),
    *(Right(FINISHER, "list", kind, "find what a pod that is gone has begun, to finish it") for kind in KINDS),
    Right(NODES, "get", "nodes", "see a node's taints before they are changed"),
    Right(NODES, "list", "nodes", "count the healthy nodes and those kept out, before one more is"),
    Right(NODES, "patch", "nodes", "cordon and taint"),
)  # fmt: skip


def folder_of(layer: str) -> str:
    """Where a layer's roles lie in the repository."""
    return f"deploy/kustomize/{'' if layer == FINISHER else 'rbac/'}{layer}"


def layer_of(verb: str, resource: str) -> str:
    """Which layer grants it, '' where none does."""
    return next((r.layer for r in RIGHTS if (r.verb, r.resource) == (verb, resource)), "")
