"""The trace of an incident: its parts and their times, ids that a restart gives again, and what ends when it ends."""

from collections.abc import Sequence

import pytest
from entry_runs import FIRED, KEY, action, alert, entry, incident, mended

from gyrostat_exporters.spans import Span, number, short, span_id, trace_id
from gyrostat_exporters.trail import Trail
from gyrostat_rules.entries import Entry


def heard(entries: Sequence[Entry], trail: Trail | None = None, births: dict[str, float] | None = None) -> list[Span]:
    """All spans of these entries."""
    trail = trail or Trail("r")
    return [span for one in entries for span in trail.hear(one, births or {})]


def told(spans: Sequence[Span]) -> list[tuple[str, float, float, str | None]]:
    """Name, seconds since 1000, and fault of each."""
    return [(s.name, s.since - 1000, s.until - 1000, s.fault and s.fault[:20]) for s in spans]


def test_each_part_comes_out_when_it_ends() -> None:
    """With its times: waiting for approval is the decision's, the answer the directive's, the proof the probation's."""
    assert told(heard(mended())) == [
        ("decision skip_data", 4, 4, None),
        ("decision turn", 5, 8, None),
        ("ack trainer/0", 8, 10, ""),
        ("ack trainer/1", 8, 11, "i0001.2 refused"),
        ("directive turn", 8, 12, ""),
        ("alert Poison", 1, 13, None),
        ("probation turn", 12, 14, "i0001.2 ineffective"),
        ("decision rollback", 16, 17, None),
        ("ack trainer/0", 17, 18, ""),
        ("directive rollback", 17, 19, ""),
        ("probation rollback", 19, 20, ""),
        ("incident nonfinite", 1, 21, ""),
    ]


def test_one_trace_with_the_incident_above_all() -> None:
    """Acks below their directive, all else below the incident; no span twice; each move of the incident an event."""
    spans = heard(mended())
    (root,) = [s for s in spans if not s.parent]
    directives = {s.id for s in spans if s.name.startswith("directive")}
    assert {s.trace for s in spans} == {trace_id("r", "i0001", FIRED)} and len({s.id for s in spans}) == len(spans)
    assert {s.parent for s in spans if s.name.startswith("ack")} == directives
    assert all(s.parent == root.id for s in spans if not s.name.startswith("ack") and s is not root)
    assert [e.name for e in root.events] == ["open", "held", "acting", "probation", "open", "probation", "resolved"]


@pytest.mark.parametrize("killed_at", range(len(mended())))
def test_a_restart_at_any_entry_gives_the_same(killed_at: int) -> None:
    """It hears again what goes on needs, and goes on: the same spans by the same ids, none twice, none missing."""
    entries = mended()
    first = Trail("r")
    before = heard(entries[:killed_at], first)
    again = [one.id for one in entries].index(first.needed) if first.needed else killed_at
    second = Trail("r")
    heard(entries[again:killed_at], second)
    after = heard(entries[killed_at:], second)
    assert before + after == heard(entries)


def test_another_pod_knows_it_by_the_ledger() -> None:
    """Its journal begins anew in the middle; the same trace, for the engine knows when the incident fired."""
    entries = mended()
    early, late = heard(entries[:16]), heard(entries[16:], births={"i0001": FIRED})
    assert {s.trace for s in early + late} == {trace_id("r", "i0001", FIRED)}
    assert [s.name for s in late][-1] == "incident nonfinite" and late[-1].id == span_id(late[-1].trace, "incident")


def test_given_up_is_ill_and_ends_all() -> None:
    """A decision that waits, a directive without an answer and an alert that still fires end with it."""
    entries = [
        *mended()[:3], action(4, "i0001.1", "planned", "turn"), action(5, "i0001.1", "sent", "turn"),
        action(6, "i0001.2", "planned", "page"), incident(7, "stopped", "nobody answered"),
    ]  # fmt: skip
    assert told(heard(entries)) == [
        ("decision turn", 4, 5, None),
        ("alert Poison", 1, 7, None),
        ("directive turn", 5, 7, "no answer before the"),
        ("decision page", 6, 7, None),
        ("incident nonfinite", 1, 7, "nobody answered"),
    ]


