"""A cluster in memory: objects with uid and resourceVersion, conditional merge patches, controllers, faults by plan.

For schedules that would take minutes over HTTP; what it means by a conflict is what tests/kubernetes_api holds the real
client to. ``starts`` counts how often a job's pods were begun: what must be two, once at first and once again.
``overlaps``: pods that were not gone when others were begun, each a second trainer at the same checkpoints.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gyrostat_agent.kubernetes.jobs import ALL
from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.refusals import AwayError, KubernetesError, refusal
from gyrostat_agent.kubernetes.request import Ref, Request

NAMESPACE, NAME, NODES = "ml", "run1", ("n1", "n2", "n3")
_GRACE = 3  # steps of the controllers that a pod takes to go
BY_NAME: dict[str, JobKind] = {k.plural + "." + k.api.partition("/")[0]: k for k in ALL}
Fault = Callable[[int, Request], str]


class DeathError(BaseException):
    """This life ends here."""


def job_of_kind(kind: JobKind) -> dict[str, Any]:
    """A running job, as a person makes it."""
    pod = {"spec": {"containers": [{"name": "node", "image": "t:1"}]}}
    spec: dict[str, Any] = {
        "Job": {"suspend": False, "template": pod},
        "JobSet": {"suspend": False, "replicatedJobs": [{"name": "node"}]},
        "TrainJob": {"suspend": False, "runtimeRef": {"name": "torch"}},
        "PyTorchJob": {"runPolicy": {"suspend": False}, "pytorchReplicaSpecs": {"Worker": {"template": pod}}},
    }.get(kind.kind, {})
    if kind.switch is None:
        spec = {"maxRetry": 10, "tasks": [{"name": "trainer", "template": pod}]}
    meta = {"name": NAME, "namespace": NAMESPACE, "labels": {}}
    return {"apiVersion": kind.api, "kind": kind.kind, "metadata": meta, "spec": spec, "status": {}}


def refused(request: Request, status: int, body: bytes, headers: Mapping[str, str]) -> KubernetesError:
    """The refusal, and the answer that it would be over HTTP."""
    error = refusal(request, status, body, headers)
    error.answer = (status, body, headers)  # type: ignore[attr-defined]
    return error


class Cluster:
    """Answers as the API server would; ``settle`` lets the controllers take one step."""

    def __init__(self, fault: Fault = lambda number, request: "") -> None:
        self.things: dict[Ref, dict[str, Any]] = {}
        self.fault = fault
        self.asked: list[Request] = []
        self.page = 2  # objects on one, so that no caller takes the first for the whole
        self.starts = self.overlaps = 0
        self.commands = 0
        self.forbidden: set[tuple[str, str]] = set()
        self._version = 0
        self._taken: list[list[Any]] = []  # commands that are gone, and not carried out yet

    def add(self, ref: Ref, thing: Mapping[str, Any]) -> dict[str, Any]:
        """Put an object there, and give it what the server gives."""
        self._version += 1
        made: dict[str, Any] = copy.deepcopy(dict(thing))
        meta = made.setdefault("metadata", {})
        meta.update(uid=f"uid-{self._version}", resourceVersion=str(self._version))
        self.things[ref] = made
        return made

    def begin(self, kind: JobKind) -> Ref:
        """A job of this kind, and its pods."""
        ref = kind.ref(NAME, NAMESPACE)
        self.add(ref, job_of_kind(kind))
        self.settle()
        return ref

    # -- what a client sees ----------------------------------------------------------------------------

    def ask(self, request: Request) -> Any:
        """One request, with what the plan of faults makes of it: before, after, or a status."""
        self.asked.append(request)
        word = self.fault(len(self.asked), request)
        if word == "before":
            raise AwayError("connection reset")
        if word == "death before":
            raise DeathError
        if word.isdigit():
            raise refused(request, int(word), b'{"message": "injected"}', {"Retry-After": "1"})
        if (request.verb, request.ref.resource) in self.forbidden:
            raise refused(request, 403, b'{"message": "forbidden"}', {})
        answer = self._answer(request)
        if word == "after":
            raise AwayError("connection reset")
        if word == "death after":
            raise DeathError
        return answer

    def _answer(self, request: Request) -> Any:
        ref, changes = request.ref, ("dryRun", "All") not in request.query
        if request.verb == "list":
            return self._page(request)
        if ref.plural == "selfsubjectaccessreviews":
            told = (request.body or {})["spec"]["resourceAttributes"]
            return {"status": {"allowed": (told["verb"], f"{told['resource']}.{told['group']}") not in self.forbidden}}
        if request.verb == "create" and ref.part == "eviction":
            return self._evict(request)
        if request.verb == "create":
            ref = ref._replace(name=str((request.body or {})["metadata"]["name"]))
            if ref in self.things:
                raise refused(request, 409, b'{"reason": "AlreadyExists", "message": "exists"}', {})
            return copy.deepcopy(self.add(ref, request.body or {}) if changes else request.body)
        if ref not in self.things:
            raise refused(request, 404, b'{"message": "not found"}', {})
        if request.verb == "get":
            return copy.deepcopy(self.things[ref])
        return self._patched(request, changes)

    def _patched(self, request: Request, changes: bool) -> Any:
        old = self.things[request.ref]
        wanted = copy.deepcopy(dict(request.body or {}))
        version = wanted.get("metadata", {}).pop("resourceVersion", None)
        if version not in (None, old["metadata"]["resourceVersion"]):
            raise refused(request, 409, b'{"reason": "Conflict", "message": "was modified"}', {})
        new = _merge(old, wanted)
        if changes and new != old:
            self._version += 1
            new["metadata"]["resourceVersion"] = str(self._version)
            self.things[request.ref] = new
        return copy.deepcopy(new)

    def _page(self, request: Request) -> dict[str, Any]:
        """As a server pages: no more than was asked for, and where the next page begins."""
        told, asked = list(self._listed(request)), dict(request.query)
        first, most = int(asked.get("continue", 0)), min(self.page, int(asked["limit"]))
        more = {"continue": str(first + most)} if first + most < len(told) else {}
        return {"metadata": more, "items": [copy.deepcopy(t) for t in told[first : first + most]]}

    def _listed(self, request: Request) -> Iterator[dict[str, Any]]:
        chosen = dict(request.query).get("labelSelector", "")
        name, _, value = chosen.partition("=")
        for ref, thing in sorted(self.things.items()):
            alike = (ref.api, ref.plural, ref.namespace) == (*request.ref[:2], request.ref.namespace)
            if alike and (not chosen or (thing["metadata"].get("labels") or {}).get(name) == value):
                yield thing

    def _evict(self, request: Request) -> Any:
        ref = request.ref._replace(part="")
        if ref not in self.things:
            raise refused(request, 404, b'{"message": "not found"}', {})
        wanted = (request.body or {})["deleteOptions"]["preconditions"]["uid"]
        if wanted != self.things[ref]["metadata"]["uid"]:
            raise refused(request, 409, b'{"message": "uid differs"}', {})
        del self.things[ref]
        return {"status": "Success"}

    # -- controllers -----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Each controller takes one step; pods take three to go, and are not counted as active then."""
        self._obey_commands()
        for ref, job in list(self.things.items()):
            if kind := BY_NAME.get(f"{ref.plural}.{ref.api.partition('/')[0]}"):
                self._control(ref, kind, job)

    def rest(self) -> None:
        """As many steps as it takes until nothing changes any more."""
        for _ in range(4 * _GRACE):
            self.settle()

    def pods(self, phase: str = "") -> list[dict[str, Any]]:
        """The pods that there are."""
        found = [t for r, t in self.things.items() if r.plural == "pods"]
        return [p for p in found if not phase or p["status"]["phase"] == phase]

    def _control(self, ref: Ref, kind: JobKind, job: dict[str, Any]) -> None:
        off = job["status"].get("told") == "off" if kind.switch is None else kind.is_off(job)
        restart = kind.switch is None and job["status"].get("told") == "restart"
        for pod in [r for r in self.things if r.plural == "pods"]:
            meta = self.things[pod]["metadata"]
            if meta.get("deletionTimestamp") == _GRACE:
                del self.things[pod]
            elif off or restart or meta.get("deletionTimestamp"):
                meta["deletionTimestamp"] = meta.get("deletionTimestamp", 0) + 1
        left = [p for p in self.pods() if not p["metadata"].get("deletionTimestamp")]
        if restart and not self.pods():
            self._status(ref, kind, 0, told="", version=job["status"].get("version", 0) + 1)
        elif not off and not restart and not left:
            self.overlaps += len(self.pods())
            self._start(ref, kind)
            left = self.pods("Running")
        self._status(ref, kind, len(left), off=off)

    def _start(self, ref: Ref, kind: JobKind) -> None:
        self.starts += 1
        job = self.things[ref]
        text = json.dumps(job["spec"])
        node = next(n for n in NODES if f'"{n}"' not in text and self._takes(n))
        uid = job["metadata"]["uid"]
        owner = {"apiVersion": kind.api, "kind": kind.kind, "name": NAME, "uid": uid, "controller": True}
        meta = {"name": f"{NAME}-0", "namespace": NAMESPACE, "labels": {kind.pods: NAME}, "ownerReferences": [owner]}
        meta["name"] = f"{NAME}-0-{self.starts}"
        pod = {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": "Running"}}
        self.add(Ref("v1", "pods", meta["name"], NAMESPACE), pod)

    def _takes(self, name: str) -> bool:
        node = self.things.get(Ref("v1", "nodes", name))
        return node is None or not (node["spec"].get("unschedulable") or node["spec"].get("taints"))

    def _obey_commands(self) -> None:
        """As Volcano does: the command goes first, and is carried out later."""
        for taken in list(self._taken):
            taken[1] -= 1
            if taken[1] == 0:
                self._taken.remove(taken)
                self._carry_out(taken[0])
        for ref in [r for r in self.things if r.plural == "commands"]:
            self._taken.append([self.things.pop(ref), 2])
            self.commands += 1

    def _carry_out(self, command: Mapping[str, Any]) -> None:
        at = next(r for r in self.things if r.name == command["target"]["name"] and r.api.startswith("batch.volcano"))
        retries = self.things[at]["status"].get("retryCount", 0)
        told = {"RestartJob": "restart", "AbortJob": "off", "ResumeJob": ""}[command["action"]]
        self._status(at, BY_NAME["jobs.batch.volcano.sh"], 1, told=told, retryCount=retries + 1)

    def _status(self, ref: Ref, kind: JobKind, active: int, *, off: bool = False, **more: Any) -> None:
        job = copy.deepcopy(self.things[ref])
        status = {**job["status"], **more}
        suspended = [{"type": "Suspended", "status": "True"}] if off else []
        if kind.switch is None:
            phase = ("Aborting" if active else "Aborted") if off else "Restarting" if status.get("told") else "Running"
            status.update(state={"phase": phase}, running=active)
        else:
            status.update(conditions=suspended, **_counts(kind, active))
        if status != job["status"]:
            self._version += 1
            job["metadata"]["resourceVersion"] = str(self._version)
            self.things[ref] = {**job, "status": status}


def owned(cluster: Cluster, ref: Ref, by: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An object that another controls."""
    meta = by["metadata"]
    link = {"apiVersion": by["apiVersion"], "kind": by["kind"], "name": meta["name"], "uid": meta["uid"]}
    made = {"metadata": {"name": ref.name, "namespace": NAMESPACE, "ownerReferences": [{**link, "controller": True}]}}
    return cluster.add(ref, {**made, **more})


def _counts(kind: JobKind, active: int) -> dict[str, Any]:
    """As each kind counts: pods that are being ended are active no longer."""
    return {
        "Job": {"active": active, "terminating": 0},
        "JobSet": {"replicatedJobsStatus": [{"name": "node", "active": active}]},
        "TrainJob": {"jobsStatus": [{"name": "node", "active": active}]},
        "PyTorchJob": {"replicaStatuses": {"Worker": {"active": active}}},
    }[kind.kind]


def _merge(old: Any, new: Any) -> Any:
    """RFC 7396."""
    if not isinstance(new, dict):
        return copy.deepcopy(new)
    found = dict(old) if isinstance(old, dict) else {}
    for name, value in new.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merge(found.get(name), value)
    return found
