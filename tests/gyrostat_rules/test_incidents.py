"""Incidents: one cause is one incident, it is dated right, and none is lost or opened twice."""

import pytest
from run_story import NAN, Story, healthy_run

from gyrostat_rules.entries import EntryKind
from gyrostat_rules.incidents import fold
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule, RulePack
from gyrostat_rules.state import Alert, State

TWO = RulePack(
    "two",
    (
        Rule("Low", "nonfinite", None, "critical", incident="entropy"),
        Rule("High", "nonfinite", None, "critical", incident="nonfinite"),
        Rule("Dead", "exit", None, "critical", incident="crash"),
    ),
    (),
)


def firing(rule: str, step: int) -> Alert:
    """An alert that fires."""
    return Alert(rule, {"role": "trainer", "rank": "0"}, "firing", step, 0.0, step, step, 1.0, "why")


def folded(*alerts: Alert) -> State:
    """The state after alerts came one a step."""
    state = State(step=5)
    for alert in alerts:
        state.alerts[alert.rule] = alert
        fold(state, Moment(0.0, 1, TWO, (), alert.last_step))
    return state


def test_many_ranks_are_one_incident() -> None:
    """Eight ranks poisoned in one step are one cause, one incident, one page."""
    story = healthy_run(act=False, world=8)
    story.at += 1.0
    story.batch(*(story.record(21, r, loss=NAN) for r in range(8)))
    assert len(story.incidents) == 1
    assert len(story.incident.alerts) == 8


def test_the_graver_cause_leads() -> None:
    """An incident opened for entropy is one of non-finite values once those come, while nothing has been done."""
    state = folded(firing("Low", 5), firing("High", 6))
    assert [(i.kind, i.onset) for i in state.incidents] == [("nonfinite", 5)]


def test_the_milder_cause_follows() -> None:
    """What is less grave joins and changes nothing of what the incident is said to be."""
    state = folded(firing("High", 5), firing("Low", 6))
    assert [(i.kind, i.alerts) for i in state.incidents] == [("nonfinite", ["High", "Low"])]


def test_apart_stays_apart() -> None:
    """A crash is never folded into numbers, nor numbers into a crash."""
    state = folded(firing("High", 5), firing("Dead", 5))
    assert [i.kind for i in state.incidents] == ["nonfinite", "crash"]


def test_a_stopped_incident_is_not_opened_again_by_its_own_alert() -> None:
    """Where nothing more may be tried, a NaN in every step is one incident that is a person's, not one a step."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.command("deny", action=story.action.id, by="Ada")
    for step in range(22, 60):
        story.applied(step)
    assert [i.state for i in story.incidents] == ["stopped"]


def test_a_stopped_incident_that_flickers_is_still_one() -> None:
    """A NaN in every third step after the stop is the same trouble."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.command("deny", action=story.action.id, by="Ada")
    for step in range(22, 80):
        story.step(step, **({"loss": NAN} if step % 3 == 0 else {}))
    assert len(story.incidents) == 1


def test_after_a_new_life_the_same_cause_is_news() -> None:
    """A person who starts the run anew after a stop is told when it fails again, and the ladder begins anew."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.command("deny", action=story.action.id, by="Ada")
    story.begin(life="life-b")
    story.step(22)
    story.applied(23)
    assert [i.state for i in story.incidents] == ["stopped", "held"]


def test_the_onset_moves_back_when_it_comes_earlier_after_a_rollback() -> None:
    """After a rollback the poison shows two steps sooner: a checkpoint between the two is no target."""
    story = healthy_run()
    story.applied(21)
    story.ack(step=22)
    story.steps(16, 17).checkpoint(18, segment=1)
    story.step(18)
    story.applied(19)
    assert story.incident.onset == 19
    story.checkpoint(20, segment=1)
    assert story.action.arguments["step"] in (10, 18)


def test_what_is_open_is_never_forgotten() -> None:
    """Sixty stalls in one night push the history on, but an incident that waits for a person stays."""
    story = healthy_run(approvals=True)
    story.applied(21)
    first = story.incident.id
    for step in range(22, 82):
        story.tick(910.0)
        story.step(step)
    assert first in [i.id for i in story.incidents]
    assert len(story.incidents) < 60


def test_an_alert_that_never_cleared_reopens_what_was_resolved() -> None:
    """With keep_firing_for an alert outlasts its incident; when it is bad again that is an incident again."""
    pack = """\
pack: keep
groups:
  - name: g
    rules:
      - alert: P
        detector: nonfinite
        with: {classes: [poison], confirmed: true}
        severity: critical
        incident: nonfinite
        keep_firing_for: 200 steps
playbooks:
  - incident: nonfinite
    cooldown: 0
    rungs:
      - {remedy: skip_data, horizon: 3, irreversible: true}
      - {remedy: page}
"""
    story = Story(pack=pack).begin().steps(1, 5)
    story.skipped(6)
    story.skipped(7)
    story.ack(step=8)
    story.steps(8, 15)
    assert story.incident.state == "resolved"
    story.skipped(16)
    story.skipped(17)
    assert len(story.incidents) == 2


@pytest.mark.parametrize("end", ["stopped", "resolved"])
def test_each_change_of_an_incident_is_told(end: str) -> None:
    """The last state told of an incident is the state it is in: a page shows what is."""
    story = healthy_run(approvals=end == "stopped")
    story.applied(21)
    if end == "stopped":
        story.command("deny", action=story.action.id, by="Ada")
    else:
        story.ack(step=22)
        story.steps(16, 40)
    assert story.told(EntryKind.INCIDENT)[-1].state == story.incident.state == end


def test_a_rank_that_runs_ahead_is_the_same_cause() -> None:
    """Its steps are newer than those that complete later: still one incident, told once, and no second ladder."""
    story = Story(world=2).begin(procedures=())
    for step in range(1, 11):
        story.step(step)
    for step in range(11, 16):
        story.batch(story.record(step, 1, loss=NAN))
    for step in (11, 12):
        story.batch(story.record(step, 0))
    story.bye(1)
    for step in range(13, 16):
        story.batch(story.record(step, 0))
    assert len(story.incidents) == 1
