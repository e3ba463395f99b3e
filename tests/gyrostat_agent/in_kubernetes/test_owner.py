"""Whose pod it is: the job that a person has made, found from below."""

from typing import Any

import pytest
from clusters import BY_NAME, NAMESPACE, Cluster, job_of_kind, owned

from gyrostat_agent.errors import SetupError
from gyrostat_agent.kubernetes import owner
from gyrostat_agent.kubernetes.request import Ref

JOB, JOBSET, TRAINJOB, *_ = BY_NAME.values()
POD = Ref("v1", "pods", "p", NAMESPACE)


def test_the_topmost_job_is_found() -> None:
    """Pod, Job, JobSet, TrainJob: to suspend one in the middle would be undone by the one above it."""
    cluster = Cluster()
    top = cluster.add(TRAINJOB.ref("t", NAMESPACE), {**job_of_kind(TRAINJOB), "metadata": {"name": "t"}})
    jobset = owned(cluster, JOBSET.ref("t", NAMESPACE), top, apiVersion=JOBSET.api, kind="JobSet")
    job = owned(cluster, JOB.ref("t-node-0", NAMESPACE), jobset, apiVersion=JOB.api, kind="Job")
    owned(cluster, POD, job)
    found = owner.job_of(cluster, owner.Pod("p", NAMESPACE))
    assert (found.kind, found.ref.name, found.above) == (TRAINJOB, "t", "")


@pytest.mark.parametrize(
    ("owner_of_pod", "word"),
    [(None, "no controller owns"), ({"apiVersion": "apps/v1", "kind": "ReplicaSet"}, "ReplicaSet web (apps/v1)")],
    ids=["bare pod", "unknown kind"],
)
def test_a_pod_of_nothing_known_is_said(owner_of_pod: dict[str, Any] | None, word: str) -> None:
    """Nothing can be done to it, and the message says why."""
    cluster = Cluster()
    if owner_of_pod is None:
        cluster.add(POD, {"metadata": {"name": "p"}})
    else:
        owned(cluster, POD, {**owner_of_pod, "metadata": {"name": "web", "uid": "u"}})
    with pytest.raises(owner.OwnerError) as told:
        owner.job_of(cluster, owner.Pod("p", NAMESPACE))
    assert word in str(told.value)


def test_a_job_below_something_unknown_is_found_and_that_is_said() -> None:
    """What owns it may undo what is done to it."""
    cluster = Cluster()
    above = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "r", "uid": "u"}}
    job = owned(cluster, JOB.ref("j", NAMESPACE), above, apiVersion=JOB.api, kind="Job")
    owned(cluster, POD, job)
    assert owner.job_of(cluster, owner.Pod("p", NAMESPACE)).above == "RayJob r (ray.io/v1)"


def test_a_successor_of_the_same_name_is_not_taken_for_this_pod() -> None:
    """By its uid: what it owns is not what ended us."""
    cluster = Cluster()
    cluster.add(POD, {"metadata": {"name": "p"}})
    with pytest.raises(owner.OwnerError, match="replaced"):
        owner.job_of(cluster, owner.Pod("p", NAMESPACE, "another"))


def test_a_manifest_without_the_downward_api_is_told_what_it_lacks() -> None:
    """The two variables by name."""
    with pytest.raises(SetupError, match="POD_NAME and POD_NAMESPACE"):
        owner.this_pod({})
    assert owner.this_pod({"POD_NAME": "p", "POD_NAMESPACE": "n"}) == owner.Pod("p", "n")
