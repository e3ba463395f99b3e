"""Alertmanager: a run's cases as alerts of its v2 API, and the body of a post of them. Pure; others send it.

An alert is known by its labels, so what changes while it goes on (state, reason, what was done) stands in annotations.
An incident is one group, by its label ``incident``: itself, and beside it PersonNeeded while it waits for somebody.
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from gyrostat.wire.fields import clean
from gyrostat_exporters.cases import Case
from gyrostat_exporters.view import View
from gyrostat_rules.incidents import STOPPED
from gyrostat_rules.pack import Severity

PERSON = "PersonNeeded"
_LABEL, _TEXT, _DEEDS = 200, 1000, 8  # characters of a label's value and of an annotation; actions that are named
_LAST = 4102444800.0  # 2100: what a trainer or a ledger calls time may be anything


class Links(NamedTuple):
    """Where people look further: the agent's page, and the folder of the runbooks; '' where there is none."""

    page: str = ""
    runbooks: str = ""


NOWHERE = Links()


class Alert(NamedTuple):
    """One alert; ``over`` None while it goes on. Times are Unix seconds. ``mark`` differs where it is worth telling."""

    labels: tuple[tuple[str, str], ...]
    annotations: tuple[tuple[str, str], ...]
    since: float
    over: float | None
    page: str = ""
    mark: str = ""

    @property
    def incident(self) -> str:
        """The incident that it is of, '' for none."""
        return dict(self.labels).get("incident", "")


def alerts(view: View, links: Links = NOWHERE) -> tuple[Alert, ...]:
    """What Alertmanager should know of this run now."""
    found = [_alert(view.run, case, links) for case in view.cases]
    found += [_person(view.run, case, links) for case in view.cases if case.person]
    return tuple(found)


def body(given: Iterable[Alert], until: float, note: str = "") -> bytes:
    """JSON for POST /api/v2/alerts; what goes on ends at ``until`` (Unix seconds) unless it is told again by then."""
    return json.dumps([_plain(one, until, note) for one in given]).encode()


def _plain(one: Alert, until: float, note: str) -> dict[str, object]:
    notes = {"agent": note} if note and one.over is None else {}
    link = {"generatorURL": one.page} if one.page else {}
    return {
        "labels": dict(one.labels), "annotations": {**dict(one.annotations), **notes}, "startsAt": _time(one.since),
        "endsAt": _time(until if one.over is None else max(one.over, one.since)), **link,
    }  # fmt: skip


def _time(at: float) -> str:
    at = min(max(at, 0.0), _LAST) if at == at else 0.0
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _alert(run: str, case: Case, links: Links) -> Alert:
    ours = {
        "alertname": case.rule or case.kind, "run": run, "incident": case.id, "kind": case.kind,
        "severity": case.severity, "fault": case.fault,
    }  # fmt: skip
    named = {_name(name): value for name, value in case.labels}
    mark = "\n".join((case.state, case.waits, *case.done) if case.id else (case.state,))
    return Alert(_pairs({**named, **ours}, _LABEL), _said(run, case, links), case.since, case.over, links.page, mark)


def _person(run: str, case: Case, links: Links) -> Alert:
    """The one that wakes somebody; it ends when the agent goes on, and the incident's own goes on with it."""
    labels = {
        "alertname": PERSON, "run": run, "incident": case.id, "kind": case.kind, "severity": Severity.CRITICAL,
        "rule": case.rule,
    }  # fmt: skip
    return Alert(_pairs(labels, _LABEL), _said(run, case, links), case.since, None, links.page, case.state + case.waits)


def _said(run: str, case: Case, links: Links) -> tuple[tuple[str, str], ...]:
    what = f"{case.kind} since step {case.onset}" if case.id else f"{case.rule} since step {case.onset}"
    said = {
        "summary": f"{run}: {what}, {case.state}{': ' if case.summary else ''}{case.summary}",
        "description": " ".join(filter(None, (_sentence(case.why), _asked(case)))),
        "done": "; ".join(case.done[-_DEEDS:]) or ("nothing" if case.id else ""),
        "state": case.state if case.id else "",
        "silenced": case.silenced,
        "runbook_url": runbook_url(case.runbook, links.runbooks),
        "runbook": "" if "/" in case.runbook else case.runbook,
    }
    return _pairs(said, _TEXT)


def _sentence(why: str) -> str:
    return f"{why.rstrip('.')}." if why else ""


def _asked(case: Case) -> str:
    """What a person is asked for."""
    if case.waits:
        return f"It waits for a word: gyrostat approve {case.waits}, or deny."
    if case.over is None and case.state == STOPPED:
        return "The agent does nothing more about it: a person is needed."
    return ""


def runbook_url(runbook: str, base: str) -> str:
    """The page of a rule's runbook: its own address, or its name below ``base``; '' where neither leads anywhere."""
    if _scheme(runbook) in ("http", "https"):
        return runbook
    if not base or not runbook:
        return ""
    name, _, place = runbook.partition("#")
    file = name if "." in name.rpartition("/")[2] else f"{name}.md"
    return f"{base.rstrip('/')}/{quote(file.lstrip('/'))}{'#' if place else ''}{quote(place)}"


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


def _name(name: str) -> str:
    """As Alertmanager takes a label's name."""
    name = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return name if not name[:1].isdigit() else f"_{name}"


def _pairs(said: Mapping[str, str], most: int) -> tuple[tuple[str, str], ...]:
    """In order and in one line each; what is empty is not there, as Alertmanager has it."""
    short = ((name, clean(value)) for name, value in sorted(said.items()))
    return tuple((name, v if len(v) <= most else f"{v[: most - 1]}…") for name, v in short if v.strip())
