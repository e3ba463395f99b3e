"""Every manifest has only fields that its API knows: a typo in one is refused, or worse, dropped in silence.

Kubernetes' own kinds by the strict schemas of kubernetes-validate. Custom resources by the fields below, as their
definitions have them (Kubeflow Trainer 2.2, training operator 1.9, Volcano, JobSet, Prometheus operator, KEDA); the
pods within them as pods.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

OLDEST, NEWEST = "1.29", "1.37"  # native sidecars are on by default since the first
VALIDATES = find_spec("kubernetes_validate") is not None
needs_schemas = pytest.mark.skipif(
    not VALIDATES, reason="kubernetes-validate is not installed (pip install kubernetes-validate==1.37.0)"
)

POD, ANY = "pod", "any"
_META = {"name": ANY, "labels": ANY, "annotations": ANY}
_JOB = dict.fromkeys(("parallelism", "completions", "completionMode", "backoffLimit"), ANY) | {"template": POD}
_REPLICATED = [{"name": ANY, "replicas": ANY, "template": {"metadata": _META, "spec": _JOB}}]
_REPLICA = {"replicas": ANY, "restartPolicy": ANY, "template": POD}
_SCALING = {"stabilizationWindowSeconds": ANY, "policies": [{"type": ANY, "value": ANY, "periodSeconds": ANY}]}
_BEHAVIOR = {"scaleUp": _SCALING, "scaleDown": _SCALING}
_RELABEL = dict.fromkeys(("sourceLabels", "separator", "regex", "targetLabel", "replacement", "action"), ANY)
FIELDS: dict[tuple[str, str], Any] = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): {
        "failurePolicy": {"maxRestarts": ANY, "restartStrategy": ANY},
        "network": {"enableDNSHostnames": ANY, "subdomain": ANY},
        "replicatedJobs": _REPLICATED,
        "suspend": ANY,
    },
    ("kubeflow.org/v1", "PyTorchJob"): {
        "nprocPerNode": ANY,
        "runPolicy": {"backoffLimit": ANY, "cleanPodPolicy": ANY, "suspend": ANY},
        "pytorchReplicaSpecs": {"Master": _REPLICA, "Worker": _REPLICA},
    },
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): {
        "mlPolicy": {"numNodes": ANY, "torch": ANY},
        "template": {"metadata": _META, "spec": {"replicatedJobs": _REPLICATED}},
    },
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): {
        "runtimeRef": {"apiGroup": ANY, "kind": ANY, "name": ANY},
        "suspend": ANY,
        "trainer": dict.fromkeys(("image", "command", "args", "env", "numNodes", "numProcPerNode"), ANY),
    },
    ("batch.volcano.sh/v1alpha1", "Job"): {
        "schedulerName": ANY, "minAvailable": ANY, "maxRetry": ANY, "queue": ANY, "plugins": ANY,
        "policies": [{"event": ANY, "action": ANY}],
        "tasks": [{"name": ANY, "replicas": ANY, "policies": [{"event": ANY, "action": ANY}], "template": POD}],
    },
    ("monitoring.coreos.com/v1", "PodMonitor"): {
        "selector": {"matchLabels": ANY, "matchExpressions": [{"key": ANY, "operator": ANY, "values": ANY}]},
        "podTargetLabels": ANY,
        "podMetricsEndpoints": [{"port": ANY, "path": ANY, "interval": ANY, "relabelings": [_RELABEL]}],
    },
    ("keda.sh/v1alpha1", "ScaledObject"): {
        "scaleTargetRef": {"apiVersion": ANY, "kind": ANY, "name": ANY},
        "minReplicaCount": ANY, "maxReplicaCount": ANY, "cooldownPeriod": ANY, "pollingInterval": ANY,
        "triggers": [{"type": ANY, "metricType": ANY, "metadata": ANY}],
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _BEHAVIOR}},
    },
}  # fmt: skip
TRIGGERS = {
    "prometheus": {"serverAddress", "query", "threshold", "ignoreNullValues"},
    "cron": {"timezone", "start", "end", "desiredReplicas"},
}


def unknown(value: Any, known: Any, where: str) -> list[str]:
    """What ``value`` has that ``known`` has not."""
    if known in (POD, ANY):
        return []
    if isinstance(known, list):
        assert isinstance(value, list), f"{where} must be a list"
        return [found for i, item in enumerate(value) for found in unknown(item, known[0], f"{where}[{i}]")]
    assert isinstance(value, dict), f"{where} must be a mapping"
    more = [f"{where}.{key}" for key in value if key not in known]
    return more + [f for key in value if key in known for f in unknown(value[key], known[key], f"{where}.{key}")]


def custom(document: dict[str, Any]) -> bool:
    """Whether it is no kind of Kubernetes' own, whose groups have no dot or end in .k8s.io."""
    group = document["apiVersion"].rpartition("/")[0]
    return "." in group and (not group.endswith(".k8s.io") or group.endswith(".x-k8s.io"))


@needs_schemas
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_kubernetes_knows_every_field(documents: list[Any], pods: list[Any], version: str) -> None:
    """Its own kinds as they are; the pods of every kind as pods."""
    validate = import_module("kubernetes_validate").validate
    bare = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "of-a-template", "labels": pod.labels},
            "spec": pod.spec,
        }
        for pod in pods
    ]
    for document in [d for d in documents if not custom(d)] + bare:
        validate(document, version, strict=True)


@needs_schemas
def test_the_schemas_find_a_typo(written: Any) -> None:
    """Strict means that a field nobody knows is an error: else the test above proves nothing."""
    kubernetes_validate = import_module("kubernetes_validate")
    spec = {**written.spec, "shareProcesNamespace": True}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
    with pytest.raises(kubernetes_validate.ValidationError, match="shareProcesNamespace"):
        kubernetes_validate.validate(pod, NEWEST, strict=True)


def test_custom_resources_have_documented_fields_alone(documents: list[Any]) -> None:
    """By the table above; a kind that is not in it is not deployed untested."""
    for document in filter(custom, documents):
        known = FIELDS[document["apiVersion"], document["kind"]]
        assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
        assert unknown(document["spec"], known, document["kind"]) == []


def test_triggers_have_what_their_scaler_reads(documents: list[Any]) -> None:
    """KEDA's triggers are free text to every schema: names by its documentation, values as text."""
    for document in (d for d in documents if d["kind"] == "ScaledObject"):
        for trigger in document["spec"]["triggers"]:
            assert set(trigger["metadata"]) == TRIGGERS[trigger["type"]]
            assert all(isinstance(value, str) for value in trigger["metadata"].values())
