"""The sidecar as the Helm chart puts it into the pods of a user's own chart: the one that kustomize attaches."""

import json
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gyrostat.recordfile import CAP_BYTES
from gyrostat_agent.cli.agent import agent
from gyrostat_agent.cli.group import COMMANDS
from gyrostat_agent.journal.schema import _WAL_CAP
from gyrostat_agent.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
HELM = ROOT / "deploy/helm"
OVERLAYS = ROOT / "deploy/kustomize/overlays"
KINDS = ("job", "jobset", "pytorchjob", "trainjob", "volcano")
COMPONENTS: dict[str, dict[str, Any]] = {
    **{kind: {} for kind in KINDS},
    "job-control": {"control": {"enabled": True}},
    "job-kubernetes": {"kubernetes": {"enabled": True}},
}


def beside(tmp_path: Path) -> Path:
    """A user's chart that has ours as a dependency, as yet without a template."""
    chart = tmp_path / "mine"
    (chart / "charts").mkdir(parents=True)
    (chart / "templates").mkdir()
    (chart / "charts/gyrostat").symlink_to(HELM / "gyrostat")
    dependency = {"name": "gyrostat", "version": "0.1.0", "repository": "file://../gyrostat"}
    told = {"apiVersion": "v2", "name": "mine", "version": "1.0.0", "dependencies": [dependency]}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(told))
    return chart


def included(part: str, there: list[Any]) -> str:
    """What a template says to have ``part`` behind what is ``there``, as one line of JSON."""
    taken = f"(`{json.dumps(there)}` | fromJsonArray) (include `gyrostat.{part}` .Subcharts.gyrostat | fromYamlArray)"
    return "{{ concat " + taken + " | toJson }}"


def template_of(document: Any, find_pods: Any) -> str:
    """A job's manifest as a template with the sidecar in all of its pods."""
    marks: dict[str, str] = {}

    def at(owner: dict[str, Any], key: str, part: str) -> None:
        mark = f"@{len(marks)}@"
        marks[f'"{mark}"'] = included(part, owner.get(key, []))
        owner[key] = mark

    for pod in find_pods(document):
        first = pod.spec["containers"][0]
        at(pod.spec, "initContainers", "sidecar")
        at(pod.spec, "volumes", "volumes")
        at(first, "env", "env")
        at(first, "volumeMounts", "volumeMounts")
        pod.spec["@account@"] = ""
    text = json.dumps(document).replace('"@account@": ""', "{{ include `gyrostat.podFields` .Subcharts.gyrostat }}")
    for mark, line in marks.items():
        text = text.replace(mark, line)
    return text.replace(", }", "}")


def same(value: Any) -> Any:
    """Lists of what has a name in its order, but for init containers, which are started in theirs."""
    if isinstance(value, list):
        named = all(isinstance(item, dict) and "name" in item for item in value)
        return sorted(map(same, value), key=lambda item: str(item["name"])) if named else value
    if not isinstance(value, dict):
        return value
    kept = {k: same(v) for k, v in value.items() if k != "imagePullPolicy"}
    order = [container["name"] for container in value.get("initContainers", [])]
    return kept | ({"order": order} if order else {})


def pods_in(documents: list[Any], find_pods: Any) -> dict[str, Any]:
    """Labels and specs by place."""
    return {pod.where: (pod.labels, same(pod.spec)) for document in documents for pod in find_pods(document)}


@pytest.mark.parametrize("overlay", COMPONENTS)
def test_the_sidecar_is_the_one_that_kustomize_attaches(
    overlay: str, render: Any, build: Callable[[Path], Any], find_pods: Any, tmp_path: Path
) -> None:
    """In each kind of job, with words over HTTP, and with the API: every field of every pod."""
    chart = beside(tmp_path)
    plain = yaml.safe_load_all((OVERLAYS / overlay.partition("-")[0] / "job.yaml").read_text(encoding="utf-8"))
    for i, document in enumerate(plain):
        (chart / f"templates/{i}.yaml").write_text(template_of(document, find_pods))
    made = pods_in(render({"gyrostat": COMPONENTS[overlay]}, chart), find_pods)
    assert made and made == pods_in(build(OVERLAYS / overlay), find_pods)


@pytest.fixture
def example(render: Any, find_pods: Any, tmp_path: Path) -> Callable[..., Any]:
    """The pod of the example chart with these values of ours."""
    shutil.copytree(HELM / "example", tmp_path / "example")
    (tmp_path / "example/charts").mkdir()
    (tmp_path / "example/charts/gyrostat").symlink_to(HELM / "gyrostat")

    def pod(**values: Any) -> Any:
        (job,) = [d for d in render({"gyrostat": values}, tmp_path / "example") if d["kind"] == "Job"]
        (found,) = find_pods(job)
        return found

    return pod


def test_the_example_is_the_overlays_job(example: Any, build: Callable[[Path], Any], find_pods: Any) -> None:
    """What stands in the repository to be copied makes what stands there for kustomize."""
    made = example()
    (wanted,) = (pod for document in build(OVERLAYS / "job") for pod in find_pods(document))
    assert (made.labels, same(made.spec)) == (wanted.labels, same(wanted.spec))


