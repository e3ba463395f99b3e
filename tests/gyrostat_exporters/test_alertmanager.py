"""Alerts for Alertmanager: one group an incident, labels that stay, and whatever people wrote in them as text."""

import json
import math
from typing import Any

import pytest
from case_runs import action, alert, ended, incident, run, told

from gyrostat_exporters.alertmanager import Alert, Links, alerts, body, runbook_url
from gyrostat_exporters.cases import Case
from gyrostat_exporters.view import nothing
from gyrostat_rules.state import State

LINKS = Links("http://page:9466", "https://wiki/runbooks/")
BAD = "<b>{{ .Labels }}</b> <!channel>\x1b[31m\nöl"


def of(state: State, *entries: Any, name: str = "r", links: Links = LINKS) -> list[Alert]:
    return list(alerts(nothing(name, "act", "")._replace(cases=told(state, *entries)), links))


def test_an_incident_is_an_alert() -> None:
    """Its rule leads; what a pack labels is there too, and whatever changes stands in annotations."""
    (one,) = of(run(incident("acting", actions=[action("allow", number=1)]), poison=alert()))
    assert dict(one.labels) == {
        "alertname": "Poison", "run": "r", "incident": "i0001", "kind": "nonfinite", "severity": "critical",
        "fault": "nan_inf", "team": "rl",
    }  # fmt: skip
    assert dict(one.annotations) == {
        "summary": "r: nonfinite since step 9, acting: trainer 0 at 10", "description": "it is.", "state": "acting",
        "done": "rollback (sent, not answered yet): to step 5", "runbook": "nonfinite",
        "runbook_url": "https://wiki/runbooks/nonfinite.md",
    }  # fmt: skip
    assert (one.since, one.over, one.page) == (900.0, None, "http://page:9466")


def test_its_labels_stay_until_it_is_over() -> None:
    """Another label would be another alert, and the first would read as over; the mark tells that there is news."""
    states = [run(incident(s, held_until=math.inf)) for s in ("open", "acting", "probation", "held")]
    found = [of(state)[0] for state in states] + of(run(incident("resolved")), ended("i0001"))
    assert len({one.labels for one in found}) == 1 and len({one.mark for one in found}) == 5
    assert [one.over for one in found] == [None, None, None, None, 4990.0]


def test_who_is_needed_is_an_alert_beside_it() -> None:
    """In the same group; it says what is wanted, and is gone when the agent goes on."""
    waits = incident("held", held_until=9e9, actions=[action("hold")])
    own, person = of(run(waits))
    assert dict(person.labels)["alertname"] == "PersonNeeded" and person.incident == own.incident == "i0001"
    assert "gyrostat approve i0001.1" in dict(person.annotations)["description"]
    assert len(of(run(incident("acting")))) == 1


def test_a_critical_alert_keeps_its_rules_labels() -> None:
    """Rank and role, and no incident."""
    (one,) = of(run(one=alert("Lone", incident="")))
    assert dict(one.labels) | {"role": "trainer", "rank": "0", "alertname": "Lone"} == dict(one.labels)
    assert one.incident == "" and dict(one.annotations)["runbook_url"] == "https://wiki/lone"


def test_what_people_wrote_is_text() -> None:
    """In one line, without what commands a terminal; markup is neither lost nor obeyed here."""
    state = run(incident("open", why=BAD), poison=alert())
    (one,) = of(state, name=BAD)
    labels, said = dict(one.labels), dict(one.annotations)
    assert labels["run"] == "<b>{{ .Labels }}</b> <!channel>?[31m öl" and "{{ .Labels }}" in said["description"]
    assert json.loads(body([one], 2000.0).decode())[0]["labels"]["run"] == labels["run"]


def test_names_of_labels_are_as_alertmanager_takes_them() -> None:
    """A pack's may be anything; ours are not overruled by them."""
    named = (("a-b", "1"), ("9", "2"), ("run", "x"), ("empty", " "))
    case = Case("", "R", "", "critical", "", named, "firing", 1.0, None, 3, "", "y" * 5000)
    (one,) = alerts(nothing("r", "act", "")._replace(cases=(case,)))
    labels = dict(one.labels)
    assert (labels["a_b"], labels["_9"], labels["run"]) == ("1", "2", "r") and "empty" not in labels
    assert len(dict(one.annotations)["description"]) == 1000


@pytest.mark.parametrize("at", [math.nan, math.inf, -1.0, 1e300], ids=str)
def test_a_time_that_is_none_is_a_time(at: float) -> None:
    """What a ledger or a trainer calls time may be anything; the post is a good one all the same."""
    one = Alert((("alertname", "A"),), (), at, None)
    assert json.loads(body([one], at))[0]["startsAt"].endswith("Z")


def test_the_body_says_until_when() -> None:
    """What goes on ends later unless it is told again, what is over when it was; the note is for what goes on."""
    going, over = Alert((("a", "1"),), (), 900.0, None, "http://p"), Alert((("a", "2"),), (), 900.0, 950.0)
    first, second = json.loads(body([going, over], 1240.0, "the agent has ended"))
    assert first == {
        "labels": {"a": "1"}, "annotations": {"agent": "the agent has ended"}, "generatorURL": "http://p",
        "startsAt": "1970-01-01T00:15:00.000Z", "endsAt": "1970-01-01T00:20:40.000Z",
    }  # fmt: skip
    assert second["endsAt"] == "1970-01-01T00:15:50.000Z" and second["annotations"] == {}


@pytest.mark.parametrize(
    "runbook, base, url",
    [
        ("nonfinite", "https://w/r", "https://w/r/nonfinite.md"),
        ("https://x/y", "https://w/r", "https://x/y"),
        ("team/a.html#top", "https://w/r/", "https://w/r/team/a.html#top"),
        ("nonfinite", "", ""),
        ("", "https://w/r", ""),
        ("javascript:alert(1)", "https://w/r", "https://w/r/javascript%3Aalert%281%29.md"),
        ("http://[", "https://w", "https://w/http%3A//%5B.md"),
    ],
    ids=["name", "own", "relative", "no base", "none", "script", "no url"],
)
def test_where_a_runbook_is(runbook: str, base: str, url: str) -> None:
    """The rule's own address, or its name below the base, and never anything but a page."""
    assert runbook_url(runbook, base) == url
