"""Events of Kubernetes, at the job and its pod: what ``kubectl describe`` shows of what was found and done.

Repeated words are counted, not said again. A text is at most 1 KiB, and what looks like a secret in it is masked: log
lines are quoted in it, and more people may read events than logs. Not promised: that each is there; they are for
looking, and the journal has all. Kept for an hour by most clusters.
"""

import hashlib
import re
from collections import OrderedDict, deque
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.kubernetes.refusals import AwayError, ConflictError, KubernetesError
from gyrostat_agent.kubernetes.request import Ref, Server, create, patch

MOST = 1024  # bytes of a message, by the API
_WAITING, _KNOWN = 200, 500
_GRAVE = ("open", "held", "stopped", "failed", "unknown", "timed out", "sent", "ineffective")
_MASKS = (
    re.compile(r"(?i)\b(bearer\s+)\S+"),
    re.compile(r"(?i)\b((?:api[_-]?key|token|password|passwd|secret|authorization)\s*[=:]\s*)\S+"),
    re.compile(r"(://)[^/\s@]+@"),
    re.compile(r"\b()(?:hf_|sk-|ghp_|glpat-|AKIA|eyJ)[A-Za-z0-9_\-.]{12,}"),
)


class Word(NamedTuple):
    """What is to be said: ``reason`` in CamelCase, ``grave`` as a Warning."""

    reason: str
    message: str
    grave: bool


class Regarding(NamedTuple):
    """The object that it is said at."""

    api: str
    kind: str
    name: str
    namespace: str
    uid: str


def word_of(kind: str, subject: str, state: str, text: str) -> Word:
    """An entry of the journal as an event's words."""
    reason = "".join(part.capitalize() for part in re.split(r"\W+", f"{kind} {state}") if part)
    return Word(reason[:128], masked(f"{subject}: {text}"), state in _GRAVE)


def masked(text: str) -> str:
    """Without what looks like a secret, in one line, of at most 1 KiB."""
    for mask in _MASKS:
        text = mask.sub(r"\1***", text)
    return clean(text).encode()[:MOST].decode("utf-8", "ignore")


def body(word: Word, at: Regarding, now: float, count: int, node: str = "") -> dict[str, Any]:
    """The object; its name is alike for the same words at the same object, so that a repetition finds it."""
    mark = hashlib.blake2b(f"{at.uid} {word.reason} {word.message}".encode(), digest_size=8).hexdigest()
    when = datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": f"{at.name[:200]}.{mark}", "namespace": at.namespace},
        "involvedObject": {
            "apiVersion": at.api, "kind": at.kind, "name": at.name, "namespace": at.namespace, "uid": at.uid,
        },
        "reason": word.reason, "message": word.message, "type": "Warning" if word.grave else "Normal",
        "source": {"component": "gyrostat", **({"host": node} if node else {})},
        "firstTimestamp": when, "lastTimestamp": when, "count": count,
    }  # fmt: skip


class Events:
    """What waits to be said; ``tell`` from any thread, ``send`` from one. Full, the oldest goes, and is counted."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Word, float]] = deque(maxlen=_WAITING)
        self._counts: OrderedDict[str, int] = OrderedDict()
        self.lost = 0

    def tell(self, word: Word, now: float) -> None:
        """Say it when there is time."""
        self.lost += len(self._waiting) == _WAITING
        self._waiting.append((word, now))

    def send(self, server: Server, at: tuple[Regarding, ...], node: str = "", most: int = 10) -> None:
        """Say up to ``most``; raises AwayError, and what was not said waits, or KubernetesError, and it is lost."""
        for _ in range(min(most, len(self._waiting))):
            word, now = self._waiting[0]
            try:
                for one in at:
                    self._say(server, body(word, one, now, 1, node))
            except AwayError:
                raise
            except KubernetesError:
                self._waiting.popleft()
                self.lost += 1
                raise
            self._waiting.popleft()

    def _say(self, server: Server, event: Mapping[str, Any]) -> None:
        meta = event["metadata"]
        ref, known = Ref("v1", "events", meta["name"], meta["namespace"]), self._counts.get(meta["name"], 0)
        if not known:
            try:
                server.ask(create(ref, event))
            except ConflictError as error:
                if not error.exists:
                    raise
                known = 1  # an earlier life of this agent said it
        if known:
            server.ask(patch(ref, {"count": known + 1, "lastTimestamp": event["lastTimestamp"]}))
        self._counts[meta["name"]] = known + 1
        while len(self._counts) > _KNOWN:
            self._counts.popitem(last=False)
