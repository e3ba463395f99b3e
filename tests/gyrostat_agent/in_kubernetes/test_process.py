"""The job as a process of the run: from a directive of the engine to a trainer that goes on in another pod."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import NAN, said
from clusters import BY_NAME, Cluster
from pods_of_run import Locked, PodLife, certify, finisher, job, wait_for

from gyrostat import Control
from gyrostat_agent.errors import SetupError
from gyrostat_agent.kubernetes import finisher as finishers
from gyrostat_agent.kubernetes import jobledger, patience, turn
from gyrostat_agent.kubernetes import process as processes
from gyrostat_agent.kubernetes import progress as steps
from gyrostat_agent.kubernetes.request import Server
from gyrostat_agent.loop import Agent
from gyrostat_agent.sources.commands import give
from gyrostat_rules.inputs import Verb
from gyrostat_rules.ledger import facts
from gyrostat_rules.state import State

JOB, JOBSET, TRAINJOB, PYTORCHJOB, VOLCANO = BY_NAME.values()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here hangs on how long is waited, only on what is seen."""
    monkeypatch.setattr(finishers, "_WATCH_SECONDS", 0.0)
    monkeypatch.setattr(processes, "_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(processes, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(processes, "_LEDGER_SECONDS", 0.05)
    monkeypatch.setattr(turn, "SETTLE_SECONDS", 0.3)
    monkeypatch.setattr(patience, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(patience, "LONGEST_PAUSE", 0.05)


@pytest.fixture
def server() -> Locked:
    return Locked(Cluster())


@pytest.fixture
def pods(tmp_path: Path, server: Locked) -> Iterator[list[PodLife]]:
    """Those that a test has begun; ended after it."""
    (tmp_path / "shared").mkdir(mode=0o700)
    begun: list[PodLife] = []
    yield begun
    for pod in begun:
        pod.close()


def fall_ill(pod: PodLife, agent: Agent) -> None:
    """Clean steps, a certified checkpoint, and then a bad update, which nothing but an older state takes back."""
    for step in range(1, 21):
        pod.bench.tell(step)
    certify(pod.bench, 10)
    pod.once()
    pod.bench.tell(21, NAN)
    pod.bench.tell(22, NAN)


def is_offered(agent: Agent) -> bool:
    found = agent.engine.state.supervisor()
    return found is not None and "restart" in found.procedures


@pytest.mark.parametrize("kind", [TRAINJOB, VOLCANO, JOB], ids=["trainjob", "volcano", "job"])
def test_a_restart_that_ends_its_own_pod_goes_on_in_the_next(
    tmp_path: Path, server: Locked, pods: list[PodLife], kind: object
) -> None:
    """Job stopped and begun again once; the new pod's trainer loads what was chosen; one incident goes on."""
    server.cluster.begin(kind)  # type: ignore[arg-type]
    ends = finisher(server)
    first = PodLife(tmp_path / "pod1", tmp_path / "shared", server, kind, "")  # type: ignore[arg-type]
    pods.append(first)
    agent = first.agent()
    wait_for(lambda: is_offered(agent), lambda: (first.once(), ends.look()))
    fall_ill(first, agent)

    def begun() -> object:
        notes = server.cluster.things[job(kind)]["metadata"].get("annotations") or {}  # type: ignore[arg-type]
        return steps.KEY in notes

    wait_for(begun, first.once)
    first.close()  # its pod is ended by what it has begun
    wait_for(lambda: server.cluster.starts == 2, lambda: (server.settle(), ends.look()))
    assert not server.cluster.overlaps

    second = PodLife(tmp_path / "pod2", tmp_path / "shared", server, kind, "")  # type: ignore[arg-type]
    pods.append(second)
    control = Control(second.bench.telemetry)
    resume = control.resume()
    assert resume is not None and resume.checkpoint == os.path.join(second.bench.root, "step-10")
    control.resumed(resume, 10)
    heir = second.agent()
    wait_for(lambda: said(heir, "incident"), second.once)
    assert heir.engine.state.next_directive == 2, "the numbers go on"
    for step in range(11, 40):
        second.bench.tell(step)
    wait_for(lambda: said(heir, "incident")[-1].state == "resolved", second.once)
    wait_for(lambda: "gyrostat-ledger" in server.cluster.things[job(kind)]["metadata"]["annotations"])  # type: ignore[arg-type]
    for _ in range(20):
        server.settle()
        ends.look()
        second.once()
    assert server.cluster.starts == 2 and server.cluster.commands <= 1


def test_nothing_is_suspended_that_nobody_would_begin_again(
    tmp_path: Path, server: Locked, pods: list[PodLife]
) -> None:
    """Without a finisher a restart would be the run's end: it is not offered, and the agent says what is missing."""
    server.cluster.begin(TRAINJOB)
    pod = PodLife(tmp_path / "pod1", tmp_path / "shared", server, TRAINJOB, "")
    pods.append(pod)
    agent = pod.agent()
    wait_for(lambda: "finisher" in pod.job.trouble)
    fall_ill(pod, agent)
    for _ in range(20):
        pod.once()
    assert any("does not offer" in e.text or "there is no supervisor" in e.text for e in said(agent, "action"))
    assert any("finisher" in e.text for e in said(agent, "source"))
    assert server.cluster.starts == 1 and not server.cluster.commands


@pytest.mark.parametrize(
    ("missing", "word"),
    [
        (SetupError("no way to the API server: Service token file does not exist."), "no way to the API server"),
        (SetupError("Kubernetes needs its client: pip install 'gyrostat[kubernetes]'"), "pip install"),
        (RuntimeError("what nobody foresaw"), "what nobody foresaw"),
    ],
    ids=["no service account", "no client", "internal"],
)
def test_what_is_missing_is_said_and_the_agent_goes_on(
    tmp_path: Path, server: Locked, pods: list[PodLife], missing: Exception, word: str
) -> None:
    """In its own pod all works as anywhere: a directive to the trainer is laid all the same."""
    server.cluster.begin(JOB)

    def connect() -> Server:
        raise missing

    pod = PodLife(tmp_path / "pod1", tmp_path / "shared", server, JOB, "", connect)
    pods.append(pod)
    control = pod.bench.control()
    agent = pod.agent()
    wait_for(lambda: word in pod.job.trouble)
    pod.bench.tell(1)
    pod.bench.skip_twice(2)
    wait_for(lambda: pod.bench.directives(), pod.once)
    assert [a.result for a in control.apply(4)] == ["applied"]
    assert any(word in e.text for e in said(agent, "source"))


def test_an_api_that_is_away_is_said_and_comes_back(tmp_path: Path, server: Locked, pods: list[PodLife]) -> None:
    """500 for a while: nothing is offered that cannot be done; once it answers, the job is found."""
    server.cluster.begin(VOLCANO)
    server.cluster.fault = lambda number, request: "500"
    pod = PodLife(tmp_path / "pod1", tmp_path / "shared", server, VOLCANO, "run1-0-1")
    pods.append(pod)
    agent = pod.agent()
    wait_for(lambda: "500" in pod.job.trouble)
    server.cluster.fault = lambda number, request: ""
    wait_for(lambda: is_offered(agent), pod.once)
    wait_for(lambda: not pod.job.trouble)


RIGHTS = [
    ("get", "pods", False), ("list", "pods", True), ("get", "jobs.batch.volcano.sh", False),
    ("patch", "jobs.batch.volcano.sh", False), ("create", "events", True), ("patch", "events", True),
    ("create", "commands.bus.volcano.sh", False), ("get", "leases.coordination.k8s.io", True),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "resource", "still"), RIGHTS, ids=[f"{v} {r}" for v, r, _ in RIGHTS])
def test_each_right_removed_turns_one_thing_off(
    tmp_path: Path, server: Locked, pods: list[PodLife], verb: str, resource: str, still: bool
) -> None:
    """It names verb, resource and layer; what does not need it goes on; nothing crashes."""
    server.cluster.begin(VOLCANO)
    server.cluster.forbidden = {(verb, resource)}
    pod = PodLife(tmp_path / "pod1", tmp_path / "shared", server, VOLCANO, "run1-0-1")
    pods.append(pod)
    agent = pod.agent()
    pod.bench.tell(1)
    if still:
        wait_for(lambda: is_offered(agent), pod.once)
        fall_ill(pod, agent)
        wait_for(lambda: server.cluster.starts == 2, lambda: (pod.once(), server.settle()))
    else:
        wait_for(lambda: f"{verb} {resource}" in pod.job.trouble, pod.once)
        assert "deploy/kustomize/rbac/" in pod.job.trouble
        fall_ill(pod, agent)
        for _ in range(20):
            pod.once()
            server.settle()
        assert server.cluster.starts == 1
    pod.job.tell(said(agent, "alert") + 2 * said(agent, "incident"))
    if resource == "events":
        wait_for(lambda: f"{verb} events" in pod.job.trouble, pod.once)


def _noted(server: Locked, number: int) -> None:
    """The job bears the ledger of a history that came to this directive."""
    ref = server.cluster.begin(VOLCANO)
    told = jobledger.written({**facts(State(run="run")), "next_directive": number + 1}, "90:ab")
    server.cluster.things[ref]["metadata"]["annotations"] = told


def test_a_ledger_that_was_lost_with_its_disk_is_taken_from_the_job(
    tmp_path: Path, server: Locked, pods: list[PodLife]
) -> None:
    """The checkpoints' folder is empty: numbers go on where the job says, and none is given twice."""
    _noted(server, 7)
    pod = PodLife(tmp_path / "pod1", tmp_path / "shared", server, VOLCANO, "")
    pods.append(pod)
    agent = pod.agent()
    wait_for(lambda: pod.job.is_read)
    pod.bench.tell(1)
    pod.once()
    assert (agent.engine.state.next_directive, agent.engine.state.settings.distrust) == (8, "")


def test_a_job_that_is_read_late_and_knows_more_is_believed(
    tmp_path: Path, server: Locked, pods: list[PodLife]
) -> None:
    """The API answered after the run had begun: from then on it is only observed, until a person has looked."""
    _noted(server, 7)
    may = threading.Event()

    def connect() -> Server:
        assert may.wait(20.0)
        return server  # type: ignore[return-value]

    pod = PodLife(tmp_path / "pod1", tmp_path / "shared", server, VOLCANO, "", connect)
    pods.append(pod)
    agent = pod.agent()
    pod.bench.tell(1)
    pod.once()
    assert agent.engine.state.settings.distrust == ""
    may.set()
    wait_for(lambda: agent.engine.state.settings.distrust, pod.once)
    assert "directive 7" in agent.engine.state.settings.distrust
    give(pod.bench.run, Verb.TRUST, {"reason": "looked", "by": "me"})
    for _ in range(5):
        pod.once()
    assert agent.engine.state.settings.distrust == "", "what a person has looked into is not said again"
