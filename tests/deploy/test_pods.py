"""What every pod that we ship promises: no right that is not used, a size that the caps fit in, flags that exist."""

import re
from typing import Any

import click
import pytest

from gyrostat import __version__
from gyrostat.recordfile import CAP_BYTES
from gyrostat_agent.cli.agent import agent
from gyrostat_agent.cli.run import run
from gyrostat_agent.journal.schema import _WAL_CAP
from gyrostat_agent.settings import Settings

MARGIN = 4  # times the caps: a pod that exceeds an emptyDir's limit is evicted, its trainer with it
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
LOOPBACK = ("127.", "localhost")


def size(text: str) -> int:
    """Bytes of a Kubernetes quantity."""
    found = re.fullmatch(r"(\d+)(Ki|Mi|Gi)", text)
    assert found, text
    return int(found[1]) * UNITS[found[2]]


def parsed(args: list[str]) -> dict[str, Any]:
    """The agent's own options, as its command line reads these arguments."""
    assert args[0] == "agent"
    return agent.make_context("agent", list(args[1:])).params


def ranks(pod: Any) -> int:
    """How many ranks write into one pod's run directory: one a GPU."""
    return max(1, *(int(c["resources"]["limits"].get("nvidia.com/gpu", 0)) for c in pod.spec["containers"]))


def test_no_container_has_more_rights_than_none(pods: list[Any]) -> None:
    """No root, no writing but into volumes, no way to more privileges, no capability, the runtime's seccomp profile."""
    for pod in pods:
        assert pod.spec["securityContext"]["runAsNonRoot"] and pod.spec["securityContext"]["runAsUser"] > 0
        for container in pod.containers:
            rights = container["securityContext"]
            assert rights == {
                "runAsNonRoot": True,
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            }, f"{pod.where} {container['name']}"


def test_no_pod_shares_what_the_agent_does_not_need(pods: list[Any]) -> None:
    """The agent talks by files and ends nobody: no shared process table, no host's network, processes or paths."""
    for pod in pods:
        for key in ("shareProcessNamespace", "hostNetwork", "hostPID", "hostIPC"):
            assert not pod.spec.get(key), f"{pod.where} {key}"
        assert not [v for v in pod.spec.get("volumes", []) if "hostPath" in v]


def test_nothing_is_granted_in_the_api_but_where_it_says_so(folder: str, documents: list[Any], pods: list[Any]) -> None:
    """Rights are asked for by their own folders; and nowhere is a token given to all containers of a pod."""
    granting = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount")
    assert bool([d for d in documents if d["kind"] in granting]) == (folder.startswith("rbac/") or folder == "finisher")
    assert all(pod.spec["automountServiceAccountToken"] is False for pod in pods)


def test_no_secret_lies_in_the_files(documents: list[Any]) -> None:
    """A token that is published with the manifests is everybody's."""
    assert not [d for d in documents if d["kind"] == "Secret"]


def test_agent_and_trainer_are_one_user(sidecars: list[Any]) -> None:
    """The run directory's files are believed from their own user alone: nobody's container says another number.

    And no fsGroup: kubelet gives a volume's files to the group, for writing, and then the ledger beside the
    checkpoints, which others could have written, is not believed.
    """
    for pod in sidecars:
        assert not [c["name"] for c in pod.containers if "runAsUser" in c["securityContext"]]
        assert "fsGroup" not in pod.spec["securityContext"]


def test_every_image_has_a_version(pods: list[Any]) -> None:
    """What runs tomorrow is what ran today; the agent's is this one."""
    for pod in pods:
        for container in pod.containers:
            name, _, tag = container["image"].partition(":")
            assert tag and tag != "latest", container["image"]
            assert name != "gyrostat" or tag == __version__


def test_the_agent_takes_every_argument(sidecars: list[Any]) -> None:
    """Read by the agent's own command line: an unknown flag would hold the pod in Init:CrashLoopBackOff."""
    for pod in sidecars:
        assert parsed(pod.sidecar["args"])["mode"] in ("observe", "shadow"), "acting is a person's decision"


def test_gyrostat_run_takes_every_argument(pods: list[Any]) -> None:
    """Where it is the trainer's command: its own options are read, what stands behind them is the trainer's."""
    for container in (c for pod in pods for c in pod.containers if c.get("command", [])[:2] == ["gyrostat", "run"]):
        given = run.make_context("run", list(container["command"][2:])).params
        mounts = [m["mountPath"] for m in container["volumeMounts"]]
        assert given["command"][0] == "torchrun" and given["mode"] == "shadow"
        assert given["run_dir"].rpartition("/")[0] in mounts


def test_an_unknown_flag_would_be_found() -> None:
    """The test above can fail."""
    with pytest.raises(click.NoSuchOption):
        parsed(["agent", "/run/gyrostat/run", "--scrapes=http://127.0.0.1:8000/metrics"])


