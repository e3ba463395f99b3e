"""Whose pod this is: from the downward API's words up the owner references to the job that a person has made."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from gyrostat_agent.errors import SetupError
from gyrostat_agent.kubernetes.jobs import ALL, kind_of
from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.refusals import ForbiddenError, KubernetesError, MissingError
from gyrostat_agent.kubernetes.request import Object, Ref, Server, get

NAME, NAMESPACE, UID, NODE = "POD_NAME", "POD_NAMESPACE", "POD_UID", "NODE_NAME"
_HIGHEST = 5  # steps up: Pod, Job, JobSet, TrainJob


class Pod(NamedTuple):
    """This pod, as the downward API names it; ``uid`` and ``node`` may be ''."""

    name: str
    namespace: str
    uid: str = ""
    node: str = ""

    @property
    def ref(self) -> Ref:
        """Where it lies."""
        return Ref("v1", "pods", self.name, self.namespace)


class Owned(NamedTuple):
    """The job that owns a pod; ``above``: something unknown that owns it in turn, or ''."""

    kind: JobKind
    ref: Ref
    uid: str
    above: str = ""


class OwnerError(KubernetesError):
    """There is no job of ours to act on: a pod without one, or of an unknown kind."""


def this_pod(environment: Mapping[str, str] = os.environ) -> Pod:
    """From the environment; raises SetupError with what the manifest lacks."""
    lacking = [name for name in (NAME, NAMESPACE) if not environment.get(name)]
    if lacking:
        raise SetupError(
            f"{' and '.join(lacking)} not set: give them by the downward API (metadata.name, metadata.namespace), as "
            "deploy/kustomize/components/kubernetes does"
        )
    return Pod(environment[NAME], environment[NAMESPACE], environment.get(UID, ""), environment.get(NODE, ""))


def controller_of(thing: Object) -> Object | None:
    """The owner reference that controls it."""
    references = thing.get("metadata", {}).get("ownerReferences") or []
    return next((r for r in references if r.get("controller")), None)


def job_of(server: Server, pod: Pod) -> Owned:
    """The topmost job of a known kind above this pod; raises OwnerError or what the server answered."""
    thing: Object = server.ask(get(pod.ref))
    if pod.uid and thing["metadata"]["uid"] != pod.uid:
        raise OwnerError(f"pod {pod.name} is another by now (uid {thing['metadata']['uid']}): this one was replaced")
    found: Owned | None = None
    for _ in range(_HIGHEST):
        reference = controller_of(thing)
        if reference is None:
            break
        kind = kind_of(str(reference["apiVersion"]), str(reference["kind"]))
        said = f"{reference['kind']} {reference['name']} ({reference['apiVersion']})"
        if kind is None:
            found = found and found._replace(above=said)
            if found is None:
                raise OwnerError(f"pod {pod.name} is {said}'s, which is none of {_known()}: nothing can be done to it")
            break
        ref = kind.ref(str(reference["name"]), pod.namespace)
        thing = _owner(server, ref, said)
        found = Owned(kind, ref, str(reference["uid"]))
        if thing["metadata"]["uid"] != found.uid:
            raise OwnerError(f"{said} was made anew under its name; this pod is of the one before")
    if found is None:
        raise OwnerError(f"no controller owns pod {pod.name}: were it deleted, nobody would begin it again")
    return found


def _owner(server: Server, ref: Ref, said: str) -> Object:
    try:
        thing: Object = server.ask(get(ref))
    except MissingError:
        raise OwnerError(f"{said} is gone; its pods are about to go too") from None
    except ForbiddenError:
        raise
    return thing


def _known() -> str:
    return ", ".join(f"{k.kind} ({k.api})" for k in ALL)
