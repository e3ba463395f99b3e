"""README, help and code tell the same story, and the house keeps its shape."""

import re
from pathlib import Path

import pytest
import yaml

from gyrostat_agent.cli.group import COMMANDS
from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.guards import GUARDS
from gyrostat_rules.remedies import REMEDIES

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(p for top in ("trainer", "rules", "agent", "exporters") for p in (ROOT / top).rglob("*.py"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command: str) -> None:
    """A command that the table of commands does not show is a command nobody finds."""
    table = README.partition("## Commands")[2].partition("\nExit statuses")[0]
    assert re.search(rf"`[^`]*\b{command}\b", table)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_what_a_page_links_to_is_there(page: str) -> None:
    """No dead link inside the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    missing = [
        t
        for t in re.findall(r"\]\(([^)#]+)\)", text)
        if "://" not in t and not (ROOT / page).parent.joinpath(t).exists()
    ]
    assert not missing


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


def test_the_runbooks_of_the_pack_exist() -> None:
    """An alert that hands the one on call a page that is not there is worse than none."""
    pack = yaml.safe_load((ROOT / "rules/gyrostat_rules/packs/core.yaml").read_text(encoding="utf-8"))
    named = {r["runbook"] for g in pack["groups"] for r in g["rules"] if "runbook" in r}
    assert named and named <= {p.stem for p in (ROOT / "rules/gyrostat_rules/runbooks").glob("*.md")}


def test_the_pack_uses_what_there_is() -> None:
    """Every detector and every remedy but the last resorts is used by the pack that comes with it."""
    text = (ROOT / "rules/gyrostat_rules/packs/core.yaml").read_text(encoding="utf-8")
    assert all(f"detector: {name}" in text for name in DETECTORS)
    assert all(f"remedy: {name}" in text for name in REMEDIES)
    assert len(GUARDS) == len({guard.__name__ for guard in GUARDS})
