"""The runbooks: one for every alert, whole, true to the packs, and no command in them that does not exist."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from written_commands import fault, fences, parts, spans, written

from gyrostat_agent.cli.options import builtin
from gyrostat_agent.runbooks import PROMETHEUS, RULE, Runbook, Told, runbooks
from gyrostat_exporters.metrics import COUNTER, NAMES
from gyrostat_rules.pack import Playbook
from gyrostat_rules.packfile import parse

ROOT = Path(__file__).resolve().parents[2]
PAGES = runbooks()
PACK = parse(builtin())
RULES = {rule.alert: rule for rule in PACK.rules}
BOOKS = {book.incident: book for book in PACK.playbooks}
SECTIONS = [
    "What it means", "Is it real", "What Gyrostat did, or would do", "How to check by hand", "What to do",
    "Whom to wake", "How to verify",
]  # fmt: skip
FOUNDING = {
    "nonfinite": r'grep -i "nan\|inf" train.log | tail -20',
    "entropy": "awk '{print $1,$NF}' entropy_log.txt | tail -50",
    "experts": "awk '{print $3}' expert_load.log | sort | uniq -c",
}
each_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


def prometheus(kind: str) -> dict[str, str]:
    """Alerts with their severities, or recording rules, of the Prometheus rules that are checked in."""
    found = {}
    for name in ("alerts", "fleet"):
        text = (ROOT / f"dashboards/prometheus/{name}.rules.yaml").read_text(encoding="utf-8")
        rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"] if kind in rule]
        found |= {rule[kind]: rule.get("labels", {}).get("severity", "") for rule in rules}
    return found


ALERTS = prometheus("alert")


def sections(page: Runbook) -> dict[str, str]:
    """The page's parts by their titles, in its order."""
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in page.text.split("\n## ")[1:]}


@each_page
def test_a_page_has_all_sections_in_one_order(page: Runbook) -> None:
    """At three in the morning the same thing stands at the same place, and nothing is left open."""
    assert list(sections(page)) == SECTIONS and page.text.startswith("# ")
    assert all(len(body.split()) >= 5 for body in sections(page).values())


def test_every_alert_has_its_page() -> None:
    """Each alert of the packs stands in a bullet of the page that its rule names, each of Prometheus in one page."""
    told = [(told.alert, told.of, page.name) for page in PAGES.values() for told in page.told]
    of_rules = [(alert, name) for alert, of, name in told if of == RULE]
    assert sorted(of_rules) == sorted((rule.alert, rule.runbook_url) for rule in PACK.rules)
    assert sorted(alert for alert, of, _ in told if of == PROMETHEUS) == sorted(ALERTS)


@pytest.mark.parametrize("told", [t for page in PAGES.values() for t in page.told], ids=lambda t: t.alert)
def test_an_alert_is_as_grave_as_its_page_says(told: Told) -> None:
    """Severity and the kind of incident in the bullet are those of the rule."""
    page = next(page for page in PAGES.values() if told in page.told)
    opens = re.search(rf"^- `{told.alert}` \([\w, ]+?(?:, opens \*(\w+)\*)?\):", page.text, re.MULTILINE)
    assert opens and told.alert not in {t.alert for t in page.told if t != told}
    if told.of == PROMETHEUS:
        assert (told.severity, opens[1]) == (ALERTS[told.alert], None)
    else:
        assert (told.severity, opens[1] or "") == (RULES[told.alert].severity, RULES[told.alert].incident)


