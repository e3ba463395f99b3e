"""Several agents of one run in a cluster: what they are told by the manifests is what electing one of them takes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gyrostat_agent.cli.agent import agent
from gyrostat_agent.cli.options import settings
from gyrostat_agent.kubernetes.owner import this_pod

KUSTOMIZE = Path(__file__).resolve().parents[2] / "deploy/kustomize"


@pytest.fixture
def documents_of_it(build: Callable[[Path], Any]) -> list[Any]:
    """The Job of several pods, and what finds them."""
    found: list[Any] = build(KUSTOMIZE / "overlays/job-cluster")
    return found


@pytest.fixture
def pod(documents_of_it: list[Any], find_pods: Any) -> Any:
    """Its pod template."""
    (found,) = (pod for document in documents_of_it for pod in find_pods(document))
    return found


def test_each_agent_has_what_the_election_takes(pod: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Lease, an address of its own, its node's name and the token: read by the agent's own command line."""
    filled = {"status.podIP": "10.0.0.7", "spec.nodeName": "node-3", "metadata.namespace": "ml", "metadata.uid": "u"}
    for variable in pod.sidecar["env"]:
        path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        monkeypatch.setenv(variable["name"], variable.get("value") or filled.get(path, "my-run"))
    words = [word.replace("$(POD_IP)", filled["status.podIP"]) for word in pod.sidecar["args"][1:]]
    context = agent.make_context("agent", words)
    given = {name: v for name, v in context.params.items() if name not in ("run_dir", "listen", "kubernetes")}
    chosen = settings(context.params["run_dir"], given)
    assert (chosen.cluster, chosen.cluster_address, chosen.node) == ("kubernetes", "10.0.0.7:9468", "node-3")
    assert this_pod().namespace == "ml", "the Lease is in the pod's own namespace"
    assert "POD_IP" in {variable["name"] for variable in pod.sidecar["env"]}, "else $(POD_IP) stays as it is written"


def test_the_token_is_the_sidecars_alone(pod: Any) -> None:
    """Who has it can make the deciding agent believe anything: the trainer's container does not mount it."""
    (volume,) = [v for v in pod.spec["volumes"] if "secret" in v]
    assert volume["secret"]["defaultMode"] == 0o444, "without fsGroup the file is root's: another user reads it"
    mounts = [(c["name"], m) for c in pod.containers for m in c["volumeMounts"] if m["name"] == volume["name"]]
    ((who, mount),) = mounts
    assert who == "gyrostat"
    given = agent.make_context("agent", list(pod.sidecar["args"][1:])).params
    assert given["cluster_token"] == f"{mount['mountPath']}/token"


def test_ranks_find_each_other_and_no_two_agents_share_a_name(pod: Any, documents_of_it: list[Any]) -> None:
    """By a Service without an address, before they are ready; one pod a node, for an agent is named after its node."""
    (service,) = [d for d in documents_of_it if d["kind"] == "Service"]
    (job,) = [d for d in documents_of_it if d["kind"] == "Job"]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
    assert service["spec"]["selector"].items() <= pod.labels.items()
    assert pod.spec["subdomain"] == service["metadata"]["name"]
    assert f"{job['metadata']['name']}-0.{pod.spec['subdomain']}:" in " ".join(pod.spec["containers"][0]["command"])
    count = job["spec"]["completions"]
    assert job["spec"]["parallelism"] == count and job["spec"]["completionMode"] == "Indexed"
    assert f"--nnodes={count}" in pod.spec["containers"][0]["command"]
    (apart,) = pod.spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchLabels"].items() <= pod.labels.items()
