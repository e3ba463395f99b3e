"""Silences: what a person wants to hear nothing of waits and is seen, until they said, and what is graver does not."""

import json
import math
from datetime import datetime, timezone
from typing import Any

import pytest
from run_story import Story, healthy_run, replay

from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.ledger import facts
from gyrostat_rules.silences import LONGEST

POISON = "alert=NonFinitePoison"
HOUR = 3600.0
TWO = """
pack: two
groups:
  - name: g
    rules:
      - alert: MoodLow
        detector: level
        with: {series: [mood], below: 0.5, needed: 1, of: 1}
        severity: critical
        incident: entropy
        labels: {team: evening}
      - {alert: LossGone, detector: nonfinite, severity: critical, incident: nonfinite}
playbooks:
  - {incident: nonfinite, rungs: [{remedy: skip_data, horizon: 5, irreversible: true}]}
  - {incident: entropy, rungs: [{remedy: page}]}
"""


def silence(story: Story, *matchers: str, **given: Any) -> str:
    """Silence something for an hour, or as ``given``; returns the answer."""
    words = {"matchers": "\n".join(matchers), "by": "ada", "reason": "new nodes", "seconds": str(HOUR), **given}
    story.command("silence", **{k: v for k, v in words.items() if v is not None})
    return story.told(EntryKind.COMMAND)[-1].text


def low_mood(story: Story, step: int, **values: float) -> Story:
    """A step whose mood pages."""
    story.step(step, mood=0.1, **values)
    return story


def paged(story: Story) -> list[str]:
    return [e.subject for e in story.told(EntryKind.ACTION, "paged")]


