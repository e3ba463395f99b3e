"""What a person aims at: a job, by its name or as the owner of this pod, a node, a pod; what would be sent to it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_agent.errors import SetupError
from gyrostat_agent.kubernetes import course, jobledger, nodes, pods
from gyrostat_agent.kubernetes import progress as steps
from gyrostat_agent.kubernetes.jobs import ALL
from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.owner import job_of, this_pod
from gyrostat_agent.kubernetes.progress import GO_ON, HAND, HOLD, RESTART, Order
from gyrostat_agent.kubernetes.refusals import KubernetesError
from gyrostat_agent.kubernetes.request import Object, Ref, Request, Server, annotations_of, every, get

SECONDS = 1800.0  # that a person waits at most
_NAMES = {"job": "batch/v1", "jobset": "JobSet", "trainjob": "TrainJob", "pytorchjob": "PyTorchJob",
          "volcano": "batch.volcano.sh/v1alpha1"}  # fmt: skip
_WORDS = {"restart": RESTART, "hold": HOLD, "go-on": GO_ON}
_EFFECTS = {"cordon": nodes.cordon, "taint": nodes.taint}


class Target(NamedTuple):
    """A job as it stands."""

    kind: JobKind
    ref: Ref
    job: Object


class DeniedError(KubernetesError):
    """It must not be done now, and why."""


def found(server: Server, job: str, namespace: str) -> Target:
    """The job that ``KIND/NAME`` names, else this pod's; raises SetupError or KubernetesError."""
    if not job:
        owned = job_of(server, this_pod())
        return Target(owned.kind, owned.ref, server.ask(get(owned.ref)))
    word, _, name = job.partition("/")
    kind = next((k for k in ALL if _NAMES.get(word.lower()) in (k.kind, k.api)), None)
    if kind is None or not name:
        raise SetupError(f"--job {job[:80]}: write KIND/NAME, of {', '.join(_NAMES)}")
    ref = kind.ref(name, namespace or this_pod().namespace)
    return Target(kind, ref, server.ask(get(ref)))


def by_hand(target: Target, what: str, now: float, avoid: tuple[str, ...], reason: str) -> Order:
    """A person's order: under the number that stands there, so that none of the directives to come is taken for old."""
    stands = steps.read(target.job)
    number = stands.number if stands is not None else 0
    return Order("", number, f"{HAND}{now:.3f}", _WORDS[what], now + SECONDS, avoid, reason)


def first_request(target: Target, order: Order, now: float) -> Request:
    """What would be sent first; the rest depends on what the cluster makes of it. Raises DeniedError."""
    move = course.next_move(target.kind, target.job, order, now)
    if isinstance(move, course.Send):
        return move.request
    raise DeniedError(
        f"{target.kind.kind} {target.ref.name}: {move.said if isinstance(move, course.Over) else move.why}"
    )


def node_change(server: Server, what: str, name: str, why: str, limits: nodes.Limits) -> Request:
    """The patch that keeps a node out, or lets it in; raises DeniedError beyond the limits."""
    node: Object = server.ask(get(nodes.ref(name)))
    if what == "let-in":
        return nodes.let_in(node)
    everyone = every(server, nodes.ref(""))
    if denied := nodes.denied(node, everyone, limits):
        raise DeniedError(f"node {name}: {denied}")
    return _EFFECTS[what](node, "a person", why)


def eviction(server: Server, name: str, namespace: str) -> Request:
    """What moves a pod; raises DeniedError where nobody would begin it again."""
    pod: Object = server.ask(get(pods.ref(name, namespace or this_pod().namespace)))
    if denied := pods.denied(pod):
        raise DeniedError(f"pod {name}: {denied}")
    return pods.evict(pod)


def told(target: Target) -> Mapping[str, Any]:
    """How it stands, for people and machines."""
    kind, job = target.kind, target.job
    noted, doubt = jobledger.read(annotations_of(job))
    try:
        stands = steps.read(job)
        begun = f"directive {stands.number}: {stands.what}, {stands.step}" if stands else "nothing"
        said = stands.said if stands else ""
    except steps.ProgressError as error:
        begun, said = "unknown", str(error)
    stand = kind.over(job) or (
        "stands still" if kind.is_still(job) else "is being stopped" if kind.is_off(job) else "runs"
    )
    return {
        "job": f"{kind.kind} {target.ref.name} in {target.ref.namespace}", "stands": stand,
        "restart": kind.unfit(job) or "can be begun again", "begun": begun, "said": said,
        "ledger": doubt or (f"up to directive {noted.counts[0] - 1}" if noted else "none"),
    }  # fmt: skip
