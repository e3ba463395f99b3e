"""The Prometheus page: one table of names, finite samples alone, and a documentation that says the same."""

import math
import re
from pathlib import Path

import pytest
from exported_runs import full_view, long_view
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gyrostat_exporters.metrics import COUNTER, NAMES, Latest, RunCollector

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
Samples = dict[str, dict[tuple[str, ...], float]]


def page(latest: Latest) -> str:
    registry = CollectorRegistry()
    registry.register(RunCollector(latest))
    return generate_latest(registry).decode()


def samples(text: str) -> Samples:
    """Values by family and label values, in the table's order of labels."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in NAMES[family.name].labels)
            found.setdefault(family.name, {})[labels] = sample.value
    return found


def shown() -> Latest:
    latest = Latest()
    latest.view = long_view()
    return latest


def test_a_full_run_shows_every_name_and_no_other() -> None:
    """What the table lists is what Prometheus reads: name, kind and help."""
    families = {f.name: f for f in text_string_to_metric_families(page(shown()))}
    assert set(families) == set(NAMES)
    assert {n: (f.type, f.documentation) for n, f in families.items()} == {
        n: (s.kind, s.help) for n, s in NAMES.items()
    }


def test_before_the_first_pass_there_is_nothing() -> None:
    """A scrape that comes early gets an empty page, not an error."""
    assert page(Latest()) == ""


def test_a_nan_is_a_counter_and_never_a_sample() -> None:
    """No gauge is ever NaN: it would alert nobody."""
    found = samples(page(shown()))
    assert found["gyrostat_nonfinite"] == {
        ("loss", "trainer", "0", "nan"): 1.0,
        ("grad_norm", "trainer", "0", "-inf"): 1.0,
    }
    assert found["gyrostat_value"] == {("reward", "trainer", "0"): 0.25}
    assert all(math.isfinite(value) for rows in found.values() for value in rows.values())


@pytest.mark.parametrize(
    "name, labels, value",
    [
        ("gyrostat_run", ("r", "shadow"), 1.0),
        ("gyrostat_ready", (), 1.0),
        ("gyrostat_observe_only", (), 0.0),
        ("gyrostat_rule_armed", ("A",), 1.0),
        ("gyrostat_step", ("trainer", "1"), 5.0),
        ("gyrostat_segment", (), 1.0),
        ("gyrostat_last_record_timestamp_seconds", ("trainer", "0"), 1005.0),
        ("gyrostat_alerts", ("A", "critical", "firing"), 1.0),
        ("gyrostat_silences", ("active",), 1.0),
        ("gyrostat_silences", ("pending",), 1.0),
        ("gyrostat_rules_without_data", (), 1.0),
        ("gyrostat_incidents_open", ("nonfinite", "acting"), 1.0),
        ("gyrostat_incidents", (), 2.0),
        ("gyrostat_incidents_ended", ("nonfinite", "resolved"), 1.0),
        ("gyrostat_interventions", (), 1.0),
        ("gyrostat_first_record_timestamp_seconds", (), 1004.0),
        ("gyrostat_steps", (), 2.0),
        ("gyrostat_steps_lost", (), 3.0),
        ("gyrostat_lost_seconds", (), 12.5),
        ("gyrostat_expert_dead_share", ("1", "0"), 0.75),
        ("gyrostat_expert_dead_share", ("0", "0"), 0.0),
        ("gyrostat_expert_rho_eff", ("0", "0"), 1.0),
        ("gyrostat_expert_fullest", ("1", "load"), 4.0),
        ("gyrostat_expert_fullest", ("1", "layer"), 1.0),
        ("gyrostat_expert_fullest", ("1", "expert"), 0.0),
        ("gyrostat_experts_hidden", (), 0.0),
        ("gyrostat_actions", ("rollback", "done"), 1.0),
        ("gyrostat_control_requests", ("unauthorized",), 3.0),
        ("gyrostat_records", (), 2.0),
        ("gyrostat_frames_missing", (), 2.0),
        ("gyrostat_frames_damaged", (), 1.0),
        ("gyrostat_turns", (), 7.0),
        ("gyrostat_alertmanager_alerts", ("am:9093", "failed"), 2.0),
        ("gyrostat_alertmanager_waiting", ("am:9093",), 3.0),
        ("gyrostat_otlp_items", ("logs", "dropped"), 1.0),
        ("gyrostat_otlp_waiting", ("logs",), 3.0),
        ("gyrostat_series_cut", (), 0.0),
    ],
)
def test_each_sample_says_what_the_view_says(name: str, labels: tuple[str, ...], value: float) -> None:
    """By name and labels."""
    assert samples(page(shown()))[name][labels] == value


def test_blind_is_not_ready() -> None:
    """An agent that cannot see everything says so in the metric too."""
    latest = Latest()
    latest.view = full_view("no trainer has spoken yet")
    assert samples(page(latest))["gyrostat_ready"][()] == 0.0


def test_rules_without_data_are_not_counted_too_early() -> None:
    """Before 20 steps nobody knows how many there are: no sample, rather than a 0 that reads as all is looked at."""
    latest = Latest()
    latest.view = full_view()
    assert "gyrostat_rules_without_data" not in samples(page(latest))


def test_the_documentation_lists_exactly_these() -> None:
    """``docs/metrics.md`` has a row for each name, with its kind, labels and help, and none beside."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    documented = {name: (kind, labels.replace("`", ""), text) for name, kind, labels, text in rows}
    expected = {
        f"{name}_total" if said.kind == COUNTER else name: (said.kind, ", ".join(said.labels), said.help)
        for name, said in NAMES.items()
    }
    assert documented == expected and len(rows) == len(expected)
