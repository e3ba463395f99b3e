"""Joining: one agent's part in a cluster, put together from its settings. Called once, by the service."""

import re
import time
from collections.abc import Callable
from pathlib import Path

from gyrostat.wire.fields import clean
from gyrostat_agent import bearer
from gyrostat_agent.cluster.candidate import Candidate
from gyrostat_agent.cluster.intake import Intake
from gyrostat_agent.cluster.latelease import LateLease
from gyrostat_agent.cluster.lease import Lease
from gyrostat_agent.cluster.lockfile import FileLease
from gyrostat_agent.cluster.member import Member
from gyrostat_agent.cluster.outbox import Outbox
from gyrostat_agent.cluster.sender import Sender
from gyrostat_agent.errors import SetupError
from gyrostat_agent.settings import Settings

KUBERNETES = "kubernetes"


def joined(settings: Settings, wake: Callable[[], None]) -> Member:
    """Listens at once, and takes part once it is started; raises SetupError where something given cannot be used."""
    outbox = Outbox()
    candidate: Candidate | None = None

    def term() -> int:
        post = candidate.post if candidate is not None else None
        return post.term if post is not None and post.leads else 0

    intake = Intake(settings.cluster_address, settings.cluster_token, settings.run, term, wake)
    candidate = Candidate(_lease(settings), settings.node, intake.address)
    sender = Sender(settings.run, settings.node, outbox, lambda: candidate.post, lambda: _token(settings.cluster_token))
    return Member(settings.node, candidate, intake, sender, outbox, settings.pack_text)


def _lease(settings: Settings) -> Lease:
    if settings.cluster != KUBERNETES:
        return FileLease(settings.cluster, settings.run)
    name = re.sub(r"[^a-z0-9.-]", "-", settings.run.lower())[:52].strip("-.") or "run"
    return LateLease(lambda: _in_kubernetes(f"gyrostat-{name}"))


def _in_kubernetes(name: str) -> Lease:
    from gyrostat_agent.kubernetes import api
    from gyrostat_agent.kubernetes.lease import KubernetesLease
    from gyrostat_agent.kubernetes.owner import this_pod

    return KubernetesLease(api.connect(), name, this_pod().namespace, time.time)


def _token(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return bearer.only(file.read(bearer.MOST_BYTES + 1), path)
    except (OSError, ValueError) as error:
        raise SetupError(f"--cluster-token-file {clean(path)}: {getattr(error, 'strerror', None) or error}") from None
