"""The Helm chart: what it makes is what kustomize makes of the same choice, and a value that is none is refused."""

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from gyrostat import __version__
from gyrostat_agent.access import tokenfile

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/gyrostat"
KUSTOMIZE = ROOT / "deploy/kustomize"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
OBSERVE, JOB = {"rbac": {"observe": True}}, {"rbac": {"observe": True, "job": True}}
NODES = {"rbac": {"observe": True, "nodes": True}}
POLICY = {"networkPolicy": {"enabled": True}}


def engine(by: str) -> dict[str, Any]:
    """Values with the engine of the overlays, scaled by whom."""
    return POLICY | {"inference": {"enabled": True, "image": "example.com/engine:1.0.0", "scaling": {"by": by}}}


CHOICES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "nothing": ({}, ()),
    "observe": (OBSERVE, ("rbac/observe",)),
    "job": (JOB, ("rbac/observe", "rbac/job")),
    "nodes": (NODES, ("rbac/observe", "rbac/nodes")),
    "finisher": ({"finisher": {"enabled": True}}, ("finisher",)),
    "network": (POLICY, ("network",)),
    "monitoring": ({"monitoring": {"podMonitor": True}}, ("monitoring",)),
    "engine": (engine("none"), ("network", "overlays/inference")),
    "hpa": (engine("hpa"), ("network", "overlays/inference-hpa")),
    "keda": (engine("keda"), ("network", "overlays/inference-keda")),
}
# What is said, as a pattern: Helm 3 writes sidecar.mode where Helm 4 writes /sidecar/mode, in words of its own.
REFUSED = {
    "sidecar.mode=on": "sidecar.mode.* must be one of .*observe.*shadow.*act",
    "sidecar.mod=act": "sidecar.* '?mod'? (is )?not allowed",
    "sidecar.port=http": "sidecar.port.* integer",
    "sidecar.ranks=0": "sidecar.ranks.* 1$",
    "sidecar.extraArgs={host}": "sidecar.extraArgs.0.* match",
    "sidecar.extraArgs={--mode=act}": "--mode is set by the value sidecar.mode; set that instead",
    "sidecar.extraArgs={--journal-bytes=9GiB}": "which is computed from the usual one; leave it out",
    "sidecar.resources.limits.ephemeral-storage=1Gi": "ephemeral-storage",
    "image.tag=latest": "image.tag: latest is another agent tomorrow",
    "control.secretName=My_Secret": "control.secretName.* match",
    "rbac=null": "missing property 'rbac'|rbac is required",
    "rbac.job=true": "set rbac.observe: true too",
    "finisher.enabled=yes": "finisher.enabled.* boolean",
    "monitoring.interval=5m": "monitoring.interval.* match",
    "cluster.enabled=true": "is reached as kubernetes.enabled has it; set that too",
    "sidecar.extraArgs={--cluster=/ck}": "--cluster is set by the value cluster.enabled",
    "inference.enabled=true": "inference.image: name the engine's image",
    "inference.scaling.by=both": "inference.scaling.by.* must be one of .*none.*hpa.*keda",
    "inference.scaling.least=20": "least is 20 and most is 16",
}
needs_schemas = pytest.mark.skipif(
    find_spec("kubernetes_validate") is None,
    reason="kubernetes-validate is not installed (pip install kubernetes-validate==1.37.0)",
)


def normal(value: Any) -> Any:
    """Lists of what has a name in its order; without what says which release it is, and what Kubernetes fills in."""
    if isinstance(value, list):
        found = [normal(item) for item in value]
        named = all(isinstance(item, dict) and "name" in item for item in found)
        return sorted(found, key=lambda item: str(item["name"])) if named else found
    if not isinstance(value, dict):
        return value
    ours = ("app.kubernetes.io/", "helm.sh/", "imagePullPolicy", "namespace")
    kept = {k: normal(v) for k, v in value.items() if not k.startswith(ours) or isinstance(v, dict)}
    return {k: v for k, v in kept.items() if not (k == "labels" and v == {})}


def by_kind(documents: list[Any]) -> dict[tuple[str, str], Any]:
    """Normalised, by kind and name; a ClusterRole's name ends in its namespace, which kustomize's does not."""
    found = {}
    for document in documents:
        if document["kind"].startswith("ClusterRole"):
            document = json.loads(json.dumps(document).replace("gyrostat-nodes-ml", "gyrostat-nodes"))
        found[document["kind"], document["metadata"]["name"]] = normal(document)
    assert len(found) == len(documents)
    return found


@pytest.mark.parametrize("choice", CHOICES)
def test_the_chart_makes_what_kustomize_makes(render: Any, build: Callable[[Path], Any], choice: str) -> None:
    """Object by object, field by field; a replica that Kubernetes would fill in is the one difference."""
    values, folders = CHOICES[choice]
    made = by_kind(render(values))
    wanted = by_kind([document for folder in folders for document in build(KUSTOMIZE / folder)])
    if choice == "engine":
        assert made["Deployment", "inference"]["spec"].pop("replicas") == 1
    assert made == wanted


