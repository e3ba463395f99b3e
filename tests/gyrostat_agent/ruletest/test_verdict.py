"""What holds and what does not: an expectation fails exactly where what came is not what it says."""

from pathlib import Path

import pytest

from gyrostat_agent.ruletest.report import results
from gyrostat_agent.ruletest.testfile import load
from gyrostat_agent.ruletest.verdict import Difference

SHIPPED = """\
pack: shipped
groups:
  - name: g
    rules:
      - {alert: High, detector: level, with: {series: [x, y], above: 1, needed: 1, of: 1}, severity: warning}
      - {alert: Slow, detector: level, with: {series: [x], above: 1, needed: 1, of: 1}, for: 5 steps, severity: info}
      - alert: Grave
        detector: level
        with: {series: [z], above: 1, needed: 1, of: 1}
        severity: critical
        incident: experts
playbooks:
  - {incident: experts, rungs: [{remedy: turn, knobs: [{name: aux, times: 2}]}]}
"""
RUN = """\
tests:
  - name: a
    hello: {knobs: {aux: 0.1}}
    series: [{name: x, values: 0x9 2x8 0x9}, {name: y, values: 0x9 3x8 0x9}, {name: z, values: 0x19 2x7}]
"""


def differences(folder: Path, expected: str) -> tuple[Difference, ...]:
    """What does not hold of what a test of the run above expects."""
    path = folder / "t.yaml"
    path.write_text(RUN + f"    {expected}\n", encoding="utf-8")
    (result,) = results(load(str(path), SHIPPED))
    return result.differences


@pytest.mark.parametrize(
    "expected",
    [
        "expect: [{step: 9, alerts: [], incidents: [], actions: []}]",
        "expect: [{step: 10, alerts: [High, High]}]",
        "expect: [{step: 10, alerts: [{rule: High, labels: {series: x}}, {rule: High, labels: {series: y, rank: 0}}]}]",
        "expect: [{step: 12, alerts: [{rule: High, onset: 10}, {rule: High, onset: 10, muted: false}]}]",
        "expect: [{step: 15, alerts: [Slow]}]",
        "expect: [{step: 20, alerts: [Grave], incidents: [experts], actions: [turn]}]",
        "expect: [{step: 26, incidents: [{kind: experts, onset: 20}], actions: [{remedy: turn, knobs: {aux: 0.2}}]}]",
        "never: {incidents: [entropy, stall]}",
    ],
)
def test_what_is_so_holds(tmp_path: Path, expected: str) -> None:
    """Of rules that are not named nothing is said; what was opened or sent earlier counts."""
    assert differences(tmp_path, expected) == ()


@pytest.mark.parametrize(
    ("expected", "step", "about", "wanted", "got"),
    [
        ("expect: [{step: 10, alerts: []}]", 10, "alerts", "none", "High{rank=0, role=trainer, series=x}, onset 10: x"),
        ("expect: [{step: 9, alerts: [High]}]", 9, "alerts", "High", "none"),
        ("expect: [{step: 10, alerts: [High]}]", 10, "alerts", "none", "High{rank=0, role=trainer, series=y}"),
        ("expect: [{step: 10, alerts: [{rule: High, labels: {rank: 1}}, High]}]", 10, "alerts", "High{rank=1}", "High"),
        ("expect: [{step: 10, alerts: [{rule: High, onset: 9}, High]}]", 10, "alerts", "High, onset 9", "High"),
        ("expect: [{step: 10, alerts: [{rule: High, muted: true}, High]}]", 10, "alerts", "High, muted", "High"),
        ("expect: [{step: 19, incidents: [experts]}]", 19, "incidents", "experts", "none"),
        ("expect: [{step: 20, incidents: []}]", 20, "incidents", "none", "experts, onset 20, at step 20"),
        ("expect: [{step: 20, incidents: [{kind: experts, onset: 3}]}]", 20, "incidents", "experts, onset 3", ""),
        ("expect: [{step: 20, actions: []}]", 20, "actions", "none", "turn{aux=0.2}, at step 20"),
        ("expect: [{step: 20, actions: [page]}]", 20, "actions", "page", "turn{aux=0.2}"),
        ("expect: [{step: 20, actions: [{remedy: turn, knobs: {aux: 0.3}}]}]", 20, "actions", "turn{aux=0.3}", "turn"),
        ("never: {alerts: Slow}", 15, "never", "no Slow", "Slow{rank=0"),
        ("never: {incidents: any}", 20, "never", "no incident of kind experts", "experts, onset 20"),
    ],
)  # fmt: skip
def test_what_is_not_so_is_told_with_both_sides(
    tmp_path: Path, expected: str, step: int, about: str, wanted: str, got: str
) -> None:
    """Step, what was expected and what came, in the alert's own words."""
    told = differences(tmp_path, expected)[0]
    assert (told.row.step, told.about) == (step, about)
    assert told.expected[0].startswith(wanted) and told.got[0].startswith(got), told


def test_what_was_on_its_way_stands_beside(tmp_path: Path) -> None:
    """An alert that had not lasted long enough says why it was pending."""
    (told,) = differences(tmp_path, "expect: [{step: 12, alerts: [Slow]}]")
    assert any(line.startswith("pending: Slow{") and "onset 10: x is 2" in line for line in told.beside)


def test_never_is_told_once_a_rule_and_at_the_first_step(tmp_path: Path) -> None:
    """A rule that fires at every step is one difference."""
    told = differences(tmp_path, "never: {alerts: any}")
    assert [(d.row.step, d.expected[0].split(",")[0]) for d in told] == [
        (10, "no High"),
        (15, "no Slow"),
        (20, "no Grave"),
    ]