def test_the_values_reach_the_sidecar(example: Any) -> None:
    """Image, mode, port, GPUs, more arguments, and where the checkpoints are; the agent takes what comes of it."""
    sidecar = {
        "mode": "act", "port": 9476, "gpu": True, "extraArgs": ["--host", "--log=/var/log/train.log"],
        "checkpoints": {"volume": "scratch", "mountPath": "/ck"},
    }  # fmt: skip
    pod = example(sidecar=sidecar, image={"repository": "registry.example/gyrostat", "tag": "0.1.0-2"})
    assert pod.sidecar["image"] == "registry.example/gyrostat:0.1.0-2"
    given = agent.make_context("agent", list(pod.sidecar["args"][1:])).params
    assert (given["mode"], given["listen"], given["gpu"], given["host"]) == ("act", "0.0.0.0:9476", True, True)
    assert given["logs"] == ("/var/log/train.log",)
    assert pod.sidecar["ports"] == [{"name": "gyrostat", "containerPort": 9476}]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in pod.sidecar["env"]
    assert {"name": "scratch", "mountPath": "/ck"} in pod.sidecar["volumeMounts"]
    assert "checkpoints" not in {m["name"] for m in pod.sidecar["volumeMounts"]}


@pytest.mark.parametrize("ranks", [1, 4, 8, 16])
def test_the_run_directory_has_room_for_its_ranks(example: Any, ranks: int) -> None:
    """4 times what the caps let them write, to the byte."""
    volumes = {v["name"]: v for v in example(sidecar={"ranks": ranks}).spec["volumes"]}
    wanted = 4 * (ranks * CAP_BYTES + Settings("", "", "").journal_bytes + _WAL_CAP)
    assert volumes["gyrostat"]["emptyDir"]["sizeLimit"] == f"{wanted >> 20}Mi"


def test_words_and_the_api_go_by_the_names_that_were_given(example: Any) -> None:
    """Another Secret, another port, another service account; the step that copies the token is of the same image."""
    pod = example(
        control={"enabled": True, "port": 9477, "secretName": "mine"}, kubernetes={"enabled": True},
        rbac={"serviceAccount": "run1"}, image={"repository": "registry.example/gyrostat"},
    )  # fmt: skip
    assert pod.spec["serviceAccountName"] == "run1"
    assert "--control=127.0.0.1:9477" in pod.sidecar["args"]
    assert {v["secret"]["secretName"] for v in pod.spec["volumes"] if "secret" in v} == {"mine"}
    assert {c["image"] for c in pod.spec["initContainers"]} == {"registry.example/gyrostat:0.1.0"}


def test_one_of_several_agents_decides(example: Any, build: Callable[[Path], Any], find_pods: Any) -> None:
    """The same sidecar as in the Job of several pods; its port and its Secret by their values."""
    on = {"kubernetes": {"enabled": True}}
    (wanted,) = (pod for document in build(OVERLAYS / "job-cluster") for pod in find_pods(document))
    made = example(**on, cluster={"enabled": True})
    assert same(made.sidecar) == same(wanted.sidecar)
    assert same(made.spec["volumes"]) == same(wanted.spec["volumes"])
    other = example(**on, cluster={"enabled": True, "port": 9478, "secretName": "ours"})
    assert "--cluster-address=$(POD_IP):9478" in other.sidecar["args"]
    assert {v["secret"]["secretName"] for v in other.spec["volumes"] if "secret" in v} == {"ours"}


def test_a_package_has_all_that_the_folder_links_to(helm: Any, render: Any, tmp_path: Path) -> None:
    """What is pushed to a registry makes the same objects, far from any clone; and it carries nothing else of ours."""
    done = helm("package", HELM / "gyrostat", "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    values = {
        "rbac": {"observe": True, "job": True, "nodes": True}, "finisher": {"enabled": True},
        "networkPolicy": {"enabled": True}, "monitoring": {"podMonitor": True, "rules": True},
        "inference": {"enabled": True, "image": "example.com/engine:1.0.0", "scaling": {"by": "keda"}},
    }  # fmt: skip
    packed = tmp_path / "gyrostat-0.1.0.tgz"
    assert render(values, packed) == render(values)
    with tarfile.open(packed) as archive:
        names = archive.getnames()
    overlays = {name.split("/")[4] for name in names if name.startswith("gyrostat/files/kustomize/overlays/")}
    assert overlays == {"inference", "inference-hpa", "inference-keda"}
    rules = [name for name in names if name.startswith("gyrostat/files/prometheus/")]
    assert rules and all(name.endswith(".rules.yaml") for name in rules)
    assert not [name for name in names if name.endswith(".py")]


def test_a_copy_without_its_files_says_so(helm: Any, tmp_path: Path) -> None:
    """A chart that was copied out of its clone does not make half of the objects."""
    shutil.copytree(HELM / "gyrostat", tmp_path / "copied", ignore=shutil.ignore_patterns("files"))
    for value in ("rbac.observe=true", "monitoring.rules=true"):
        done = helm("template", "my-run", tmp_path / "copied", "--set", value)
        assert done.returncode == 1 and "use a whole clone of the repository" in done.stderr


def test_what_is_said_after_an_installation_can_be_typed() -> None:
    """The notes' commands of ours exist."""
    notes = (HELM / "gyrostat/templates/NOTES.txt").read_text(encoding="utf-8")
    told = re.findall(r"(?:^ +|-- |`)gyrostat ([a-z]+)", notes, re.MULTILINE)
    assert told and set(told) <= set(COMMANDS)