def test_the_run_directory_has_room(pods: list[Any]) -> None:
    """At least 4 times what the caps on records, journal and write-ahead log let this pod's ranks write."""
    journal = Settings("", "", "").journal_bytes
    assert not [pod.where for pod in pods if any("--journal" in w for w in (pod.sidecar or {}).get("args", []))]
    for pod in pods:
        volumes = {v["name"]: v for v in pod.spec.get("volumes", [])}
        if "gyrostat" not in volumes:
            continue
        limit = size(volumes["gyrostat"]["emptyDir"]["sizeLimit"])
        assert limit >= MARGIN * (ranks(pod) * CAP_BYTES + journal + _WAL_CAP), pod.where
        assert "medium" not in volumes["gyrostat"]["emptyDir"], "memory would count against the trainer's limit"


def test_every_mount_has_its_volume(pods: list[Any]) -> None:
    """A mount without a volume is refused by the API server; one whose name was mistyped is found here."""
    for pod in pods:
        names = {v["name"] for v in pod.spec.get("volumes", [])}
        for container in pod.containers:
            assert {m["name"] for m in container.get("volumeMounts", [])} <= names, container["name"]
            places = [m["mountPath"] for m in container.get("volumeMounts", [])]
            assert len(set(places)) == len(places)


def test_every_emptydir_is_bounded(pods: list[Any]) -> None:
    """One without a limit fills the node's disk, and then others are evicted."""
    for pod in pods:
        assert not [
            v["name"] for v in pod.spec.get("volumes", []) if "emptyDir" in v and "sizeLimit" not in v["emptyDir"]
        ]


def test_a_blind_agent_holds_up_no_rendezvous(sidecars: list[Any]) -> None:
    """No probe of the sidecar's decides when the trainer starts or whether the pod is ready; a stuck loop is ended."""
    for pod in sidecars:
        assert "startupProbe" not in pod.sidecar and "readinessProbe" not in pod.sidecar
        assert "lifecycle" not in pod.sidecar, "a postStart hook gates as a startup probe does"
        probe = pod.sidecar["livenessProbe"]
        assert probe["httpGet"]["path"] == "/healthz", "/readyz is 503 while it is blind: it would be killed for that"
        assert probe["periodSeconds"] * probe["failureThreshold"] >= 60


def test_probe_scrape_and_policy_reach_the_page(sidecars: list[Any]) -> None:
    """The kubelet and Prometheus come from outside the pod: the page listens there, on the port that both are told."""
    for pod in sidecars:
        host, _, port = parsed(pod.sidecar["args"])["listen"].rpartition(":")
        (told,) = pod.sidecar["ports"]
        assert not host.startswith(LOOPBACK) and told["containerPort"] == int(port)
        assert pod.sidecar["livenessProbe"]["httpGet"]["port"] == told["name"] and len(told["name"]) <= 15


def test_the_pod_keeps_its_class(sidecars: list[Any]) -> None:
    """Guaranteed stays Guaranteed, so pinned cores stay pinned; no limit on disk, which would be the whole pod's."""
    for pod in sidecars:
        for container in pod.containers:
            given = container["resources"]
            assert given["requests"] == given["limits"], container["name"]
            assert "ephemeral-storage" not in given["limits"], container["name"]


def test_words_stay_in_the_pod(pods: list[Any]) -> None:
    """Where words are taken at all, it is at loopback, from whoever shows a token."""
    for pod in (p for p in pods if p.sidecar):
        given = parsed(pod.sidecar["args"])
        assert not given["control"] or (given["control"].startswith(LOOPBACK) and given["control_token"])
        assert not given["receive"], "nothing is posted to it"


def test_more_engines_come_when_gpus_are_busy(documents: list[Any]) -> None:
    """Over 80 % for 5 minutes, in both ways of scaling; never more than one of them at a Deployment."""
    targets = []
    for document in documents:
        spec = document.get("spec", {})
        if document["kind"] == "HorizontalPodAutoscaler":
            (metric,) = spec["metrics"]
            behavior, level = spec["behavior"], metric["pods"]["target"]["averageValue"]
        elif document["kind"] == "ScaledObject" and spec["triggers"][0]["type"] == "prometheus":
            behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
            level = spec["triggers"][0]["metadata"]["threshold"]
        else:
            continue
        targets.append(spec["scaleTargetRef"]["name"])
        assert (level, behavior["scaleUp"]["stabilizationWindowSeconds"]) == ("80", 300)
    assert len(targets) <= 1
    scaled = {d["metadata"]["name"] for d in documents if d["kind"] == "Deployment" and "replicas" in d["spec"]}
    assert not scaled & set(targets), "a number in the Deployment undoes the autoscaler's at each apply"
