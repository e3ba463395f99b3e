"""Permission: asked for before anything is begun, so that what cannot be done is not offered. Changes nothing."""

import contextlib

from gyrostat_agent.kubernetes.jobs import volcano
from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.refusals import AwayError, ConflictError, KubernetesError, RejectedError, refusal
from gyrostat_agent.kubernetes.request import Ref, Request, Server, create, dry, patch

_REVIEWS = Ref("authorization.k8s.io/v1", "selfsubjectaccessreviews")


def ask_for(server: Server, kind: JobKind, job: Ref) -> None:
    """Raises ForbiddenError where a right is missing that holding or restarting this job takes, or AwayError."""
    with contextlib.suppress(ConflictError, RejectedError):
        server.ask(dry(patch(job, {})))  # empty besides: a server that took it in earnest would change nothing
    if kind.switch is None and not _may_create(server, volcano.command_ref("", job.namespace)):
        raise refusal(Request("create", volcano.command_ref("", job.namespace)), 403, b"", {})


def _may_create(server: Server, ref: Ref) -> bool:
    """By a review, and not by a trial: a command is carried out. True where none is answered: then trying will tell."""
    group = ref.api.partition("/")[0]
    attributes = {"namespace": ref.namespace, "verb": "create", "group": group, "resource": ref.plural}
    body = {
        "apiVersion": _REVIEWS.api, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes},
    }  # fmt: skip
    try:
        return bool(server.ask(create(_REVIEWS, body))["status"]["allowed"])
    except AwayError:
        raise
    except (KubernetesError, KeyError, TypeError):
        return True
