"""The sidecar as kustomize attaches it: the same in every kind of job, and nothing of the job's own is lost."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

KUSTOMIZE = Path(__file__).resolve().parents[2] / "deploy/kustomize"
KINDS = {
    "job": ("batch/v1", "Job", 1),
    "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet", 1),
    "pytorchjob": ("kubeflow.org/v1", "PyTorchJob", 2),
    "trainjob": ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", 1),
    "volcano": ("batch.volcano.sh/v1alpha1", "Job", 1),
}
OWN = """
apiVersion: batch/v1
kind: Job
metadata: {name: mine}
spec:
  template:
    metadata: {labels: {gyrostat-run: mine}}
    spec:
      restartPolicy: Never
      initContainers:
      - {name: fetch, image: "example.com/fetch:2.0"}
      containers:
      - name: whatever
        image: example.com/mine:3.0
        env:
        - {name: MINE, value: kept}
        - {name: GYROSTAT_RUN_DIR, value: /elsewhere}
        volumeMounts:
        - {name: checkpoints, mountPath: /checkpoints}
      volumes:
      - {name: checkpoints, persistentVolumeClaim: {claimName: mine}}
"""


def own_overlay(tmp_path: Path, *components: str) -> Path:
    """A folder of a user's own, outside the repository, with a job of theirs."""
    beside = os.path.relpath(KUSTOMIZE, tmp_path.resolve())
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{beside}/base", "job.yaml"],
        "components": [f"{beside}/components/{name}" for name in components],
        "images": [{"name": "gyrostat", "newName": "registry.example/gyrostat", "newTag": "0.1.0-1"}],
        "replacements": [{"path": "attach.yaml"}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    (tmp_path / "job.yaml").write_text(OWN)
    (tmp_path / "attach.yaml").write_text((KUSTOMIZE / "overlays/job/attach.yaml").read_text())
    return tmp_path


def by_name(items: list[dict[str, Any]]) -> dict[str, Any]:
    """A list of a pod's as a mapping; names are given once."""
    found = {item["name"]: item for item in items}
    assert len(found) == len(items), [item["name"] for item in items]
    return found


def test_each_kind_of_job_has_its_pods(build: Callable[[Path], Any], find_pods: Callable[[Any], Any]) -> None:
    """The five kinds are there under the versions that their controllers serve, each with all its pod templates."""
    for folder, (version, kind, count) in KINDS.items():
        documents = build(KUSTOMIZE / "overlays" / folder)
        (job,) = [d for d in documents if d["kind"] == kind]
        assert (job["apiVersion"], len(list(find_pods(job)))) == (version, count), folder


def test_the_sidecar_is_the_one_that_is_written_down(training: str, trainers: list[Any], written: Any) -> None:
    """Whatever the kind of job: a native sidecar with the same arguments, mounts, probe and rights."""
    assert trainers
    for pod in trainers:
        attached = dict(by_name(pod.spec["initContainers"])["gyrostat"])
        assert attached["restartPolicy"] == "Always"
        if training in KINDS:
            assert attached == written.sidecar, pod.where
        else:  # these add to it, and take nothing away
            assert attached["args"][: len(written.sidecar["args"])] == written.sidecar["args"]


def test_trainer_and_sidecar_meet_in_one_folder(trainers: list[Any]) -> None:
    """The folder that the trainer writes to is the one that the agent watches, on one volume, under one name."""
    for pod in trainers:
        first, volumes = pod.spec["containers"][0], by_name(pod.spec["volumes"])
        env = by_name(first["env"])
        watched = pod.sidecar["args"][1]
        assert env["GYROSTAT_RUN_DIR"]["value"] == watched
        assert by_name(pod.sidecar["env"])["GYROSTAT_RUN_DIR"]["value"] == watched, "for kubectl exec"
        assert env["GYROSTAT_RUN"] == by_name(pod.sidecar["env"])["GYROSTAT_RUN"]
        for container in (first, pod.sidecar):
            mounts = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
            assert "emptyDir" in volumes[mounts[str(Path(watched).parent)]]
            assert "persistentVolumeClaim" in volumes[mounts["/checkpoints"]]
        assert pod.labels["gyrostat-run"], "the name of the run is that label"


def test_a_job_of_ones_own_keeps_what_it_has(tmp_path: Path, build: Callable[[Path], Any], find_pods: Any) -> None:
    """Its init containers, environment and volumes stay; the run directory becomes ours; the image is the one named."""
    (document,) = build(own_overlay(tmp_path))
    (pod,) = find_pods(document)
    env = by_name(pod.spec["containers"][0]["env"])
    assert list(by_name(pod.spec["initContainers"])) == ["fetch", "gyrostat"]
    assert (env["MINE"]["value"], env["GYROSTAT_RUN_DIR"]["value"]) == ("kept", "/run/gyrostat/run")
    assert by_name(pod.spec["volumes"])["checkpoints"]["persistentVolumeClaim"]["claimName"] == "mine"
    assert pod.sidecar["image"] == "registry.example/gyrostat:0.1.0-1"


def test_the_component_for_gpus_adds_to_the_sidecar(
    tmp_path: Path, build: Callable[[Path], Any], find_pods: Any
) -> None:
    """It looks at the GPUs and asks the runtime for the driver's library, and requests no GPU."""
    (document,) = build(own_overlay(tmp_path, "gpu"))
    (pod,) = find_pods(document)
    env = by_name(pod.sidecar["env"])
    assert pod.sidecar["args"][-1] == "--gpu"
    assert (env["NVIDIA_VISIBLE_DEVICES"]["value"], env["NVIDIA_DRIVER_CAPABILITIES"]["value"]) == ("all", "utility")
    assert not [name for name in pod.sidecar["resources"]["limits"] if "gpu" in name]


def test_the_base_alone_applies_nothing(build: Callable[[Path], Any]) -> None:
    """The sidecar's template is for kustomize: nobody gets a stray PodTemplate in the namespace."""
    assert build(KUSTOMIZE / "base") == []