def test_the_rules_are_those_of_the_dashboards(render: Any) -> None:
    """As the program beside kustomize prints them: the same files are read by both."""
    program = KUSTOMIZE / "monitoring/prometheusrules.py"
    printed = subprocess.run([sys.executable, "-I", program], capture_output=True, text=True, check=True, timeout=60)
    made = render({"monitoring": {"rules": True, "labels": {"release": "prom"}}})
    assert by_kind(made).keys() == by_kind(list(yaml.safe_load_all(printed.stdout))).keys()
    assert {d["metadata"]["labels"]["release"] for d in made} == {"prom"}
    for name, document in by_kind(list(yaml.safe_load_all(printed.stdout))).items():
        assert by_kind(made)[name]["spec"] == document["spec"]


@needs_schemas
@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_kubernetes_knows_every_field(render: Any, version: str) -> None:
    """Strictly, with all values that add a field; custom resources are kustomize's, which are held to theirs."""
    control = {"enabled": True, "createSecret": True}
    layers = {"observe": True, "job": True, "nodes": True, "jobNames": ["my-run"]}
    more = {"rbac": layers, "finisher": {"enabled": True}, "control": control, "image": {"pullSecrets": ["ours"]}}
    made = render(engine("hpa") | more)
    assert {"Secret", "ClusterRole", "Deployment", "HorizontalPodAutoscaler"} <= {d["kind"] for d in made}
    for document in made:
        import_module("kubernetes_validate").validate(document, version, strict=True)
    assert [d["spec"]["template"]["spec"]["imagePullSecrets"] for d in made if d["kind"] == "Deployment"] == [
        [{"name": "ours"}]
    ] * 2


@pytest.mark.parametrize("given", REFUSED)
def test_a_value_that_is_none_is_refused(helm: Any, given: str) -> None:
    """Before anything is made, with the value's name and what it may be."""
    done = helm("template", "my-run", CHART, "--set", given)
    assert done.returncode == 1 and re.search(REFUSED[given], done.stderr, re.MULTILINE), done.stderr


def test_helm_finds_nothing_to_say(helm: Any) -> None:
    """Its own linter, strictly; that it is content with a chart that has no icon is its one note."""
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0 and "[WARNING]" not in done.stdout and "[ERROR]" not in done.stdout, done.stdout


def test_one_account_is_one_runs(render: Any) -> None:
    """Its roles bear its name, two runs beside each other; what may be changed is limited to the job that is named."""
    made = render({"rbac": {"serviceAccount": "run1", "observe": True, "job": True, "jobNames": ["run1"]}})
    assert {d["metadata"]["name"] for d in made} == {"run1", "run1-observe", "run1-job"}
    bound = [subject for d in made for subject in d.get("subjects", [])]
    assert bound == [{"kind": "ServiceAccount", "name": "run1", "namespace": "ml"}] * 2
    (role,) = [d for d in made if d["kind"] == "Role" and d["metadata"]["name"] == "run1-job"]
    for rule in role["rules"]:  # what is created has no name yet
        assert rule.get("resourceNames") == (["run1"] if rule["verbs"] == ["patch"] else None)


def test_the_policy_follows_the_port(render: Any) -> None:
    """Prometheus is let in where the sidecar listens, from the namespace that was named."""
    (policy,) = render({"sidecar": {"port": 9476}, "networkPolicy": {"enabled": True, "prometheusNamespace": "obs"}})
    page = policy["spec"]["ingress"][-1]
    assert page["ports"][0]["port"] == 9476
    assert page["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "obs"}


def test_a_token_is_made_only_when_asked_for(render: Any, tmp_path: Path) -> None:
    """One that the agent takes, no two the same, kept when the release goes; by itself the Secret is its owner's."""
    api, on = {"kubernetes": {"enabled": True}}, {"enabled": True}
    assert render(api | {"control": on, "cluster": on}) == []
    made = on | {"createSecret": True}
    one, other = render(api | {"control": made, "cluster": made})
    assert {d["metadata"]["name"] for d in (one, other)} == {"gyrostat-control", "gyrostat-cluster"}
    token = base64.b64decode(one["data"]["token"])
    (tmp_path / "token").write_bytes(token)
    (tmp_path / "token").chmod(0o600)
    assert tokenfile.read(str(tmp_path / "token")) == token and len(token) == 64
    assert one["data"] != other["data"]
    assert one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_the_version_is_the_agents() -> None:
    """The chart's image is the agent that it was written for."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == __version__ and VALUES["image"]["tag"] == ""


def test_each_value_is_in_the_schema_and_none_else() -> None:
    """A value that the schema has not cannot be set; one that values.yaml has not is explained nowhere."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))

    def same(values: Any, known: Any, where: str) -> None:
        if "properties" in known:
            assert known["additionalProperties"] is False
            assert set(values) == set(known["required"]) == set(known["properties"]) - {"global"}, where
            for name, value in values.items():
                same(value, known["properties"][name], f"{where}.{name}")

    same(VALUES, schema, "values")