def utc(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


# -- what it holds, and for how long -------------------------------------------------------------------


def test_what_is_silenced_waits_and_goes_on_by_itself() -> None:
    """The incident opens, says by whom it is held, and is acted on in the moment of the silence's end."""
    story = healthy_run()
    silence(story, POISON)
    ends = story.at + HOUR
    story.applied(21)
    assert (story.incident.state, story.sent()) == ("held", [])
    assert story.incident.why == f"silenced until {utc(ends)} by ada: new nodes (s0001)"
    story.at = ends - 1.0
    story.tick(0.0)
    assert story.incident.state == "held"
    story.tick(1.0)
    assert story.sent() == ["rollback"]


@pytest.mark.parametrize("days", [1, 30])
def test_a_silence_is_no_wait_for_an_answer(days: int) -> None:
    """However long it stands, the incident is not given up because nobody answered; then there is an hour for that."""
    story = healthy_run(approvals=True)
    silence(story, POISON, seconds=str(days * 24 * HOUR))
    ends = story.at + days * 24 * HOUR
    story.applied(21)
    for hour in range(1, 24 * days, 5):
        story.tick(ends - 24 * days * HOUR + hour * HOUR - story.at)
        assert story.incidents[0].state == "held"
    story.tick(ends - story.at)
    assert story.incidents[0].why.startswith("needs approval")
    story.tick(HOUR - 1.0)
    assert story.incidents[0].state == "held"
    story.tick(2.0)
    assert story.incidents[0].why.startswith("nobody answered: needs approval")


def test_it_ends_in_shadow_too_without_giving_up() -> None:
    """In mode shadow the silence is told before the mode, and an hour's silence is not the mode's hour."""
    story = healthy_run(act=False)
    silence(story, POISON, seconds=str(5 * HOUR))
    story.applied(21)
    story.tick(4 * HOUR)
    assert "silenced until" in story.incidents[0].why
    story.tick(HOUR)
    assert story.incidents[0].why == "mode is shadow"


def test_a_silenced_alert_fires_and_says_by_which() -> None:
    """Its entry is in the journal; so it is in one that fires in silence no more."""
    story = healthy_run()
    silence(story, POISON)
    story.applied(21)
    fired = [e for e in story.told(EntryKind.ALERT, "firing") if e.subject.startswith("NonFinitePoison")]
    assert fired and {e.data["silenced_by"] for e in fired} == {"s0001"}
    assert {a.silenced_by for a in story.engine.state.alerts.values() if a.rule == "NonFinitePoison"} == {"s0001"}
    story.command("unsilence", silence="s0001", by="bob")
    assert {a.silenced_by for a in story.engine.state.alerts.values()} == {""}


def test_a_page_is_quiet_too() -> None:
    """What asks a person asks nobody who has said that they know, and asks when they wanted to be asked again."""
    story = Story(pack=TWO).begin().steps(1, 5)
    silence(story, "alert=MoodLow")
    low_mood(story, 6)
    assert (story.incident.state, paged(story)) == ("held", [])
    story.tick(HOUR)
    assert paged(story) == ["i0001.1"]


def test_who_was_paged_and_says_so_is_not_given_up_on() -> None:
    """A silence after the page is an answer: the incident stays open until its end."""
    story = Story(pack=TWO).begin().steps(1, 5)
    low_mood(story, 6)
    silence(story, "alert=MoodLow", seconds=str(3 * HOUR))
    story.tick(2 * HOUR)
    assert (story.incident.state, paged(story)) == ("held", ["i0001.1"])
    story.tick(HOUR)
    assert story.incident.why == "nobody came: waits for a person"


def test_what_is_graver_and_not_meant_goes_through() -> None:
    """Entropy is silenced, a NaN is not."""
    story = Story(pack=TWO).begin().steps(1, 5)
    silence(story, "kind=entropy")
    low_mood(story, 6)
    low_mood(story, 7, loss=math.nan, step_applied=0.0)
    assert story.sent() == ["skip_data"] and not paged(story)


def test_one_alert_that_is_heard_is_enough() -> None:
    """An incident of two ranks, one of them silenced, is acted on."""
    story = healthy_run(world=2)
    silence(story, POISON, "rank=0")
    story.applied(21)
    assert story.incident.state == "held"
    story.batch(story.record(22, 0, loss=math.nan), story.record(22, 1, loss=math.nan))
    assert story.sent() == ["rollback"]


def test_what_is_under_way_is_finished_and_taken_back() -> None:
    """A silence begins nothing and breaks nothing off: a remedy that does not hold is undone in the midst of it."""
    turn = "{remedy: turn, horizon: 3, knobs: [{name: lr_scale, to: 0.5}]}"
    pack = TWO.replace("rungs: [{remedy: page}]", f"rungs: [{turn}, {{remedy: page}}]")
    story = Story(pack=pack).begin().steps(1, 5)
    low_mood(story, 6)
    silence(story, all="yes")
    story.ack(step=7)
    low_mood(story, 8)
    assert story.sent() == ["turn", "undo"]
    story.ack(step=9)
    low_mood(story, 10)
    assert (story.incident.state, paged(story)) == ("held", [])


def test_a_request_is_no_alarm() -> None:
    """Who asks to go back in a window of their own goes back."""
    story = healthy_run()
    silence(story, all="yes")
    story.command("rollback", to="10", by="ada")
    assert story.sent() == ["rollback"]


# -- windows -----------------------------------------------------------------------------------------------


def test_a_window_begins_and_ends_by_time_alone() -> None:
    """Before it all is heard; in it nothing is done; each turn is one line of history."""
    story = Story(pack=TWO).begin().steps(1, 5)
    begins = story.at + HOUR
    said = silence(story, all="yes", begins=str(begins))
    assert f"silenced everything from {utc(begins)} until {utc(begins + HOUR)}" in said
    low_mood(story, 6)
    assert paged(story) == ["i0001.1"]
    story.tick(HOUR)
    story.skipped(7)
    assert story.incident.kind == "nonfinite" and "silenced until" in story.incident.why
    story.tick(HOUR)
    assert story.sent() == ["skip_data"]
    assert [e.text for e in story.told(EntryKind.COMMAND)][-2:] == [
        f"s0001 begins: everything is silenced until {utc(begins + HOUR)}",
        "s0001 has ended: everything is heard again",
    ]


def test_ticks_in_which_nothing_changes_leave_no_trace() -> None:
    """Silences cost the journal nothing while they stand."""
    story = healthy_run()
    silence(story, POISON)
    story.applied(21)
    before = story.engine.snapshot()
    assert story.tick(60.0) == [] and not story.engine.changed
    assert story.engine.snapshot() == before


def test_the_one_that_ends_last_of_two_counts() -> None:
    """Two people silence the same; the earlier end wakes nobody."""
    story = healthy_run()
    silence(story, POISON)
    silence(story, "severity=critical", seconds=str(2 * HOUR), by="bob")
    story.applied(21)
    assert "by bob" in story.incident.why
    story.tick(HOUR + 60.0)
    assert story.sent() == []


@pytest.mark.parametrize(
    ("matchers", "held"),
    [
        (("alert=MoodLow",), True),
        (("kind=entropy", "severity=critical"), True),
        (("role=trainer", "rank=0"), True),
        (("team=evening",), True),
        (("team=morning",), False),
        (("alert=MoodLow", "rank=1"), False),
        (("severity=warning",), False),
        (("kind=nonfinite",), False),
    ],
    ids=str,
)
def test_all_matchers_must_fit(matchers: tuple[str, ...], held: bool) -> None:
    """The rule's name, its kind, how grave it is, and every label, of the rule's or of the alert's."""
    story = Story(pack=TWO).begin().steps(1, 5)
    silence(story, *matchers)
    low_mood(story, 6)
    assert (paged(story) == []) is held


# -- a person's word -----------------------------------------------------------------------------------------


def test_the_answer_says_what_it_did() -> None:
    """By whom, what, until when, why, its id, and how much of what fires now is meant."""
    story = healthy_run()
    assert silence(story, POISON).endswith("as s0001: new nodes; alerts that it fits now: 0")
    story.applied(21)
    said = silence(story, POISON, by="bob", seconds=str(2 * HOUR))
    assert (
        said
        == f"bob silenced {POISON} until {utc(story.at + 2 * HOUR)} as s0002: new nodes; alerts that it fits now: 1"
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"matchers": ""}, "one of the two"),
        ({"all": "yes"}, "one of the two"),
        ({"matchers": "NonFinitePoison"}, "is no matcher: write NAME=VALUE"),
        ({"matchers": "rank="}, "is no matcher"),
        ({"matchers": "1x=2"}, "is no matcher"),
        ({"matchers": "alert=NonFinitePoisn"}, "no alert is called 'NonFinitePoisn'"),
        ({"matchers": "kind=sadness"}, "no kind is called 'sadness': there are knobs"),
        ({"matchers": "severity=loud"}, "there are info, warning, critical"),
        ({"matchers": "rank=1\nrank=2"}, "rank is matched twice"),
        ({"matchers": "\n".join(f"l{n}=1" for n in range(21))}, "21 matchers"),
        ({"reason": ""}, "wants a reason"),
        ({"reason": " \n "}, "wants a reason"),
        ({"seconds": None}, "say until when"),
        ({"seconds": "nan"}, "say until when"),
        ({"seconds": "soon"}, "'soon' is no time"),
        ({"seconds": "inf"}, "'inf' is no time"),
        ({"seconds": "0"}, "that is over already"),
        ({"seconds": "-5"}, "that is over already"),
        ({"ends": "12"}, "that is over already"),
        ({"begins": "9000", "ends": "8000"}, "over before it begins"),
        ({"seconds": str(LONGEST + 1)}, "at most 30 days"),
        ({"begins": "4e7"}, "more than a year"),
        ({"ends": "1e300"}, "is no time"),
        ({"begins": "[]"}, "is no time"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_silence_is_refused(given: dict[str, Any], why: str) -> None:
    """With what is wrong in words; nothing is silenced by half."""
    story = healthy_run()
    said = silence(story, **{"matchers": POISON, **given})
    assert said.startswith("not done: ") and why in said
    assert not story.engine.state.silences


def test_what_is_written_is_one_short_line() -> None:
    """A name or a reason with line breaks, or a page long, breaks no list of silences."""
    story = healthy_run()
    silence(story, POISON, reason="new\nnodes \x1b[31m" + "x" * 999, by="a\nda")
    one = story.engine.state.silences["s0001"]
    assert one.by == "a da" and one.reason.isprintable() and len(one.reason) == 300


def test_there_is_a_most() -> None:
    """Who silences by a script gone wrong is told so."""
    story = healthy_run()
    for _ in range(100):
        assert "as s0" in silence(story, POISON)
    assert "100 silences stand already" in silence(story, POISON)


def test_unsilence_ends_it_now() -> None:
    """What waited goes on in the same moment; a second word finds nothing; the number is not used again."""
    story = healthy_run()
    silence(story, POISON)
    story.applied(21)
    story.command("unsilence", silence="s0001", by="ada")
    assert story.sent() == ["rollback"]
    story.command("unsilence", silence="s0001")
    assert story.told(EntryKind.COMMAND)[-1].text == "not done: silence 's0001' has ended already; standing now: none"
    silence(story, POISON)
    story.command("unsilence", silence="s0009")
    assert story.told(EntryKind.COMMAND)[-1].text == "not done: silence 's0009' is not known; standing now: s0002"


@pytest.mark.parametrize("name", ["", "s", "0001", "s" * 99, None, 7], ids=str)
def test_an_id_that_is_none_ends_nothing(name: object) -> None:
    """One line says so."""
    story = healthy_run()
    silence(story, POISON)
    story.command("unsilence", silence=name)
    assert "is not known" in story.told(EntryKind.COMMAND)[-1].text and story.engine.state.silences


# -- what outlives what --------------------------------------------------------------------------------------


def written(story: Story) -> dict[str, Any]:
    """The facts as a file gives them back."""
    return dict(json.loads(json.dumps(facts(story.engine.state), allow_nan=False)))


def test_a_silence_outlives_the_pod() -> None:
    """The incident that it holds too, and the next one gets a number of its own."""
    story = healthy_run()
    silence(story, POISON)
    story.applied(21)
    after = Story()
    after.command("ledger", **written(story))
    assert after.engine.state.silences == story.engine.state.silences
    assert (after.incident.state, after.incident.held_until) == ("held", math.inf)
    assert "as s0002" in silence(after, POISON)


@pytest.mark.parametrize(
    "span", [[0.0, LONGEST + 1], [5.0, 5.0], [-1.0, 1.0], [1e15, 1e15 + 9], [0.0, {"~": "inf"}], [0.0, {"~": "nan"}]],
    ids=str,
)  # fmt: skip
def test_a_ledger_with_an_endless_silence_is_distrusted(span: list[Any]) -> None:
    """Whoever wrote it was no agent."""
    odd = {"s0001": ["s0001", [], *span, "eve", "so", True]}
    after = Story()
    after.command("ledger", **{**written(healthy_run()), "silences": odd})
    assert "cannot be read" in after.engine.state.settings.distrust and not after.engine.state.silences


def test_a_replay_is_the_same() -> None:
    """Snapshot and inputs give the same silences, in the same states."""
    story = healthy_run(approvals=True)
    silence(story, POISON)
    story.applied(21)
    story.tick(HOUR)
    engine, entries = replay(story.inputs)
    assert entries == story.entries and engine.snapshot() == story.engine.snapshot()
    assert Engine.restore(engine.snapshot()).snapshot() == engine.snapshot()
