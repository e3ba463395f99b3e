"""What is deployed, as kubectl builds it; where there is no kubectl, the files as they lie there."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
KUSTOMIZE = ROOT / "deploy/kustomize"
CHART = ROOT / "deploy/helm/gyrostat"
HELM = os.environ.get("GYROSTAT_HELM") or shutil.which("helm") or ""
KUBECTL = os.environ.get("GYROSTAT_KUBECTL") or shutil.which("kubectl") or ""
TRAINING = (
    "job", "jobset", "pytorchjob", "trainjob", "volcano", "job-control", "job-output", "job-kubernetes", "job-cluster",
)  # fmt: skip
GRANTING = ("rbac/observe", "rbac/job", "rbac/nodes", "finisher")  # what lets anybody do anything in the API
FOLDERS = (
    "network", "monitoring", "overlays/inference", "overlays/inference-hpa", "overlays/inference-keda",
    "overlays/simulators", "overlays/job-run", *(f"overlays/{name}" for name in TRAINING), *GRANTING,
)  # fmt: skip

Document = dict[str, Any]
Build = Callable[[Path], list[Document]]
Helm = Callable[..., "subprocess.CompletedProcess[str]"]


class Pod(NamedTuple):
    """A pod template: where it stands, its labels and its spec."""

    where: str
    labels: dict[str, str]
    spec: dict[str, Any]

    @property
    def containers(self) -> list[dict[str, Any]]:
        """Of every sort."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    @property
    def sidecar(self) -> dict[str, Any] | None:
        """The agent's container, where there is one."""
        return next((c for c in self.containers if c["name"] == "gyrostat"), None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes ``folder`` runs for all that can be applied, ``training`` for every job with a sidecar."""
    if "folder" in metafunc.fixturenames:
        metafunc.parametrize("folder", FOLDERS)
    if "training" in metafunc.fixturenames:
        metafunc.parametrize("training", TRAINING)


@pytest.fixture(scope="session")
def build() -> Build:
    """A folder, built by the real kustomize; skips where there is none."""
    if not KUBECTL:
        pytest.skip("no kubectl on PATH (or in GYROSTAT_KUBECTL): what kustomize makes of the files cannot be seen")
    return _built


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """The real helm, with a home of its own; skips where there is none."""
    if not HELM:
        pytest.skip("no helm on PATH (or in GYROSTAT_HELM): what the chart makes of its values cannot be seen")
    places = {f"HELM_{name}_HOME": str(tmp_path / f"helm-{name}") for name in ("CACHE", "CONFIG", "DATA")}

    def run(*words: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [HELM, *words], capture_output=True, text=True, timeout=120, env={**os.environ, **places}
        )  # fmt: skip

    return run


@pytest.fixture
def render(helm: Helm, tmp_path: Path) -> Callable[..., list[Document]]:
    """A chart's objects with these values: ours, or the one in a folder."""

    def rendered(values: Document, chart: Path = CHART) -> list[Document]:
        (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
        done = helm("template", "my-run", chart, "--namespace", "ml", "--values", tmp_path / "values.yaml")
        assert done.returncode == 0, done.stderr
        return [d for d in yaml.safe_load_all(done.stdout) if d is not None]

    return rendered


@pytest.fixture
def documents(folder: str) -> list[Document]:
    """What would be applied; without kubectl what lies in the folder, and the sidecar as it is written down."""
    if KUBECTL:
        return _built(KUSTOMIZE / folder)
    print("no kubectl: the files as they lie there, not what kustomize makes of them")
    listed = yaml.safe_load((KUSTOMIZE / folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    found = [d for name in listed if name.endswith(".yaml") for d in _read(KUSTOMIZE / folder / name)]
    return [*found, *_read(KUSTOMIZE / "base/sidecar.yaml")]


@pytest.fixture
def pods(documents: list[Document]) -> list[Pod]:
    """The pod templates in them."""
    return [pod for document in documents for pod in pods_of(document)]


@pytest.fixture
def sidecars(pods: list[Pod]) -> list[Pod]:
    """Those of them that have the agent beside what they run."""
    return [pod for pod in pods if pod.sidecar]


@pytest.fixture
def trainers(training: str, build: Build) -> list[Pod]:
    """The pods of one kind of job, as built."""
    return [pod for document in build(KUSTOMIZE / "overlays" / training) for pod in pods_of(document)]


@pytest.fixture(scope="session")
def written() -> Pod:
    """The sidecar as it is written down, with what it adds to a trainer."""
    (document,) = _read(KUSTOMIZE / "base/sidecar.yaml")
    (pod,) = pods_of(document)
    return pod


@pytest.fixture(scope="session")
def find_pods() -> Callable[[Document], Iterator[Pod]]:
    """Finds the pod templates of any document."""
    return pods_of


def pods_of(document: Document) -> Iterator[Pod]:
    """Whatever has a spec with containers in it, however deep."""
    name = f"{document['kind']}/{document['metadata']['name']}"
    yield from _within(document, name)


def _within(value: Any, where: str) -> Iterator[Pod]:
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _within(item, f"{where}[{i}]")
    elif isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield Pod(where, value.get("metadata", {}).get("labels", {}), spec)
        for key, inner in value.items():
            yield from _within(inner, f"{where}.{key}")


def _read(path: Path) -> list[Document]:
    found = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    return [d for d in found if isinstance(d, dict) and "kind" in d and "metadata" in d]


@cache
def _built(folder: Path) -> list[Document]:
    done = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [d for d in yaml.safe_load_all(done.stdout) if d is not None]
