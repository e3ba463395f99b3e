"""What the API server may answer beside yes, for whoever must decide whether to ask again.

::

    KubernetesError            one sentence: what was asked, what was answered, what to do
    ├── AwayError              no answer, or 429, 5xx: nobody knows whether it was done; read before asking again
    ├── ConflictError          409, 410, or a precondition failed: somebody was faster; read again
    ├── MissingError           404: there is no such thing
    ├── ForbiddenError         403: a right is missing; names verb, resource and the layer that grants it
    └── RejectedError          anything else: asking again would be answered alike
"""

import json
from collections.abc import Mapping
from typing import Any

from gyrostat.wire.fields import clean
from gyrostat_agent.errors import AgentError
from gyrostat_agent.kubernetes.request import Request, words
from gyrostat_agent.kubernetes.rights import folder_of, layer_of

_SAID = 300  # characters of what a server says
_LONGEST = 300.0  # seconds that a server's Retry-After is heeded


class KubernetesError(AgentError):
    """Base of all; its text is meant for people."""


class AwayError(KubernetesError):
    """Nobody knows whether it was done. ``after``: seconds that the server asked to wait, 0.0 for none."""

    def __init__(self, said: str, after: float = 0.0) -> None:
        super().__init__(said)
        self.after = after


class ConflictError(KubernetesError):
    """What was read is no longer so. ``exists``: what was to be made is there already, under its name."""

    def __init__(self, said: str, exists: bool = False) -> None:
        super().__init__(said)
        self.exists = exists


class MissingError(KubernetesError):
    """There is no such thing."""


class ForbiddenError(KubernetesError):
    """A right is missing. ``right`` is ``verb resource``, ``layer`` what grants it."""

    def __init__(self, said: str, right: str, layer: str) -> None:
        super().__init__(said)
        self.right, self.layer = right, layer


class RejectedError(KubernetesError):
    """Asking again would be answered alike. ``status``: the answer's."""

    def __init__(self, said: str, status: int) -> None:
        super().__init__(said)
        self.status = status


def refusal(request: Request, status: int, body: bytes, headers: Mapping[str, str]) -> KubernetesError:
    """The error that an answer stands for."""
    said = f"{words(request)}: {status} {_message(body)}".rstrip()
    if status == 403:
        right = f"{request.verb} {request.ref.resource}"
        layer = layer_of(request.verb, request.ref.resource)
        where = folder_of(layer) if layer else "a role of your own"
        what = f"this service account may not {right}: {_message(body)}; {where} grants it"
        return ForbiddenError(f"{what}. What needs it is not done; all else goes on", right, layer)
    if status == 404:
        return MissingError(said)
    if status in (409, 410, 412):
        return ConflictError(said, status == 409 and _field(body, "reason") == "AlreadyExists")
    if status == 429 and _budget(body):  # a PodDisruptionBudget: not a server that is busy, a no for now
        return RejectedError(said, status)
    if status in (408, 429) or status >= 500:
        return AwayError(said, _after(headers))
    if status == 401:
        return AwayError(f"{said}; the service account's token is not taken (rotated? clocks apart?)")
    return RejectedError(said, status)


def _message(body: bytes) -> str:
    text = _field(body, "message") or body.decode("utf-8", "replace")
    return clean(text[:_SAID])


def _field(body: bytes, name: str) -> str:
    """Of the Status that a refusal comes with, '' where it comes with another body."""
    try:
        raw: Any = json.loads(body)
        return str(raw[name])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def _budget(body: bytes) -> bool:
    return b"DisruptionBudget" in body or b"disruption budget" in body


def _after(headers: Mapping[str, str]) -> float:
    try:
        seconds = float(next((v for k, v in headers.items() if k.lower() == "retry-after"), "0"))
    except ValueError:
        return 0.0
    return min(max(0.0, seconds), _LONGEST) if seconds == seconds else 0.0