def test_what_comes_late_joins_the_trace() -> None:
    """An answer after the end; the incident is not told again by what is said of it later."""
    trail = Trail("r")
    heard(mended(), trail)
    late = heard([action(22, "i0001.3", "applied", by="trainer/1"), incident(23, "stopped", "x joins: y")], trail)
    assert [(s.name, s.trace) for s in late] == [("ack trainer/1", trace_id("r", "i0001", FIRED))]
    assert trail.needed == ""


def test_an_alert_that_joins_is_told_with_it() -> None:
    """By the words that the engine has for it; one that never fired is not, nor one that joined nothing."""
    other, third = "Spike{rank=0,role=trainer}", "Odd{rank=0,role=trainer}"
    entries = [
        alert(1, "firing"), alert(1, "firing", other), alert(1, "pending", third),
        incident(2, "open", alerts=[KEY]), incident(3, "open", f"{other} joins: high"), incident(4, "resolved"),
    ]  # fmt: skip
    assert sorted(s.name for s in heard(entries)) == ["alert Poison", "alert Spike", "incident nonfinite"]


def test_an_alert_that_comes_again_is_told_again() -> None:
    """Each time that it fired is a span of its own."""
    entries = [
        alert(1, "firing"), incident(2, "open", alerts=[KEY]), alert(3, "resolved"), alert(4, "pending"),
        alert(5, "firing"), incident(6, "resolved"),
    ]  # fmt: skip
    assert [t[:3] for t in told(heard(entries))[:2]] == [("alert Poison", 1, 3), ("alert Poison", 4, 6)]


def test_what_was_taken_back_has_no_decision() -> None:
    """An undo is sent at once, by itself."""
    entries = [incident(1, "open"), action(2, "i0001.1", "sent", "undo"), action(3, "i0001.1", "done", "undo")]
    assert [s.name for s in heard(entries)] == ["directive undo"]


def test_a_clock_that_is_set_back_makes_nothing_negative() -> None:
    """A span ends when it began, at the earliest."""
    back = [one._replace(at=2000.0 - one.step) for one in mended()]
    assert all(s.until >= s.since for s in heard(back))


def test_entries_are_placed_where_they_belong() -> None:
    """A log leads to the trace: of the incident, its actions and its alerts; not of anything else."""
    trail = Trail("r")
    heard(mended()[:8], trail)
    trace = trace_id("r", "i0001", FIRED)
    assert {trail.place(one)[0] for one in mended()[:8]} == {trace}
    assert trail.place(entry(9, "run", "trainer/0", "began")) == (0, 0)
    assert trail.place(alert(9, "firing", "Other")) == (0, 0)


def test_many_incidents_and_alerts_are_bounded() -> None:
    """A run of weeks does not grow in memory; what goes on is never forgotten."""
    trail = Trail("r")
    for n in range(3000):
        for state in ("open", "resolved"):
            trail.hear(incident(n, state)._replace(subject=f"i{n:04d}"), {})
        trail.hear(alert(n, "firing", f"A{{n={n}}}"), {})
    trail.hear(incident(1, "open")._replace(subject="i9999"), {})
    assert len(trail._cases) <= 66 and len(trail._alerts) <= 2048 and trail.needed == "00000001.0"


def test_markup_and_control_characters_are_text() -> None:
    """A name out of a log commands no terminal; markup stays as it is."""
    rude = incident(4, "resolved", "<script>\x1b[31m\n")
    (span,) = heard([incident(1, "open"), rude])
    assert dict(span.said)["gyrostat.text"] == "<script>?[31m " and span.fault == ""


def test_ids_differ_where_anything_does() -> None:
    """Runs of one name on other days, incidents, parts: no two by one id, and none is 0."""
    ids = {trace_id(run, name, at) for run in ("r", "强化") for name in ("i0001", "i0002") for at in (1.0, 2.0)}
    assert len(ids) == 8 and all(0 < one < 2**128 for one in ids)
    assert span_id(1, "ab", "c") != span_id(1, "a", "bc") != span_id(2, "a", "bc")


def test_texts_and_numbers_fit() -> None:
    """A word of any length is cut; a number that 64 bits do not hold is text."""
    assert len(short("x" * 5000)) == 1000 and short("x") == "x"
    assert number(2**63 - 1) == 2**63 - 1 and number(-(2**63)) == str(-(2**63)) and number(10**30) == str(10**30)
