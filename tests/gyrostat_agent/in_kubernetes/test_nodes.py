"""Nodes and pods: kept out within limits, moved by uid."""

from typing import Any

import pytest
from clusters import BY_NAME, NAMESPACE, Cluster, job_of_kind, owned

from gyrostat_agent.kubernetes import nodes, pods
from gyrostat_agent.kubernetes.refusals import ConflictError
from gyrostat_agent.kubernetes.request import Ref, every, get
from gyrostat_agent.kubernetes.target import DeniedError, node_change

JOB = BY_NAME["jobs.batch"]
POD = Ref("v1", "pods", "p", NAMESPACE)


def node(name: str, *, ready: bool = True, ours: bool = False, **spec: Any) -> dict[str, Any]:
    notes = {nodes.KEY: "{}"} if ours else {}
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return {"metadata": {"name": name, "resourceVersion": "7", "annotations": notes}, "spec": spec, "status": status}


def test_a_taint_is_sent_back_with_all_others_and_a_condition() -> None:
    """A patch of taints replaces the list: the cloud's own must be in it, and nobody may have changed it meanwhile."""
    other = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    thing = node("n1", taints=[other])
    cluster = Cluster()
    cluster.add(nodes.ref("n1"), thing)
    for _ in range(2):
        cluster.ask(nodes.taint(cluster.ask(get(nodes.ref("n1"))), "agent", "Xid 79"))
    told = cluster.things[nodes.ref("n1")]
    assert [t["key"] for t in told["spec"]["taints"]] == ["nvidia.com/gpu", nodes.TAINT]
    with pytest.raises(ConflictError):
        cluster.ask(nodes.taint(thing, "agent", "an old reading"))
    cluster.ask(nodes.let_in(cluster.ask(get(nodes.ref("n1")))))
    told = cluster.things[nodes.ref("n1")]
    assert told["spec"]["taints"] == [other] and nodes.KEY not in told["metadata"]["annotations"]


def test_letting_in_takes_back_only_what_was_done_here() -> None:
    """A node that a person has cordoned stays so."""
    assert nodes.let_in(node("n1", unschedulable=True)).body["spec"] == {"taints": None}  # type: ignore[index]
    assert nodes.let_in(node("n1", ours=True, unschedulable=True)).body["spec"]["unschedulable"] is None  # type: ignore[index]


@pytest.mark.parametrize(
    ("others", "limits", "word"),
    [
        ([node("n2"), node("n3")], nodes.Limits(), ""),
        ([node("n2", ours=True, unschedulable=True), node("n3")], nodes.Limits(), "at most 1"),
        ([node("n2", ours=True, unschedulable=True), node("n3")], nodes.Limits(2), ""),
        ([node("n2", ready=False), node("n3", unschedulable=True)], nodes.Limits(), "0 healthy"),
        ([node("n2"), node("n3")], nodes.Limits(1, 3), "2 healthy"),
        ([], nodes.Limits(), "0 healthy"),
    ],
    ids=["fine", "budget", "larger budget", "none healthy", "too few", "the only one"],
)  # fmt: skip
def test_nodes_are_kept_out_within_limits(others: list[Any], limits: nodes.Limits, word: str) -> None:
    """A fault that looks like every node's must not empty the cluster."""
    said = nodes.denied(node("n1"), [node("n1"), *others], limits)
    assert word in said and bool(said) == bool(word)


def test_what_somebody_else_keeps_out_is_theirs() -> None:
    """And asking twice for one's own is no second node."""
    assert "somebody else" in nodes.denied(node("n1", unschedulable=True), [node("n2")], nodes.Limits())
    mine = node("n1", ours=True, unschedulable=True)
    assert nodes.denied(mine, [mine, node("n2")], nodes.Limits()) == ""


def test_a_pod_is_moved_by_its_uid() -> None:
    """Its successor of the same name stays."""
    cluster = Cluster()
    first = owned(cluster, POD, {**job_of_kind(JOB), "metadata": {"name": "j", "uid": "u"}})
    moved = pods.evict(first)
    cluster.ask(moved)
    cluster.add(POD, first)
    with pytest.raises(ConflictError):
        cluster.ask(moved)
    assert "no controller" in pods.denied({"metadata": {"name": "p"}})


def test_who_counts_reads_to_the_last_page() -> None:
    """Five on pages of two: each once, also where some bear the label alone."""
    cluster = Cluster()
    for number in range(5):
        cluster.add(nodes.ref(f"n{number}"), node(f"n{number}"))
    assert [n["metadata"]["name"] for n in every(cluster, nodes.ref(""))] == [f"n{number}" for number in range(5)]
    assert every(Cluster(), nodes.ref("")) == []


def test_a_node_beyond_the_first_page_counts_against_the_budget() -> None:
    """The one that is kept out already is the last of many."""
    cluster = Cluster()
    for number in range(5):
        cluster.add(nodes.ref(f"n{number}"), node(f"n{number}", ours=number == 4, unschedulable=number == 4))
    with pytest.raises(DeniedError, match="n4"):
        node_change(cluster, "cordon", "n0", "it is slow", nodes.Limits())
