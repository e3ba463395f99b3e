"""README, help and code tell the same story, and the house keeps its shape."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gyrostat_agent.cli.group import COMMANDS
from gyrostat_agent.cli.options import builtin
from gyrostat_rules import series
from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.guards import GUARDS
from gyrostat_rules.remedies import REMEDIES

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(p for top in ("trainer", "rules", "agent", "exporters") for p in (ROOT / top).rglob("*.py"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
SERIES = (ROOT / "docs/series.md").read_text(encoding="utf-8")
FOLDERS = ("trainer", "rules", "agent", "exporters", "benchmarks", "tests", "docs", "dashboards", "deploy")
WRITTEN = (".py", ".md", ".yaml", ".yml", ".toml", ".html")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command: str) -> None:
    """A command that the table of commands does not show is a command nobody finds."""
    table = README.partition("## Commands")[2].partition("\nExit statuses")[0]
    assert re.search(rf"`[^`]*\b{command}\b", table)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        *(
            f"docs/{name}.md"
            for name in (
                "architecture",
                "trainer",
                "series",
                "scenarios",
                "logs",
                "backtest",
                "checkpoints",
                "rule_tests",
                "archive",
            )
        ),
    ],
)
def test_what_a_page_links_to_is_there(page: str) -> None:
    """No dead link inside the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    missing = [
        t
        for t in re.findall(r"\]\(([^)#]+)\)", text)
        if "://" not in t and not (ROOT / page).parent.joinpath(t).exists()
    ]
    assert not missing


def test_no_file_names_a_document_that_is_not_there() -> None:
    """Who reads "see X, section 5" and finds no X has lost a minute and some trust."""
    absent = re.compile(r"\b(DESIGN|ALGORITHMS|PERFORMANCE|PEERS|ECOSYSTEM|LOG_FORMATS)\b")
    files = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in WRITTEN]
    files += [p for p in ROOT.iterdir() if p.suffix in WRITTEN or p.name == "Makefile"]
    others = [p for p in files if p != Path(__file__)]
    assert not [str(p.relative_to(ROOT)) for p in others if absent.search(p.read_text(encoding="utf-8"))]


def test_the_page_of_series_lists_what_is_read() -> None:
    """A person who names a metric by the page gets what the page says."""
    update = _listed("Update")
    assert _listed("Where and how") == series._PLAIN and _listed("Apart") == series._APART
    assert update == set(series._UPDATE) and _listed("Measures") == series._POISON - update
    assert all(series.meaning(f"own{ending}") == series.POISON for ending in _listed("Endings"))
    table = SERIES.partition("| name | read as |")[2].partition("\n\n")[0]
    names = {value for name, value in vars(series).items() if name.isupper() and not name.startswith("_")}
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == names - {series.POISON, series.UNDEFINED}


_READ_AS_POISON = (
    "actor/grad_norm", "rewards/mean", "train_loss", "policy_entropy", "loss_mean", "router_z_loss",
)  # fmt: skip
_READ_AS_ANY_OTHER = (
    "loss_scale", "grad_norm_clip_fraction", "eval/loss", "val_reward", "best_reward", "reward_max", "reward_std",
    "rewards/format", "grad_norm/layer.3",
)  # fmt: skip


@pytest.mark.parametrize("name", _READ_AS_POISON + _READ_AS_ANY_OTHER)
def test_the_examples_of_series_are_read_as_said(name: str) -> None:
    """The page's examples are true."""
    assert f"`{name}`" in SERIES
    assert (series.meaning(name) == series.POISON) == (name in _READ_AS_POISON)


def _listed(what: str) -> set[str]:
    """The words in backticks that the page of series lists behind ``what:``."""
    line = re.search(rf"^{what}: (.*?)\.$", SERIES, re.MULTILINE | re.DOTALL)
    assert line, f"docs/series.md lists no {what!r}"
    return set(re.findall(r"`(\w+)`", line[1]))


def test_modules_that_the_architecture_names_exist() -> None:
    """The map shows the house as it is."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    names = set(re.findall(r"\b([a-z]+\.py)\b", text))
    assert names <= {p.name for p in SOURCES}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_stays_one_noun(path: Path) -> None:
    """A file that grows past 300 lines hides a second noun."""
    assert path.read_text(encoding="utf-8").count("\n") <= 300
    assert path.stem not in {"utils", "util", "common", "helpers", "helper", "misc", "manager", "handler", "context"}


def _rules() -> list[dict[str, Any]]:
    return [rule for pack in yaml.safe_load_all(builtin()) for group in pack["groups"] for rule in group["rules"]]


def test_the_runbooks_of_the_pack_exist() -> None:
    """An alert that hands the one on call a page that is not there is worse than none."""
    named = {rule["runbook_url"] for rule in _rules() if "runbook_url" in rule}
    assert named and named <= {p.stem for p in (ROOT / "rules/gyrostat_rules/runbooks").glob("*.md")}


def test_the_pack_uses_what_there_is() -> None:
    """Every detector and every remedy but the last resorts is used by the pack that comes with it."""
    text = builtin()
    assert all(f"detector: {name}" in text for name in DETECTORS)
    assert all(f"remedy: {name}" in text for name in REMEDIES)
    assert len(GUARDS) == len({guard.__name__ for guard in GUARDS})


def test_the_stall_page_names_the_packs_seconds() -> None:
    """The one on call is told the number that woke them."""
    rule = next(rule for rule in _rules() if rule["alert"] == "TrainerStalled")
    page = (ROOT / "rules/gyrostat_rules/runbooks/stall.md").read_text(encoding="utf-8")
    assert f"for {rule['with']['after_seconds']} seconds" in page
