"""What is read off each kind of job, and what is sent to it."""

from typing import Any

import pytest
from actions import Life, order
from clusters import BY_NAME, Cluster, job_of_kind

from gyrostat_agent.kubernetes import course
from gyrostat_agent.kubernetes.jobs import kind_of
from gyrostat_agent.kubernetes.jobs.kind import JobKind, without
from gyrostat_agent.kubernetes.request import Ref

SUSPENDED = [{"type": "Suspended", "status": "True"}]
JOB, JOBSET, TRAINJOB, PYTORCHJOB, VOLCANO = BY_NAME.values()
KINDS = pytest.mark.parametrize("kind", BY_NAME.values(), ids=BY_NAME.keys())


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (JOB, {"active": 1}), (JOB, {"active": 0, "terminating": 1}),
        (JOBSET, {"replicatedJobsStatus": [{"active": 0}, {"active": 2}]}),
        (TRAINJOB, {"jobsStatus": [{"name": "node", "active": 1}]}),
        (PYTORCHJOB, {"replicaStatuses": {"Master": {}, "Worker": {"active": 3}}}),
    ],
    ids=["job", "job-terminating", "jobset", "trainjob", "pytorchjob"],
)  # fmt: skip
def test_a_condition_is_not_enough(kind: JobKind, status: dict[str, Any]) -> None:
    """Suspended is said before the last pod has gone: while any is counted, the job does not stand still."""
    assert not kind.is_still({"status": {"conditions": SUSPENDED, **status}})
    assert not kind.is_still({"status": {}})
    assert kind.is_still({"status": {"conditions": SUSPENDED}})


@KINDS
@pytest.mark.parametrize("lacking", ["status", "spec", "labels"])
def test_an_object_that_lacks_a_part_is_read(kind: JobKind, lacking: str) -> None:
    """A status that no controller has written yet is no internal error."""
    job = {"metadata": {"name": "a"}, "spec": None, "status": None}
    job.pop(lacking, None)
    assert kind.over(job | {"status": {}}) == "" and kind.unfit(job | {"status": {}}) in ("", kind.unfit({}))
    assert not kind.is_off(job | {"status": {}})


def test_two_kinds_are_called_job() -> None:
    """The group tells them apart; the version does not matter."""
    assert kind_of("batch/v1", "Job") is JOB
    assert kind_of("batch.volcano.sh/v1beta1", "Job") is VOLCANO
    assert kind_of("apps/v1", "ReplicaSet") is None


def test_each_term_of_an_affinity_leaves_the_node_out() -> None:
    """Terms are alternatives: a node left out of one alone would be taken by another."""
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, {"matchFields": [{"key": "x"}]}]
    spec = {"affinity": {
        "podAffinity": {"kept": True},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
    }}  # fmt: skip
    found = without({"affinity": without(spec, ["n1"])}, ["n2"])
    told = found["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert found["podAffinity"] == {"kept": True}
    assert len(told) == 2 and told[0]["matchExpressions"][0]["key"] == "gpu" and told[1]["matchFields"]
    assert [t["matchExpressions"][-1]["values"] for t in told] == [["n1", "n2"], ["n1", "n2"]]


def test_others_entries_of_a_trainjob_are_sent_back_as_they_were() -> None:
    """A merge patch replaces the whole list: Kueue's own word in it must not be lost."""
    kueue = {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"x": 1}}
    job = {"spec": {"runtimePatches": [kueue]}}
    once, _ = TRAINJOB.keep_off(job, ["n1"])
    twice, _ = TRAINJOB.keep_off(once, ["n2"])
    assert twice["spec"]["runtimePatches"][0] == kueue and len(twice["spec"]["runtimePatches"]) == 2
    assert '["n1", "n2"]' in str(twice).replace("'", '"')


@pytest.mark.parametrize("kind", [JOB, TRAINJOB, PYTORCHJOB], ids=lambda k: k.kind)
def test_a_job_is_begun_again_off_a_bad_node(kind: JobKind) -> None:
    """Its pods come up elsewhere, and the node is written into the job in the patch that begins it."""
    cluster = Cluster()
    ref = cluster.begin(kind)
    bad = cluster.pods()[0]["spec"]["nodeName"]
    over = Life(cluster, kind, ref).carry_out(order(avoid=(bad,)))
    cluster.rest()
    assert over is not None and over.said == f"begun again, off {bad}"
    assert [p["spec"]["nodeName"] for p in cluster.pods()] == ["n2"]


