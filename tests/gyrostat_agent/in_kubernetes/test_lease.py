"""The lease of a cluster in a Lease of Kubernetes: no term is held by two."""

import pytest
from clusters import NAMESPACE, Cluster

from gyrostat_agent.cluster.lease import Holding, LeaseError, Wish
from gyrostat_agent.kubernetes.lease import KubernetesLease
from gyrostat_agent.kubernetes.request import Request


def test_no_term_of_a_lease_is_held_by_two() -> None:
    """Two that have seen the same try to take it: one does."""
    cluster = Cluster()
    ours, theirs = (KubernetesLease(cluster, "run", NAMESPACE, lambda: 0.0) for _ in range(2))
    seen = ours.who()
    assert seen == Holding()
    held = ours.try_take(seen, "n1", "a:1")
    assert held == Holding(1, "n1", "a:1", 0) and theirs.try_take(seen, "n2", "b:1") is None
    held = ours.renew(held)
    assert held is not None and held.beat == 1 and theirs.who() == held
    ours.prefer(Wish("n1", 3))
    assert theirs.preferred() == Wish("n1", 3) and ours.renew(held) is not None
    ours.release(ours.who(), "n2")
    taken = theirs.try_take(theirs.who(), "n2", "b:1")
    assert taken is not None and taken.term == 2 and ours.renew(held) is None


def test_between_read_and_write_of_a_lease_another_is_faster() -> None:
    """The server tells the two apart by the resourceVersion."""
    cluster = Cluster()
    ours, theirs = (KubernetesLease(cluster, "run", NAMESPACE, lambda: 0.0) for _ in range(2))
    first = ours.try_take(ours.who(), "n1", "")
    assert first is not None
    busy = False

    def between(number: int, request: Request) -> str:
        nonlocal busy
        if request.verb == "patch" and not busy:
            busy = True
            assert theirs.try_take(first, "n2", "") is not None
        return ""

    cluster.fault = between
    assert ours.renew(first) is None and ours.who().holder == "n2"


def test_a_lease_that_cannot_be_asked_says_so() -> None:
    """Nobody knows then who decides, and a leader must stop."""
    lease = KubernetesLease(Cluster(lambda number, request: "500"), "run", NAMESPACE, lambda: 0.0)
    with pytest.raises(LeaseError):
        lease.who()