@pytest.mark.parametrize("book", PACK.playbooks, ids=lambda book: book.incident)
def test_a_page_tells_the_ladder_of_its_playbook(book: Playbook) -> None:
    """The rungs and their knobs in the packs' order, what bounds them, and what waits for approval."""
    text = sections(PAGES[book.incident])["What Gyrostat did, or would do"]
    items = re.findall(r"^\d+\. (.+(?:\n {3}.+)*)", text, re.MULTILINE)
    assert [item.partition("`")[2].partition("`")[0] for item in items] == [rung.remedy for rung in book.rungs]
    every = {plan.name for known in PACK.playbooks for rung in known.rungs for plan in rung.knobs}
    for item, rung in zip(items, book.rungs, strict=True):
        assert set(spans(item)) & every == {plan.name for plan in rung.knobs}, item
    flat = " ".join(text.split())
    bounds = [tuple(map(int, pair)) for pair in re.findall(r"(\d+) actions in (\d+) steps", flat)]
    assert set(bounds) <= {(book.budget_actions, book.budget_steps)}
    ceilings = [tuple(map(int, pair)) for pair in re.findall(r"(\d+) incidents in (\d+) steps", flat)]
    assert set(ceilings) <= {(book.ceiling_incidents, book.ceiling_steps)}
    assert bounds or [rung.remedy for rung in book.rungs] == ["page"]


@pytest.mark.parametrize("name", sorted(set(PAGES) - set(BOOKS)))
def test_a_page_without_a_playbook_promises_nothing(name: str) -> None:
    """Where the packs do nothing the page says so, and lists no rungs."""
    text = sections(PAGES[name])["What Gyrostat did, or would do"]
    assert "Nothing but say so" in " ".join(text.split()) and not re.search(r"^\d+\. ", text, re.MULTILINE)
    assert not any(rule.incident for rule in PACK.rules if rule.runbook_url == name)


def test_the_page_of_incidents_has_every_ladder() -> None:
    """Its table is the packs' playbooks, no more and no fewer."""
    rows = re.findall(r"^\| \*(\w+)\* \| ([\w, ]+) \| \[(\w+)\]", PAGES["incidents"].text, re.MULTILINE)
    assert {kind: (rungs, page) for kind, rungs, page in rows} == {
        kind: (", ".join(rung.remedy for rung in book.rungs), kind) for kind, book in BOOKS.items()
    }


@each_page
def test_every_command_of_a_page_exists(page: Runbook) -> None:
    """A command that is copied is taken: ours by the real command line, others by a list of programs."""
    said = {line: [fault(words) for words in parts(line)] for line in written(page.text)}
    assert said and not {line: found for line, found in said.items() if any(found)}
    assert any(line.startswith("gyrostat ") for line in said)


@each_page
def test_what_is_fenced_is_a_script(page: Runbook) -> None:
    """The shell parses every block as it stands."""
    for block in fences(page.text, "sh"):
        found = subprocess.run(["bash", "-n"], input=block, capture_output=True, encoding="utf-8", timeout=20)
        assert (found.returncode, found.stderr) == (0, ""), block


@each_page
def test_what_a_page_names_is_there(page: Runbook) -> None:
    """Rules, kinds, metrics, series of Prometheus, other pages and docs."""
    named = {span for span in spans(page.text) if re.fullmatch(r"[A-Z][a-z]+([A-Z][a-z]+)+", span)}
    named |= set(_behind("alert=|explain |arm |disarm ", page.text))
    assert named - {"RULE"} <= {*RULES, *ALERTS}
    assert set(_behind("kind=", page.text)) - {"KIND"} <= set(BOOKS)
    exposed = {f"{name}_total" if said.kind == COUNTER else name for name, said in NAMES.items()}
    assert set(re.findall(r"\bgyrostat_[a-z_]+", page.text)) <= exposed
    assert set(re.findall(r"\bgyrostat:[a-z0-9_:]+", page.text)) <= set(prometheus("record"))
    assert set(re.findall(r"\]\((\w+)\.md\)", page.text)) <= set(PAGES)
    assert all((ROOT / path).is_file() for path in re.findall(r"\bdocs/\w+\.md", page.text))


@pytest.mark.parametrize("name", FOUNDING)
def test_the_founding_commands_are_kept(name: str) -> None:
    """The three commands that the founding documents give stand there word for word, and are said to be theirs."""
    assert FOUNDING[name] in "\n".join(fences(PAGES[name].text, "sh"))
    assert "founding document's own" in " ".join(PAGES[name].text.split())


def _behind(lead: str, text: str) -> Iterable[str]:
    commands = [line for line in written(text) if line.startswith("gyrostat ")]
    return (word for line in commands for word in re.findall(rf"(?:{lead})([A-Za-z]+)\b", line))
