"""The Prometheus rules: good for Prometheus itself, about metrics that there are, and each alert is explained."""

import re
import subprocess
from shutil import which
from typing import Any

import pytest
import yaml
from board_files import DASHBOARDS, EXPOSED, OF_PROMETHEUS, RULES, names_in, recorded, rules, selectors_in

ALERTS = rules("alerts.rules.yaml")
BOTH = [*rules("fleet.rules.yaml"), *ALERTS]
PAGE = DASHBOARDS.parent / "docs" / "dashboards.md"
OF_TARGETS = {"job", "instance", "run"}


def promtool(*words: str) -> None:
    """Run it, or skip where there is none."""
    program = which("promtool")
    if program is None:
        pytest.skip("promtool is not on PATH; on Debian: apt-get install prometheus")
    found = subprocess.run([program, *words], capture_output=True, encoding="utf-8", cwd=RULES, timeout=60, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_prometheus_takes_the_rules() -> None:
    """Every expression parses, every template too."""
    promtool("check", "rules", *sorted(path.name for path in RULES.glob("*.rules.yaml")))


def test_prometheus_takes_the_example() -> None:
    """A configuration that finds the rules beside it."""
    promtool("check", "config", "prometheus.example.yaml")


@pytest.mark.parametrize("file", sorted(path.name for path in RULES.glob("tests/*.test.yaml")))
def test_the_rules_say_what_they_should(file: str) -> None:
    """Prometheus' own unit tests: figures of a day, and each alert where it fires and where it must not."""
    promtool("test", "rules", f"tests/{file}")


@pytest.mark.parametrize("rule", BOTH, ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_reads_what_there_is(rule: dict[str, Any]) -> None:
    """Metrics of the agent's table or of the recording rules, by labels that they have."""
    assert names_in(rule["expr"]) <= set(EXPOSED) | recorded() | OF_PROMETHEUS
    for name, labels in selectors_in(rule["expr"]):
        assert set(labels) <= {*EXPOSED[name].labels, *OF_TARGETS}, name


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_is_tested_and_says_what_to_do(rule: dict[str, Any]) -> None:
    """Severity, summary, description, a page that is there; a case where it fires and one where it does not."""
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    page = rule["annotations"]["runbook"].partition("#")[0].replace("{{ $labels.kind }}", "nonfinite")
    assert (DASHBOARDS.parent / page).is_file()
    cases = yaml.safe_load((RULES / "tests" / "alerts.test.yaml").read_text())["tests"]
    fires = {
        bool(a["exp_alerts"]) for case in cases for a in case["alert_rule_test"] if a["alertname"] == rule["alert"]
    }
    assert True in fires and (rule["alert"] == "IncidentOpen" or fires == {True, False})


def test_the_page_lists_exactly_these() -> None:
    """``docs/dashboards.md`` has a row for each alert, with its severity, and for each recording rule."""
    text = PAGE.read_text(encoding="utf-8")
    alerts = dict(re.findall(r"^\| `(\w+)` \| (info|warning|critical) \|", text, re.MULTILINE))
    assert alerts == {rule["alert"]: rule["labels"]["severity"] for rule in ALERTS}
    assert set(re.findall(r"^\| `(gyrostat:[\w:]+)` \|", text, re.MULTILINE)) == recorded()