@pytest.mark.parametrize("kind", [JOBSET, VOLCANO], ids=["jobset", "volcano"])
def test_a_kind_that_takes_no_affinity_is_begun_without_and_says_so(kind: JobKind) -> None:
    """The restart is not given up for it."""
    cluster = Cluster()
    ref = cluster.begin(kind)
    over = Life(cluster, kind, ref).carry_out(order(avoid=("n1",)))
    cluster.rest()
    assert over is not None and over.done and len(cluster.pods()) == 1
    assert "cordon" in kind.keep_off({}, ["n1"])[1]


def test_a_server_that_takes_no_affinity_gets_the_job_begun_without() -> None:
    """Of a Job that has run, API servers take no change of its pods: 422, and the job must not stay suspended."""
    cluster = Cluster(lambda number, request: "422" if "affinity" in str(request.body) else "")
    ref = cluster.begin(JOB)
    over = Life(cluster, JOB, ref).carry_out(order(avoid=("n1",)))
    cluster.rest()
    assert over is not None and over.done and "took no change" in over.said
    assert len(cluster.pods()) == 1


@KINDS
@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"labels": {"kueue.x-k8s.io/queue-name": "gpu"}}, "Kueue"),
        ({"deletionTimestamp": "2026-12-01T00:00:00Z"}, "deleted"),
    ],
    ids=["queue", "deleted"],
)
def test_what_is_not_ours_to_stop_is_left_alone(kind: JobKind, meta: dict[str, Any], said: str) -> None:
    """A queue that suspends jobs itself would begin it at once; one that is being deleted never comes again."""
    cluster = Cluster()
    ref = cluster.begin(kind)
    cluster.things[ref]["metadata"].update(meta)
    over = Life(cluster, kind, ref).carry_out(order())
    assert over is not None and not over.done and said in over.said
    assert all(r.verb != "patch" for r in cluster.asked)


def test_a_restart_that_would_be_volcanos_last_is_not_asked_for() -> None:
    """RestartJob counts as a retry: at maxRetry the job is failed instead of begun."""
    job = job_of_kind(VOLCANO)
    job["metadata"].update(uid="u", resourceVersion="1")
    job["spec"]["maxRetry"] = 3
    for done, may in ((0, True), (1, True), (2, False)):
        job["status"] = {"retryCount": done, "state": {"phase": "Running"}}
        move = course.next_move(VOLCANO, job, order(), 0.0)
        assert isinstance(move, course.Send) == may, done


@KINDS
def test_an_expired_order_begins_nothing(kind: JobKind) -> None:
    """The API was away for an hour: what was wanted then is not done now."""
    cluster = Cluster()
    ref = cluster.begin(kind)
    over = Life(cluster, kind, ref).carry_out(order()._replace(until=50.0))
    assert over is not None and not over.done and "expired" in over.said
    assert all(r.verb == "get" for r in cluster.asked)


def test_an_annotation_that_was_copied_with_a_manifest_is_not_this_jobs() -> None:
    """`kubectl get -o yaml | kubectl apply` takes it along: by its uid it is told apart."""
    cluster = Cluster()
    ref = cluster.begin(JOB)
    Life(cluster, JOB, ref).carry_out(order(7))
    copied = cluster.things[ref]["metadata"]["annotations"]
    del cluster.things[ref]
    cluster.begin(JOB)
    cluster.things[ref]["metadata"]["annotations"] = copied
    over = Life(cluster, JOB, ref).carry_out(order(1))
    assert over is not None and over.done


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"step": 3}', "\x00", "[" * 3000])
def test_a_damaged_annotation_stops_everything_and_says_what_to_do(text: str) -> None:
    """Nobody knows what was begun: nothing is begun on top of it."""
    cluster = Cluster()
    ref = cluster.begin(JOB)
    cluster.things[ref]["metadata"]["annotations"] = {"gyrostat-action": text}
    over = Life(cluster, JOB, ref).carry_out(order())
    assert over is not None and not over.done and "remove it" in over.said


def test_paths_are_quoted() -> None:
    """A name leads nowhere else."""
    assert Ref("batch/v1", "jobs", "../x", "ml").path == "/apis/batch/v1/namespaces/ml/jobs/..%2Fx"
