"""The rules of dashboards/prometheus, as the Prometheus operator wants them."""

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "deploy/kustomize/monitoring/prometheusrules.py"
GROUP = {"name", "interval", "limit", "query_offset", "labels", "rules", "partial_response_strategy"}
RULE = {"alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"}


def test_every_rule_file_becomes_a_prometheusrule() -> None:
    """The same groups, under names that the API server takes, with fields that the operator knows."""
    done = subprocess.run([sys.executable, "-I", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    printed = {d["metadata"]["name"]: d for d in yaml.safe_load_all(done.stdout)}
    files = {
        f"gyrostat-{path.name.partition('.')[0]}": path
        for path in (ROOT / "dashboards/prometheus").glob("*.rules.yaml")
    }
    assert set(printed) == set(files)
    for name, path in files.items():
        document = printed[name]
        assert (document["apiVersion"], document["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
        assert document["spec"] == yaml.safe_load(path.read_text(encoding="utf-8"))
        for group in document["spec"]["groups"]:
            assert set(group) <= GROUP
            assert all(set(rule) <= RULE for rule in group["rules"]), group["name"]
