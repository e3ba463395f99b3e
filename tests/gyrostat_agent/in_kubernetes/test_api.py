"""Over HTTP, by the official client's configuration: what is sent, and what each thing that breaks is told as."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from actions import Life, order
from clusters import BY_NAME, NAMESPACE, Cluster
from served import Served, serving

from gyrostat_agent.cli import main
from gyrostat_agent.errors import SetupError
from gyrostat_agent.kubernetes import api, nodes
from gyrostat_agent.kubernetes.refusals import AwayError, ConflictError, ForbiddenError, KubernetesError, MissingError
from gyrostat_agent.kubernetes.request import Ref, create, get, patch

pytest.importorskip("kubernetes", reason="the client is not installed (pip install 'gyrostat[kubernetes]')")

JOB, JOBSET, TRAINJOB, PYTORCHJOB, VOLCANO = BY_NAME.values()
RUN = TRAINJOB.ref("run1", NAMESPACE)


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Cluster()) as one:
        yield one


@pytest.fixture
def server(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> api.Api:
    monkeypatch.setattr(api, "READ_SECONDS", 0.5)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return api.connect(served.kubeconfig(tmp_path))


def test_what_is_sent_is_what_was_planned(served: Served, server: api.Api) -> None:
    """A merge patch, also to a core resource, by the token, with each part of the address quoted."""
    served.cluster.begin(TRAINJOB)
    served.cluster.add(nodes.ref("n1"), {"metadata": {"name": "n1"}, "spec": {}})
    server.ask(patch(RUN, {"spec": {"suspend": True}}))
    server.ask(patch(nodes.ref("n1"), {"spec": {"unschedulable": True}}))
    lines = [line for line, _ in served.heard]
    assert lines[0] == "PATCH /apis/trainer.kubeflow.org/v1alpha1/namespaces/ml/trainjobs/run1 HTTP/1.1"
    assert lines[1] == "PATCH /api/v1/nodes/n1 HTTP/1.1"
    for _, headers in served.heard:
        assert headers["Content-Type"] == "application/merge-patch+json"
    assert served.cluster.things[RUN]["spec"]["suspend"] is True


@pytest.mark.parametrize(
    ("word", "kind"),
    [("403", ForbiddenError), ("404", MissingError), ("409", ConflictError), ("410", ConflictError), ("429", AwayError),
     ("500", AwayError), ("503", AwayError)],
)  # fmt: skip
def test_each_status_arrives_as_what_it_means(
    served: Served, server: api.Api, word: str, kind: type[KubernetesError]
) -> None:
    """With the server's own words in it."""
    served.cluster.begin(TRAINJOB)
    served.cluster.fault = lambda number, request: word
    with pytest.raises(kind, match="injected") as told:
        server.ask(get(RUN))
    if word == "429":
        assert isinstance(told.value, AwayError) and told.value.after == 1.0


@pytest.mark.parametrize("word", ["reset", "half", "hang"])
def test_what_breaks_on_the_way_leaves_it_open_whether_it_was_done(served: Served, server: api.Api, word: str) -> None:
    """And nothing is sent a second time behind our back."""
    served.cluster.begin(TRAINJOB)
    served.broken = lambda line: word
    with pytest.raises(AwayError):
        server.ask(patch(RUN, {"spec": {"suspend": True}}))
    assert len(served.heard) == 1


def test_a_token_that_is_not_taken_is_no_crash(served: Served, server: api.Api) -> None:
    """Rotated under our hands: it is asked again, with the new one once the client has read it."""
    served.token = "another"
    with pytest.raises(AwayError, match="token"):
        server.ask(get(RUN))


def test_nobody_there_is_said_by_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that nobody listens at."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with serving(Cluster()) as served:
        server = api.connect(served.kubeconfig(tmp_path))
    with pytest.raises(AwayError, match="does not answer"):
        server.ask(get(RUN))


def test_a_pod_without_a_service_account_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of the manifest, by name."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(SetupError, match="serviceAccountName"):
        api.connect()


@pytest.mark.parametrize("kind", BY_NAME.values(), ids=BY_NAME.keys())
def test_a_restart_over_http(served: Served, server: api.Api, kind: object) -> None:
    """The same course as in memory, with every fifth request lost after its effect."""
    ref = served.cluster.begin(kind)  # type: ignore[arg-type]
    served.cluster.fault = lambda number, request: "" if number % 5 else "500"
    life = Life(served.cluster, kind, ref)  # type: ignore[arg-type]
    life.turns._server = server
    over = life.carry_out(order())
    served.cluster.fault = lambda number, request: ""
    served.cluster.rest()
    assert over is not None and over.done and served.cluster.starts == 2


def test_a_command_is_made_once_by_name(served: Served, server: api.Api) -> None:
    """The second is told from a conflict of another kind."""
    ref = Ref("bus.volcano.sh/v1alpha1", "commands", "c", NAMESPACE)
    server.ask(create(ref, {"metadata": {"name": "c"}}))
    with pytest.raises(ConflictError) as told:
        server.ask(create(ref, {"metadata": {"name": "c"}}))
    assert told.value.exists


# -- the command line ----------------------------------------------------------------------------------

