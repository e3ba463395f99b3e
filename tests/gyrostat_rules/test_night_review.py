"""What a hostile reading of the deciding core has found: where parts that are right alone did harm together."""

import json
from typing import Any

import pytest
from run_story import CORE, KNOBS, NAN, Story, healthy_run

from gyrostat.wire import Ack
from gyrostat_rules import snapshot
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Answer, Pack
from gyrostat_rules.keeping import HOPEFUL, keep
from gyrostat_rules.ledger import facts
from gyrostat_rules.state import Incident

ASKING = """\
pack: asking
groups:
  - name: g
    rules:
      - alert: P
        detector: nonfinite
        with: {classes: [poison], confirmed: true}
        severity: critical
        incident: nonfinite
playbooks:
  - incident: nonfinite
    cooldown: 15
    blast_radius: {steps: 5}
    rungs:
      - {remedy: rollback, horizon: 5, irreversible: true}
      - {remedy: rollback, horizon: 5, irreversible: true}
"""


def older(incident: Incident) -> list[Any]:
    """An incident as the version before bills, hands and leaders wrote it into its ledger."""
    return snapshot.to_plain(incident)[:20]  # type: ignore[no-any-return]


def pod_lost(story: Story, pack: str = CORE, **changed: Any) -> Story:
    """The pod is gone and so is the run directory: a new agent reads the ledger, then the trainer says Hello."""
    written = {**facts(story.engine.state), **changed}
    after = Story(pack=pack, approvals=story.engine.state.settings.approvals)
    after.at, after.segment, after.life = story.at + 60.0, story.segment, story.life
    after.command("ledger", **written)
    return after.begin(life="life-b", last=written["next_directive"] - 1)


@pytest.mark.parametrize("answered", [False, True], ids=["acting", "probation"])
def test_an_incident_that_an_older_agent_acted_on_is_finished(answered: bool) -> None:
    """An agent upgraded in the midst of a repair sees it through: a bill without a begin must not end the agent."""
    story = healthy_run()
    story.applied(21)
    if answered:
        story.ack(step=22)
    after = pod_lost(story, incidents=[older(story.incident)])
    after.tick(40.0)
    after.checkpoint(10).checkpoint(15)
    after.steps(16, 60)
    assert after.incidents[0].state == "resolved"
    assert len(after.told(EntryKind.BILL)) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"begins": "1.9e11", "seconds": "1.9e11"},
        {"begins": "nan", "seconds": "nan"},
        {"ends": "1e400"},
        {"seconds": "0"},
        {"begins": "-1e300", "ends": "-1e300"},
    ],
    ids=["beyond all calendars", "no number", "infinite", "none", "long ago"],
)
def test_a_slip_in_a_time_ends_no_agent(given: dict[str, str]) -> None:
    """What a person mistypes is refused: a word that ends the agent would end it again at each start."""
    story = healthy_run()
    (told,) = story.command("silence", all="1", reason="x", **given)
    assert told.text.startswith("not done")


def test_an_approval_after_the_playbook_has_lost_the_rung_ends_no_agent() -> None:
    """Approved in the seconds before a new pod plans, under a pack with fewer rungs: answered, and nothing more."""
    story = healthy_run(pack=ASKING, approvals=True)
    story.applied(21)
    story.command("approve", action=story.action.id)
    story.ack(step=22)
    story.applied(16)
    story.applied(17)
    assert story.action.rung == 1 and story.incident.state == "held"
    shorter = ASKING.removesuffix("      - {remedy: rollback, horizon: 5, irreversible: true}\n")
    after = pod_lost(story, pack=shorter)
    (told,) = after.command("approve", action=story.action.id)
    assert "approved" in told.text
    after.tick(40.0)
    assert after.sent() == []


def test_waiting_for_a_word_fills_no_journal() -> None:
    """A run that goes on while a person is asked says so once, not at every step."""
    story = healthy_run(pack=ASKING)
    story.applied(21)
    story.steps(22, 24)
    told = len(story.told(EntryKind.ACTION, "hold"))
    story.applied(25)
    for step in range(26, 44):
        story.applied(step)
    assert (story.incident.state, len(story.told(EntryKind.ACTION, "hold"))) == ("held", told)


def test_a_hold_ends_though_its_reason_changes_at_each_step() -> None:
    """After an hour a person has not answered, whatever the reason reads by then."""
    story = healthy_run(pack=ASKING)
    for step in range(21, 60):
        story.at += 300.0
        story.applied(step)
    assert story.incidents[0].state == "stopped"


SLOW = ASKING.replace("blast_radius: {steps: 5}", "blast_radius: {steps: 500}")


def test_a_cooldown_of_slow_steps_gives_nobody_up() -> None:
    """Steps of an RL run take minutes: fifteen of them are longer than an hour, and nobody was asked anything."""
    story = healthy_run(pack=SLOW)
    story.applied(21)
    story.ack(step=22)
    story.steps(16, 27)
    assert story.incident.state == "resolved"
    for step in range(28, 30):
        story.at += 600.0
        story.applied(step)
    assert story.incident.why.endswith("cooldown is 15 steps")
    for step in range(30, 46):
        story.at += 600.0
        story.applied(step)
    assert story.sent() == ["rollback", "rollback"]


