"""The lease of ``cluster`` in a Lease of Kubernetes: each change on the condition that its resourceVersion is still
the same.

``term`` is ``leaseTransitions``, ``holder`` is ``holderIdentity``; the rest stands in annotations. Times in it are
for people who look: nobody here compares clocks.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from gyrostat_agent.cluster.lease import Holding, LeaseError, Wish
from gyrostat_agent.kubernetes.refusals import ConflictError, KubernetesError, MissingError
from gyrostat_agent.kubernetes.request import Ref, Server, annotations_of, create, get, patch, version_of

_HELD, _WISHED = "gyrostat-held", "gyrostat-wished"
_TRIES = 4  # a wish and a renewal meet now and then


class KubernetesLease:
    """One Lease. ``clock`` gives Unix seconds, for those who look at it."""

    def __init__(self, server: Server, name: str, namespace: str, clock: Callable[[], float]) -> None:
        self._server, self._clock = server, clock
        self._ref = Ref("coordination.k8s.io/v1", "leases", name, namespace)

    def who(self) -> Holding:
        """What it says now."""
        return _holding(self._get())

    def preferred(self) -> Wish:
        """Who would rather have it."""
        raw = _read(self._get(), _WISHED)
        return Wish(str(raw.get("node", "")), _whole(raw.get("beat")))

    def try_take(self, seen: Holding, node: str, address: str, least: int = 0) -> Holding | None:
        """Take it in a new term, beyond ``least``, where it still says ``seen``; None where another was faster."""
        return self._put(seen, Holding(max(seen.term, least) + 1, node, address, 0))

    def renew(self, held: Holding) -> Holding | None:
        """Show life: the same with the next beat. None where it is not ours any more."""
        return self._put(held, held._replace(beat=held.beat + 1))

    def release(self, held: Holding, promised: str = "") -> None:
        """Give it back, where it still is ours."""
        self._put(held, Holding(held.term, "", "", held.beat + 1, promised))

    def prefer(self, wish: Wish) -> None:
        """Say that this node would rather have it."""
        for _ in range(_TRIES):
            thing = self._get()
            note = {_WISHED: json.dumps(wish._asdict())}
            if self._send(thing, {"metadata": {"annotations": note}}):
                return

    def _put(self, seen: Holding, wanted: Holding) -> Holding | None:
        """Write ``wanted`` where ``seen`` stands; a wish that came in between is no reason not to."""
        for _ in range(_TRIES):
            thing = self._get()
            if _holding(thing) != seen:
                return None
            now = datetime.fromtimestamp(self._clock(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            spec = {
                "holderIdentity": wanted.holder, "leaseTransitions": wanted.term, "renewTime": now,
                "leaseDurationSeconds": 10,
            }  # fmt: skip
            note = {_HELD: json.dumps(wanted._asdict())}
            if self._send(thing, {"metadata": {"annotations": note}, "spec": spec}):
                return wanted
        return None

    def _send(self, thing: Mapping[str, Any], body: dict[str, Any]) -> bool:
        """False where something was changed meanwhile."""
        try:
            if thing:
                body["metadata"]["resourceVersion"] = version_of(thing)
                self._server.ask(patch(self._ref, body))
            else:
                meta = {**body["metadata"], "name": self._ref.name, "namespace": self._ref.namespace}
                whole = {"apiVersion": self._ref.api, "kind": "Lease", **body, "metadata": meta}
                self._server.ask(create(self._ref, whole))
        except (ConflictError, MissingError):
            return False
        except KubernetesError as error:
            raise LeaseError(str(error)) from None
        return True

    def _get(self) -> Mapping[str, Any]:
        """The object, {} where there is none yet."""
        try:
            found: Mapping[str, Any] = self._server.ask(get(self._ref))
        except MissingError:
            return {}
        except KubernetesError as error:
            raise LeaseError(str(error)) from None
        return found


def _holding(thing: Mapping[str, Any]) -> Holding:
    raw = _read(thing, _HELD)
    return Holding(
        _whole(raw.get("term")), str(raw.get("holder", "")), str(raw.get("address", "")), _whole(raw.get("beat")),
        str(raw.get("promised", "")),
    )  # fmt: skip


def _read(thing: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    try:
        raw = json.loads(annotations_of(thing).get(key, "{}"))
    except (ValueError, RecursionError):
        return {}
    return raw if isinstance(raw, dict) else {}


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