Say = Callable[..., tuple[int, str]]


@pytest.fixture
def gyrostat(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Say:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    config = served.kubeconfig(tmp_path)

    def say(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["gyrostat", "kubernetes", *words, "--kubeconfig", config])
        status = main()
        told = capsys.readouterr()
        return status, told.out + told.err

    return say


def test_a_plan_shows_the_patch_and_sends_nothing(served: Served, gyrostat: Say) -> None:
    """Method, address, body; on the condition of the version that was read."""
    served.cluster.begin(TRAINJOB)
    status, said = gyrostat("plan", "restart", "--avoid", "n1", "--job", "trainjob/run1", "-n", NAMESPACE)
    assert status == 0 and said.startswith("PATCH /apis/trainer.kubeflow.org/v1alpha1/namespaces/ml/trainjobs/run1\n")
    assert '"suspend": true' in said and '"resourceVersion": "3"' in said
    assert all(line.startswith("GET ") for line, _ in served.heard)


def test_a_person_holds_a_job_and_lets_it_go_on(served: Served, gyrostat: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand, and what the agent's directives count is not used up by it."""
    from gyrostat_agent.kubernetes import patience

    monkeypatch.setattr(patience, "POLL_SECONDS", 0.01)
    served.cluster.begin(TRAINJOB)
    served.cluster.fault = lambda number, request: served.cluster.settle() or ""  # type: ignore[func-returns-value]
    status, said = gyrostat("act", "hold", "--job", "trainjob/run1", "-n", NAMESPACE)
    assert (status, said.splitlines()[-1]) == (0, "it stands still") and not served.cluster.pods("Running")
    assert "stands still" in gyrostat("show", "--job", "trainjob/run1", "-n", NAMESPACE)[1]
    assert gyrostat("act", "go-on", "--job", "trainjob/run1", "-n", NAMESPACE)[0] == 0
    served.cluster.rest()
    assert served.cluster.starts == 2
    shown = json.loads(gyrostat("show", "--json", "--job", "trainjob/run1", "-n", NAMESPACE)[1])
    assert shown["stands"] == "runs" and shown["begun"].startswith("directive 0: go on")


def test_a_node_is_kept_out_within_limits(served: Served, gyrostat: Say) -> None:
    """Dry first, then in earnest, then no second one."""
    for name in ("n1", "n2", "n3"):
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        served.cluster.add(nodes.ref(name), {"metadata": {"name": name}, "spec": {}, "status": status})
    assert gyrostat("act", "cordon", "n1", "--dry-run")[0] == 0
    assert "unschedulable" not in served.cluster.things[nodes.ref("n1")]["spec"]
    assert gyrostat("act", "cordon", "n1", "--reason", "Xid 79")[0] == 0
    assert served.cluster.things[nodes.ref("n1")]["spec"]["unschedulable"] is True
    status, said = gyrostat("act", "cordon", "n2")
    assert status == 1 and "at most 1 nodes" in said
    assert gyrostat("act", "let-in", "n1")[0] == 0
    assert "unschedulable" not in served.cluster.things[nodes.ref("n1")]["spec"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("show", "--job", "cronjob/x", "-n", "ml"), 2, "KIND/NAME"),
        (("show", "--job", "job/none", "-n", "ml"), 1, "404"),
        (("act", "cordon"), 2, "name the node"),
        (("show",), 2, "POD_NAME and POD_NAMESPACE"),
    ],
    ids=["kind", "gone", "which", "no pod"],
)  # fmt: skip
def test_a_slip_is_one_line(
    gyrostat: Say, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], status: int, said: str
) -> None:
    """No stack trace, and the documented status."""
    for name in ("POD_NAME", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    found = gyrostat(*words)
    assert found[0] == status and said in found[1] and "Traceback" not in found[1]


def test_an_agent_with_kubernetes_stays_small(served: Served, tmp_path: Path) -> None:
    """Under 110 MB with the client, as a process of its own; at the job it says who it is."""
    served.cluster.begin(VOLCANO)
    (pod,) = served.cluster.pods()
    environment = {
        **os.environ, "KUBECONFIG": served.kubeconfig(tmp_path), "POD_NAME": pod["metadata"]["name"],
        "POD_NAMESPACE": NAMESPACE, "POD_UID": pod["metadata"]["uid"], "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    environment.pop("KUBERNETES_SERVICE_HOST", None)
    words = [sys.executable, "-m", "gyrostat_agent", "agent", str(tmp_path / "run"), "--listen", "", "--kubernetes"]
    errors = tmp_path / "stderr"
    with errors.open("wb") as out:
        agent = subprocess.Popen(words, env=environment, stderr=out)
    try:
        end = time.monotonic() + 30.0
        while "this pod is of Job run1" not in errors.read_text() and time.monotonic() < end:
            time.sleep(0.05)
        assert "this pod is of Job run1" in errors.read_text(), errors.read_text()
        status = Path(f"/proc/{agent.pid}/status").read_text()
        kib = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
        print(f"{kib / 1024:.0f} MiB")
        assert kib * 1024 < 110e6
    finally:
        agent.terminate()
        assert agent.wait(20.0) == 0
