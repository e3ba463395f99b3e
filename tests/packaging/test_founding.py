"""The table of the founding documents: every thing that it names is there."""

import re
from pathlib import Path

import click
import pytest
import yaml
from written_commands import fault, parts, spans

from gyrostat_agent.cli.group import COMMANDS, gyrostat
from gyrostat_agent.cli.options import builtin
from gyrostat_exporters.metrics import COUNTER, NAMES
from gyrostat_rules.packfile import parse

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/founding.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([AB]\d+) \| ((?:\\\||[^|])+) \| ((?:\\\||[^|])+) \| (\w+) \| (.+) \|$", TEXT, re.MULTILINE)
PACK = parse(builtin())
EXPOSED = {f"{name}_total" if said.kind == COUNTER else name for name, said in NAMES.items()}
each_row = pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])


def alerts() -> set[str]:
    """The rules of the packs and the alerts of Prometheus."""
    groups = yaml.safe_load((ROOT / "dashboards/prometheus/alerts.rules.yaml").read_text(encoding="utf-8"))["groups"]
    return {rule.alert for rule in PACK.rules} | {rule["alert"] for group in groups for rule in group["rules"]}


def options() -> set[str]:
    """Every option of every command."""
    context = click.Context(gyrostat)
    found, rest = set(), [gyrostat.get_command(context, name) for name in COMMANDS]
    while rest:
        command = rest.pop()
        assert command is not None
        found |= {name for param in command.params for name in param.opts}
        if isinstance(command, click.Group):
            rest += [command.get_command(context, name) for name in command.list_commands(context)]
    return found


ALERTS, OPTIONS = alerts(), options()
REFERENCE = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "trainer/gyrostat_reference").glob("*.py"))
KNOBS = {plan.name for book in PACK.playbooks for rung in book.rungs for plan in rung.knobs}
TOLD = {
    word
    for page in ("series", "reference_trainer", "logs", "received")
    for span in spans((ROOT / f"docs/{page}.md").read_text(encoding="utf-8"))
    for word in re.findall(r"[A-Za-z_][\w-]*", span)
}


def absent(span: str) -> str:
    """Why what stands in backticks is not there, or ''."""
    if span.startswith("gyrostat "):
        return "; ".join(filter(None, map(fault, parts(span))))
    if "/" in span or span.endswith((".toml", ".txt")):
        return "" if (ROOT / span).exists() else "no such path"
    if span.startswith("--"):
        return "" if span in OPTIONS else "no such option"
    if span.isupper():
        return "" if f'"{span}"' in REFERENCE else "the reference trainer reads no such variable"
    if re.fullmatch(r"([A-Z][a-z]+){2,}", span):
        return "" if span in ALERTS else "no such rule"
    if span.startswith("gyrostat_"):
        return "" if span in EXPOSED else "no such metric"
    return "" if span in KNOBS | TOLD else "no knob, series, setting or format of that name"


@each_row
def test_what_a_row_names_is_there(row: tuple[str, ...]) -> None:
    """Paths, commands, options, rules, metrics, knobs and series exist; so do the pages and places that are linked."""
    where = row[4]
    assert not {span: why for span in spans(where) if (why := absent(span))}
    for target, anchor in re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", where):
        page = (ROOT / "docs" / target).resolve()
        assert page.is_file(), target
        titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@each_row
def test_a_row_says_yes_part_or_no_and_why(row: tuple[str, ...]) -> None:
    """The sentence, its meaning, a word, and where it is; what is said to be there names something."""
    _, sentence, english, word, where = row
    assert word in ("yes", "part", "no") and sentence.strip() and where.strip() and english.isascii()
    assert word != "yes" or "`" in where or "](" in where or re.search(r"\bas [AB]\d+", where)


def test_the_rows_are_whole_and_counted() -> None:
    """Every row of the page is read by these tests, and none is missing between two."""
    assert len(ROWS) == len(re.findall(r"^\| [AB]\d+ ", TEXT, re.MULTILINE))
    for letter in "AB":
        mine = [int(row[0][1:]) for row in ROWS if row[0][0] == letter]
        assert mine == list(range(1, len(mine) + 1)) and len(mine) >= 30
    assert {ref for row in ROWS for ref in re.findall(r"\bas ([AB]\d+)", row[4])} <= {row[0] for row in ROWS}
