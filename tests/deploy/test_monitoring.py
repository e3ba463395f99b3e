"""Who finds a watched pod: Prometheus by its label and port, the network policy by the same."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KUSTOMIZE = Path(__file__).resolve().parents[2] / "deploy/kustomize"
LABEL = "gyrostat-run"


def only(build: Callable[[Path], Any], folder: str) -> dict[str, Any]:
    """The spec of the one document there."""
    (document,) = build(KUSTOMIZE / folder)
    spec: dict[str, Any] = document["spec"]
    return spec


def test_prometheus_scrapes_the_sidecars_port(build: Callable[[Path], Any], written: Any) -> None:
    """By the port's name in the sidecar and the label that every watched pod bears; the label comes along."""
    spec = only(build, "monitoring")
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] == written.sidecar["ports"][0]["name"] and endpoint["path"] == "/metrics"
    assert spec["selector"]["matchExpressions"] == [{"key": LABEL, "operator": "Exists"}]
    assert spec["podTargetLabels"] == [LABEL]


@pytest.mark.parametrize(
    ("labels", "instance"),
    [
        ({"name": "inference-7d9f-x2x4q"}, "ml/inference-7d9f-x2x4q"),
        ({"name": "my-run-worker-1", "label_training_kubeflow_org_job_name": "my-run"}, "ml/my-run-worker-1"),
        ({"name": "my-run-8k2lp", "label_batch_kubernetes_io_job_name": "my-run"}, "ml/my-run"),
        (
            {
                "name": "my-run-trainer-0-3-8k2lp",
                "label_batch_kubernetes_io_job_name": "my-run-trainer-0",
                "label_batch_kubernetes_io_job_completion_index": "3",
            },
            "ml/my-run-trainer-0/3",
        ),
    ],
    ids=["deployment", "pytorchjob", "job", "jobset"],
)
def test_a_pod_that_takes_anothers_place_has_its_instance(
    build: Callable[[Path], Any], labels: dict[str, str], instance: str
) -> None:
    """The fleet's rules know a run by its instance, and a restarted pod is the same run; two pods never share one."""
    (endpoint,) = only(build, "monitoring")["podMetricsEndpoints"]
    meta = {"namespace": "ml"} | {f"pod_{name}": value for name, value in labels.items()}
    found = ""
    for rule in endpoint["relabelings"]:  # as Prometheus does: joined, matched as a whole, else left alone
        assert rule["targetLabel"] == "instance"
        values = [meta.get(name.removeprefix("__meta_kubernetes_"), "") for name in rule["sourceLabels"]]
        match = re.fullmatch(rule.get("regex", "(.*)"), rule["separator"].join(values))
        found = match[1] if match else found
    assert found == instance


def test_ranks_reach_each_other_and_prometheus_the_page(build: Callable[[Path], Any], written: Any) -> None:
    """A policy closes what it does not name: rendezvous and collectives on any port, the page for one namespace."""
    spec = only(build, "network")
    peers, page = spec["ingress"]
    assert spec["podSelector"] == peers["from"][0]["podSelector"] and "ports" not in peers
    assert spec["podSelector"]["matchExpressions"] == [{"key": LABEL, "operator": "Exists"}]
    assert [p["port"] for p in page["ports"]] == [written.sidecar["ports"][0]["containerPort"]]
    assert "podSelector" not in page["from"][0] and page["from"][0]["namespaceSelector"]
    assert spec["policyTypes"] == ["Ingress"], "trainers fetch data and models: what they may ask is not ours to say"
