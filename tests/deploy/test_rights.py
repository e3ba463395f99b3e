"""What is granted: exactly what the agent's table says, in three layers; the trainer's container has none of it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gyrostat_agent.kubernetes.rights import FINISHER, JOB, NODES, OBSERVE, RIGHTS, folder_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")


def granted(folder: Path) -> set[tuple[str, str]]:
    """Verbs and resources of the roles that lie there."""
    documents = [d for path in folder.glob("*.yaml") for d in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return {
        (verb, resource + ("." + group if group else ""))
        for d in documents
        if d["kind"] in ("Role", "ClusterRole")
        for rule in d["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("layer", [OBSERVE, JOB, NODES])
def test_a_layer_grants_what_the_table_says_and_no_more(layer: str) -> None:
    """Whoever reads the table knows what the roles allow."""
    assert granted(ROOT / folder_of(layer)) == {(r.verb, r.resource) for r in RIGHTS if r.layer == layer}


def test_the_finisher_may_list_jobs_and_touch_no_node() -> None:
    """Of an agent's rights it has those that finishing takes."""
    found = granted(ROOT / folder_of(FINISHER))
    assert {(r.verb, r.resource) for r in RIGHTS if r.layer == FINISHER} <= found
    assert found <= {(r.verb, r.resource) for r in RIGHTS if r.layer != NODES}
    assert not {r for r in found if r[1] in ("events", "pods/eviction")}


@pytest.mark.parametrize("right", RIGHTS, ids=lambda r: f"{r.layer} {r.verb} {r.resource}")
def test_the_page_justifies_each_right(right: Any) -> None:
    """Verb, resource and what it is for, in one row of docs/kubernetes.md."""
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| {right.layer} |")]
    resource = right.resource.partition(".")[0]
    assert any(f"`{right.verb}`" in row and f"`{resource}`" in row and right.why in row for row in rows)


def test_the_token_is_the_sidecars_alone(build: Any) -> None:
    """What the trainer runs is other people's code: it can do nothing in the cluster's API."""
    (job,) = [d for d in build(ROOT / "deploy/kustomize/overlays/job-kubernetes") if d["kind"] == "Job"]
    spec = job["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False and spec["serviceAccountName"] == "gyrostat"
    having = [
        c["name"]
        for c in [*spec["initContainers"], *spec["containers"]]
        if any(m["name"] == "gyrostat-account" for m in c.get("volumeMounts", []))
    ]
    assert having == ["gyrostat"]
    assert "--kubernetes" in spec["initContainers"][0]["args"]