def test_another_s_proof_of_slow_steps_gives_nobody_up() -> None:
    """Who waits for another incident's probation is not asked anything either."""
    pack = SLOW.replace("horizon: 5", "horizon: 20").replace(
        "playbooks:",
        """\
      - alert: K
        detector: level
        with: {series: [other], above: 5, needed: 1, of: 1}
        severity: critical
        incident: entropy
playbooks:
  - {incident: entropy, rungs: [{remedy: turn, horizon: 5, knobs: [{name: lr_scale, times: 0.5}]}]}""",
    )
    story = healthy_run(pack=pack)
    story.applied(21)
    story.ack(step=22)
    for step in range(16, 38):
        story.at += 600.0
        story.step(step, **({"other": 9.0} if step > 33 else {}))
    assert [i.state for i in story.incidents] == ["probation", "held"]
    for step in range(38, 50):
        story.at += 600.0
        story.step(step, other=9.0)
    assert story.sent() == ["rollback", "turn"]


def test_a_silence_given_before_the_ledger_was_read_costs_no_other() -> None:
    """Two people silence two things, one before the pod was lost and one before the trainer spoke: both stand."""
    story = healthy_run()
    story.command("silence", matchers="kind=hardware", seconds="86400", reason="node is swapped", by="Ada")
    after = Story()
    after.at = story.at + 60.0
    after.command("silence", matchers="kind=entropy", seconds="86400", reason="warms up", by="Bo")
    after.command("ledger", **facts(story.engine.state))
    standing = after.engine.state.silences.values()
    assert sorted((one.by, *one.matchers) for one in standing) == [("Ada", "kind=hardware"), ("Bo", "kind=entropy")]
    assert len({one.id for one in standing}) == 2 == after.engine.state.silence_count


def test_a_rule_armed_under_another_pack_is_not_armed_in_the_next_pod() -> None:
    """The evidence was of the rule and the playbook as they were: a new pod with another pack must not act on it."""
    story = healthy_run(act=False, pack=SLOW)
    story.command("arm", rule="P", evidence="20 of 20 hits")
    assert story.engine.state.settings.armed
    same = Story(act=False, pack=SLOW)
    same.command("ledger", **facts(story.engine.state))
    assert list(same.engine.state.settings.armed) == ["P"]
    other = Story(act=False, pack=SLOW.replace("rollback, horizon: 5", "stop, horizon: 5"))
    other.command("ledger", **facts(story.engine.state))
    assert other.engine.state.settings.armed == {}
    assert "disarm" in [e.subject for e in other.told(EntryKind.COMMAND, "said")]


def test_a_long_silence_does_not_fill_the_ledger() -> None:
    """A plan that is made anew again and again while nobody may act is not remembered as often."""
    pack = ASKING.replace("{remedy: rollback, horizon: 5, irreversible: true}",
                          "{remedy: turn, horizon: 5, knobs: [{name: lr_scale, times: 0.5}]}")  # fmt: skip
    story = healthy_run(pack=pack)
    story.command("silence", all="1", seconds="1000000", reason="a week of work")
    story.applied(21)
    for step in range(22, 400):
        story.applied(step)
        knob = story.engine.state.trainer().knobs["lr_scale"]  # type: ignore[union-attr]
        story.begin(knobs=[knob._replace(value=0.9 - 0.001 * (step % 400))])
    assert len(story.incident.actions) < 40


@pytest.mark.parametrize("result", [Ack.APPLIED, Ack.REFUSED, Ack.FAILED])
def test_an_answer_to_nothing_is_no_answer_to_what_waits(result: str) -> None:
    """No directive has the number 0: an action that the mode holds is not done, nor answered, by an odd Ack."""
    story = healthy_run(act=False)
    story.skipped(21)
    story.skipped(22)
    story.batch(Answer("trainer", 0, story.life, Ack(0, story.action.id, result, 22)))
    assert [(a.id, a.answers) for a in story.incident.actions] == [("i0001.1", {})]


def test_what_a_week_of_silence_keeps_is_bounded() -> None:
    """While an incident is open all that is verified is kept; one that waits for a long silence must fill no disk."""
    story = healthy_run()
    story.command("silence", all="1", seconds="1000000", reason="a week of work")
    story.applied(21)
    for step in range(22, 122):
        story.applied(step)
        story.checkpoint(step)
    assert story.incident.state == "held"
    kept = keep(story.engine.state, 2).names
    assert len(kept) <= 2 + HOPEFUL + 1 and kept[0] == "step-15-s0"


