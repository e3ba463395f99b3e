"""Runbooks: the pages for the one on call, and which of them a name means.

Called by ``gyrostat runbook``. The pages are data of ``gyrostat_rules``; a page says in its bullets which alerts it is
for. Does not know the rules of a pack of somebody's own: such a rule names its page itself.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.errors import SetupError
from gyrostat_rules.faults import FAULTS
from gyrostat_rules.pack import Rule, RulePack

RULE, PROMETHEUS = "rule", "prometheus"
_SEVERITIES = ("critical", "warning", "info")
_TOLD = re.compile(r"^- `(\w+)` \((Prometheus, )?(critical|warning|info)\b", re.MULTILINE)
_NEAR = 3


class Told(NamedTuple):
    """An alert that a page is for: of a ``rule`` of the packs, or of the ``prometheus`` rules in dashboards/."""

    alert: str
    severity: str
    of: str


class Runbook(NamedTuple):
    """A page: its file's name without .md, the title, the alerts in its order, the text as it is written."""

    name: str
    title: str
    told: tuple[Told, ...]
    text: str


class Found(NamedTuple):
    """The page that a name means, what the name is, and further pages where a fault is told by alerts of several."""

    page: Runbook
    what: str
    also: tuple[str, ...] = ()


def runbooks() -> dict[str, Runbook]:
    """Every page that comes with Gyrostat, by name."""
    folder = resources.files("gyrostat_rules") / "runbooks"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".md")), key=lambda f: f.name)
    return {f.name[:-3]: read(f.name[:-3], f.read_text(encoding="utf-8")) for f in files}


def read(name: str, text: str) -> Runbook:
    """A page from its text."""
    told = tuple(Told(alert, severity, PROMETHEUS if of else RULE) for alert, of, severity in _TOLD.findall(text))
    return Runbook(name, text.partition("\n")[0].lstrip("# ").strip(), told, text)


def find(name: str, pages: dict[str, Runbook], pack: RulePack) -> Found:
    """The page for a page's name, a playbook, an alert (its labels may follow it) or a fault; capitals do not count.

    Raises SetupError where there is none, with the names that are near.
    """
    wanted = name.strip().partition("{")[0].casefold()
    for kind, one in (*_pages(pages, pack), *_alerts(pages), *_faults(pages, pack.rules)):
        if kind.casefold() == wanted:
            return one
    raise SetupError(_unknown(name, wanted, pages))


def faults_of(page: Runbook, rules: Iterable[Rule]) -> tuple[str, ...]:
    """The faults that the page's rules tell, each once."""
    names = {told.alert for told in page.told if told.of == RULE}
    return tuple(dict.fromkeys(rule.fault for rule in rules if rule.alert in names and rule.fault))


def _pages(pages: dict[str, Runbook], pack: RulePack) -> Iterator[tuple[str, Found]]:
    kinds = {book.incident for book in pack.playbooks}
    return ((name, Found(page, "playbook" if name in kinds else "page")) for name, page in pages.items())


def _alerts(pages: dict[str, Runbook]) -> Iterator[tuple[str, Found]]:
    said = {RULE: "rule", PROMETHEUS: "Prometheus alert"}
    return ((told.alert, Found(page, said[told.of])) for page in pages.values() for told in page.told)


def _faults(pages: dict[str, Runbook], rules: Iterable[Rule]) -> Iterator[tuple[str, Found]]:
    """The gravest rule's page first; the others are named beside it."""
    graded = sorted((r for r in rules if r.fault), key=lambda r: _SEVERITIES.index(r.severity))
    for fault in FAULTS:
        names = list(dict.fromkeys(r.runbook_url for r in graded if r.fault == fault and r.runbook_url in pages))
        if names:
            yield fault, Found(pages[names[0]], "fault", tuple(names[1:]))


def _unknown(name: str, wanted: str, pages: dict[str, Runbook]) -> str:
    known = [*pages, *(told.alert for page in pages.values() for told in page.told), *FAULTS]
    if wanted in FAULTS:
        return f"{wanted}: {FAULTS[wanted]}; no rule that comes with Gyrostat tells it, so that it has no runbook"
    spelled = {one.casefold(): one for one in reversed(known)}
    near = [spelled[one] for one in difflib.get_close_matches(wanted, spelled, _NEAR)]
    meant = f"did you mean {' or '.join(near)}?" if near else "gyrostat runbook --list shows what there is"
    return f"no runbook for {clean(name)!r}: no page, playbook, alert or fault has that name; {meant}"
