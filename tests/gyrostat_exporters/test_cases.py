"""Cases: what on-call is told of, through every state of an incident; nothing is over by silence."""

import math

import pytest
from case_runs import KEY, NOW, action, alert, ended, incident, run, told

from gyrostat_exporters.cases import Endings
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.theirs import Silence

LONE = "Lone{rank=0,role=trainer}"


@pytest.mark.parametrize("state", ["open", "acting", "probation", "held", "stopped"])
def test_what_is_not_over_goes_on(state: str) -> None:
    """Whether its alert still fires or not: a remedy that is being watched has proved nothing yet."""
    for alerts in ({}, {"poison": alert()}):
        (case,) = told(run(incident(state, held_until=9e9), **alerts))
        assert (case.id, case.rule, case.state, case.over, case.since) == ("i0001", "Poison", state, None, 900.0)
        assert (case.severity, case.fault, case.kind, case.labels) == (
            "critical",
            "nan_inf",
            "nonfinite",
            (("team", "rl"),),
        )


def test_it_is_over_when_the_journal_says_so() -> None:
    """At the time at which it was resolved, out of the journal, so that a restart in between changes nothing."""
    (case,) = told(run(incident("resolved")), ended("i0001", at=4990.0))
    assert (case.state, case.over) == ("resolved", 4990.0)


def test_what_was_over_a_day_ago_is_told_no_more() -> None:
    """Nor what the journal no longer says when it was."""
    assert told(run(incident("resolved")), ended("i0001", at=NOW - 90000.0)) == ()
    assert told(run(incident("resolved"))) == ()


@pytest.mark.parametrize("how", ["bye", "exit 0", "exit 1", "signal 9"])
def test_a_run_that_has_ended_mends_nothing(how: str) -> None:
    """A trainer that is gone, well or ill, ends no incident, and neither does one that was given up."""
    for state in ("open", "probation", "stopped"):
        ill = run(incident(state))
        ill.processes["trainer/0"].ended = how
        assert [case.over for case in told(ill)] == [None]


def test_nobody_left_to_speak_is_no_end() -> None:
    """A state that knows no trainer at all, as after a ledger was taken up."""
    state = run(incident("stopped"))
    state.processes.clear()
    assert [case.over for case in told(state)] == [None]


@pytest.mark.parametrize(
    "changed, over",
    [
        ({}, False),
        ({"step": 40}, False),
        ({"life": "bbb"}, True),
        ({"life": "bbb", "poison": alert()}, False),
        ({"life": "bbb", "poison": alert(incident="i0002")}, True),
    ],
    ids=["as it was", "clean but nobody came", "begun anew", "still firing", "firing for another"],
)
def test_what_was_given_up_ends_when_somebody_has_seen_to_it(changed: dict[str, object], over: bool) -> None:
    """Clean steps are not enough: the reason may be one that no step shows."""
    (case,) = told(run(incident("stopped"), **changed))  # type: ignore[arg-type]
    assert (case.over is not None, case.person) == (over, not over)


@pytest.mark.parametrize("step, over", [(12, False), (29, False), (30, True)])
def test_what_was_denied_is_theirs_and_ends_with_clean_steps(step: int, over: bool) -> None:
    """20 of them, as for what was over by itself."""
    mine = incident("stopped", actions=[action("deny", reason="denied by ada")])
    assert (told(run(mine, step=step))[0].over is not None) is over


def test_a_run_that_was_taken_back_since() -> None:
    """What was given up in a segment that was left is over with it."""
    state = run(incident("stopped"))
    state.segment = 1
    assert told(state)[0].over == NOW


@pytest.mark.parametrize(
    "made, person, waits",
    [
        (incident("held", held_until=9e9, actions=[action("hold")]), True, "i0001.1"),
        (incident("held", held_until=9e9, actions=[action(outcome="done")]), True, ""),
        (incident("held", held_until=math.inf, actions=[action("hold")]), False, ""),
        (incident("acting", actions=[action("allow", number=1)]), False, ""),
        (incident("stopped"), True, ""),
    ],
    ids=["approval", "page", "shadow", "acting", "stopped"],
)
def test_who_is_needed(made: object, person: bool, waits: str) -> None:
    """A person where a word is wanted or nothing more is tried; nobody in mode shadow, which waits for ever."""
    (case,) = told(run(made))  # type: ignore[arg-type]
    assert (case.person, case.waits) == (person, waits)


def test_what_was_done_is_told() -> None:
    """What was sent, with what came of it, and what waits; what was passed by is not."""
    deeds = [action("deny"), action("allow", number=1, outcome="ineffective"), action("hold")]
    (case,) = told(run(incident("held", held_until=9e9, actions=deeds)))
    assert case.done == ("rollback (ineffective): to step 5", "rollback (waits: needs approval): to step 5")


def test_the_rules_own_sentence_is_filled() -> None:
    """With the labels of the alert that leads; nothing once that is gone."""
    assert told(run(incident("open"), poison=alert()))[0].summary == "trainer 0 at 10"
    assert told(run(incident("open")))[0].summary == ""


def test_a_critical_alert_that_opens_nothing_is_a_case_of_its_own() -> None:
    """While it fires; not while it is pending, explained by another, or no more than a warning."""
    (case,) = told(run(one=alert("Lone", incident="")))
    assert (case.id, case.rule, dict(case.labels)["rank"], case.since) == ("", "Lone", "0", 900.0)
    muted = alert("Lone")
    muted.muted_by = KEY
    for other in (alert("Lone", "pending"), alert("Warns"), alert("Unknown"), muted):
        assert told(run(one=other)) == ()


def test_it_is_over_when_its_rule_says_so() -> None:
    """By the journal's word, under the same labels; not by an older word once it fires again."""
    over = ended(LONE, kind=EntryKind.ALERT)
    (case,) = told(run(), over)
    (before,) = told(run(one=alert("Lone", incident="")))
    assert (case.over, case.labels, case.summary) == (4990.0, before.labels, "was odd")
    assert [c.over for c in told(run(one=alert("Lone", incident="")), over)] == [None]
    assert told(run(), over, ended(LONE, kind=EntryKind.ALERT, state="firing")) == ()


def test_a_silence_is_told_and_silences_no_more_than_the_agent() -> None:
    """It goes on: the Alertmanager has silences of its own."""
    state = run(incident("held", held_until=math.inf), poison=alert())
    state.alerts[KEY].silenced_by = "s0001"
    state.silences["s0001"] = Silence("s0001", (), 0.0, 9000.0, "ada", "new nodes", True)
    (case,) = told(state)
    assert case.over is None and case.silenced.endswith("by ada: new nodes")


def test_many_are_cut_to_those_that_go_on() -> None:
    """256 at most; what is over goes first."""
    many = [incident("open", id=f"i{n:04d}") for n in range(300)]
    found = told(run(*many, incident("resolved", id="x")), ended("x"))
    assert len(found) == 256 and all(case.over is None for case in found)
    endings = Endings()
    endings.hear(ended(f"i{n}") for n in range(1000))
    assert len(endings.entries) == 256 and "i999" in endings.entries