def test_an_upgrade_in_mid_run_does_not_lose_its_memory() -> None:
    """The snapshot of an orderly end is read by the next version, which has learnt more words since.

    Else it feeds two weeks of journal again, decides otherwise somewhere, and only observes from then on.
    """
    story = healthy_run()
    story.applied(21)
    story.ack(step=22)
    before = json.loads(story.engine.snapshot())
    story.engine = Engine.restore(json.dumps(before[:26]).encode())  # as it was before trials, silences, proposals
    story.steps(16, 40)
    assert (story.incident.state, story.engine.state.trials[0].incident) == ("resolved", "i0001")
    with pytest.raises(ValueError, match="no State"):
        Engine.restore(json.dumps(before[:25]).encode())


def test_what_reads_back_as_a_hand_has_put_it_is_left_there() -> None:
    """Turned by a person after the agent, and read back so: it is not taken for the trainer's slip and turned back."""
    halved = "{remedy: turn, horizon: 5, knobs: [{name: lr_scale, times: 0.5}, {name: max_grad_norm, to: 1}]}"
    story = healthy_run(pack=ASKING.replace("{remedy: rollback, horizon: 5, irreversible: true}", halved))
    story.skipped(21)
    story.skipped(22)
    assert story.sent() == ["turn"]
    for scale in (0.5, 0.3):
        story.batch(story.hello(last=1, knobs=(KNOBS[0]._replace(value=scale), KNOBS[1]._replace(value=1.0))))
    assert story.incident.hands["lr_scale"].value == 0.3
    story.ack(step=23, values={"lr_scale": 0.3, "max_grad_norm": 1.0})
    assert story.sent()[-1] == "undo"
    assert [c.name for c in story.action.knobs] == ["max_grad_norm"]


def test_what_waits_keeps_what_it_would_go_back_to() -> None:
    """Two newer checkpoints have led back to the trouble: the third, which the held plan names, is not let go."""
    story = Story(approvals=True).begin()
    for step in (10, 13, 15, 17):
        story.checkpoint(step)
    story.steps(1, 20)
    story.command("silence", all="1", seconds="1000000", reason="a week of work")
    story.applied(21)
    story.incident.tried_targets = ["/ck/step-17-s0", "/ck/step-15-s0"]
    story.applied(22)
    assert story.action.arguments["step"] == 13
    assert "step-13-s0" in keep(story.engine.state, 2).names


def test_a_name_as_long_as_a_book_is_not_kept() -> None:
    """Who said it stands in the incident, in every ledger and page: in one short line."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.command("deny", action=story.action.id, by="\x1b[31m" + "x" * 60_000)
    assert story.incident.state == "stopped" and len(story.incident.why) < 500
    story.command("rollback", to="15", by="\x1b[31m" + "y" * 60_000)
    assert len(story.incident.why) < 500 and "\x1b" not in story.incident.why + story.incidents[0].why


def test_a_hold_whose_plan_is_outdated_early_is_planned_anew() -> None:
    """While checkpoints are still being looked at nothing fits; afterwards it must not be held for ever by nothing."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.engine.state.look_until = story.at + 5.0
    for step in (10, 15):
        story.checkpoint(step, fit="unfit", why="gone")
    story.checkpoint(14)
    assert (story.action.arguments["step"], story.action.verdict) == (14, "hold")
    story.tick(3700.0)
    assert story.incidents[0].state == "stopped"


def test_a_death_while_checkpoints_are_looked_at_is_not_passed_on() -> None:
    """What was held fits no more, and a restart may yet be planned: the supervisor is not told that none follows."""
    story = healthy_run(approvals=True).supervisor()
    story.applied(21)
    story.engine.state.look_until = story.at + 5.0
    story.checkpoint(10, fit="unfit", why="gone").checkpoint(15, fit="unfit", why="gone")
    story.died(-9)
    assert story.told(EntryKind.RUN, "released") == []
    story.checkpoint(14)
    story.tick(10.0)
    assert (story.action.remedy, story.action.verdict) == ("restart", "hold")


def test_a_pack_that_changes_while_a_step_waits_for_its_ranks_leaves_no_ghost() -> None:
    """A rule of the old pack alerts no more: nobody would clear it, and the next pack would end the agent."""
    story = Story(world=2, pack=ASKING).begin()
    story.steps(1, 20)
    story.step(21, ranks=[0], loss=NAN)
    other = ASKING.replace("alert: P", "alert: Q")
    for pack in (other, ASKING, other):
        story.feed(Pack(story.at, "another", pack))
        assert {a.rule for a in story.alerts.values()} <= {"P" if pack is ASKING else "Q"}


def test_an_alert_of_a_pack_that_this_version_cannot_read_ends_no_agent() -> None:
    """After an upgrade: the old pack does not parse any more, and one of its rules, which is gone, was firing."""
    story = healthy_run(pack=ASKING)
    story.applied(21)
    story.engine.state.pack_text = "what: no pack of today's\n"
    story.feed(Pack(story.at, "another", ASKING.replace("alert: P", "alert: Q")))
    assert "P/0" not in story.alerts
    (told,) = story.told(EntryKind.ALERT, "resolved")
    assert told.subject.startswith("P{")
