"""Arming: in mode shadow an armed rule acts and no other; a word puts it off at once, and no pod forgets it."""

import json
from typing import Any

import pytest
from run_story import CORE, Story, healthy_run, replay

from gyrostat.wire import KnobState
from gyrostat_rules.arming import leader, may_act, unarmable
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Pack
from gyrostat_rules.ledger import facts
from gyrostat_rules.packfile import parse

POISON = "NonFinitePoison"
MOODS = """
pack: knobs
groups:
  - name: one
    rules:
      - alert: MoodLow
        detector: level
        with: {series: [mood], below: 0.5, needed: 1, of: 1}
        severity: critical
        incident: entropy
playbooks:
  - incident: entropy
    cooldown: 0
    rungs:
      - {remedy: turn, horizon: 3, knobs: [{name: push, to: 0.4}]}
      - {remedy: turn, horizon: 3, knobs: [{name: push, to: 0.8}]}
"""
EVIDENCE = "40 hits of 40"


def shadowed(mode: str = "shadow", *, approvals: bool = False, **how: Any) -> Story:
    """A healthy run that only watches."""
    story = healthy_run(act=False, **how)
    story.command("configure", mode=mode, approvals=approvals)
    return story


def armed(mode: str = "shadow", **how: Any) -> Story:
    """The same, with the rule for values that are not finite armed."""
    story = shadowed(mode, **how)
    story.command("arm", rule=POISON, evidence=EVIDENCE, by="Ada")
    return story


def answer(story: Story) -> str:
    """What was said to the newest word."""
    return story.told(EntryKind.COMMAND)[-1].text


# -- acting -------------------------------------------------------------------------------------------


def test_an_armed_rule_acts_in_shadow() -> None:
    """Its incident is acted on as in mode act, and the journal says who armed it on what."""
    story = armed()
    story.applied(21)
    assert story.sent() == ["rollback"]
    assert answer(story) == f"Ada armed {POISON}: {EVIDENCE}"


def test_an_unarmed_rule_does_not() -> None:
    """Another rule's incident is held as ever."""
    story = shadowed()
    story.command("arm", rule="RewardCollapsed", evidence=EVIDENCE)
    story.applied(21)
    assert (story.sent(), story.action.reason) == ([], "mode is shadow")


def test_observe_never_acts() -> None:
    """What was armed in shadow is only watched once the agent runs in observe."""
    story = armed()
    story.command("configure", mode="observe")
    story.applied(21)
    assert (story.sent(), story.action.reason) == ([], "mode is observe")
    assert not may_act(story.engine.state.settings)


def test_arming_lets_what_waits_for_the_mode_go() -> None:
    """An incident that is held by the mode alone goes ahead when its rule is armed, as when the mode becomes act."""
    story = shadowed()
    story.applied(21)
    story.command("arm", rule=POISON, reason="I have seen enough")
    assert story.sent() == ["rollback"]


@pytest.mark.parametrize("guard", ["approval", "pause", "distrust", "blind"])
def test_the_other_guards_stand(guard: str) -> None:
    """Armed is not approved, and no pause, distrust or blindness is passed over."""
    story = armed(approvals=guard == "approval")
    if guard == "pause":
        story.command("pause")
    elif guard == "distrust":
        story.command("distrust", reason="broken")
    elif guard == "blind":
        story.source("stale")
    story.applied(21)
    wanted = {"approval": "needs approval", "pause": "paused", "distrust": "observe only", "blind": "blind"}[guard]
    assert story.sent() == [] and wanted in story.action.reason


def test_the_rule_that_leads_decides() -> None:
    """A graver alert that takes the lead must be armed itself."""
    story = shadowed()
    story.command("arm", rule="EntropyCollapsed", evidence=EVIDENCE)
    story.applied(21)
    assert leader(story.incident) == POISON and story.sent() == []


def test_what_an_older_agent_opened_is_led_by_its_first_alert() -> None:
    """Ledgers from before arming do not say who leads."""
    story = shadowed()
    story.applied(21)
    story.incident.leader = ""
    assert leader(story.incident) == POISON


# -- disarming ----------------------------------------------------------------------------------------


def test_disarmed_holds_what_was_not_sent() -> None:
    """At once, for an action that still waits for its approval too."""
    story = armed(approvals=True)
    story.applied(21)
    story.command("disarm", rule=POISON, by="Bob")
    story.command("approve", action=story.action.id)
    assert (story.sent(), story.action.reason) == ([], "mode is shadow")
    assert f"Bob disarmed {POISON}" in [e.text for e in story.told(EntryKind.COMMAND)]


def test_what_is_on_probation_is_finished() -> None:
    """A rollback that was answered before the word is proved and closed; the next rung is held."""
    story = armed()
    story.applied(21)
    story.ack(step=22)
    story.command("disarm", rule=POISON)
    story.steps(16, 40)
    assert story.incident.state == "resolved" and "mended by rollback" in story.incident.why


def test_what_does_not_hold_is_followed_by_nothing() -> None:
    """On probation when disarmed, and bad again: it is ended as ineffective, and nothing more is sent."""
    story = armed()
    story.skipped(21)
    story.skipped(22)
    assert story.sent() == ["skip_data"]
    story.ack(step=23)
    story.command("disarm", rule=POISON)
    story.applied(24)
    assert story.sent() == ["skip_data"]
    assert (story.incident.state, story.action.reason) == ("held", "mode is shadow")


def test_knobs_go_back_after_disarming() -> None:
    """An undo is healing: it needs no armed rule; the rung behind it does."""
    story = Story(act=False, pack=MOODS).begin(knobs=(KnobState("push", 0.1, 0.0, 1.0, None),))
    story.command("arm", rule="MoodLow", reason="a test")
    story.step(1, mood=1.0)
    story.step(2, mood=0.1)
    story.ack(step=3)
    story.command("disarm", rule="MoodLow")
    for step in range(3, 6):
        story.step(step, mood=0.1)
    assert story.sent() == ["turn", "undo"]
    story.ack(step=6)
    story.step(6, mood=0.1)
    assert story.sent() == ["turn", "undo"] and story.action.reason == "mode is shadow"


# -- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, said",
    [
        ({"rule": "Nobody", "evidence": "x"}, "has no rule 'Nobody'"),
        ({"rule": "LossSpike", "evidence": "x"}, "opens no incident"),
        ({"rule": "TrainerStalled", "evidence": "x"}, "only asks a person"),
        ({"rule": POISON}, "this is neither"),
        ({"rule": POISON, "reason": " \n "}, "this is neither"),
        ({}, "has no rule ''"),
    ],
    ids=["unknown", "no incident", "a page alone", "no evidence", "an empty reason", "nothing"],
)
def test_what_cannot_be_armed(words: dict[str, str], said: str) -> None:
    """The answer says why, and nothing is armed."""
    story = shadowed()
    story.command("arm", **words)
    assert answer(story).startswith("not done: ") and said in answer(story)
    assert story.engine.state.settings.armed == {}


def test_a_rule_without_a_playbook_cannot_be_armed() -> None:
    """There is nothing that it would do."""
    pack = parse(CORE)
    bare = pack._replace(playbooks=tuple(p for p in pack.playbooks if p.incident != "nonfinite"))
    assert "there is no playbook" in unarmable(bare, POISON) and unarmable(pack, POISON) == ""


def test_in_observe_nothing_can_be_armed() -> None:
    """It would not act."""
    story = armed("observe")
    assert answer(story).startswith("not done: mode is observe") and not story.engine.state.settings.armed


def test_in_act_it_is_remembered() -> None:
    """And the answer says that it changes nothing now."""
    story = armed("act")
    assert "it acts armed or not" in answer(story) and POISON in story.engine.state.settings.armed


def test_disarming_what_is_not_armed_is_refused() -> None:
    """With what is."""
    story = armed()
    story.command("disarm", rule="Nobody")
    assert answer(story) == f"not done: 'Nobody' is not armed; armed now: {POISON}"


def test_hostile_words_are_bounded() -> None:
    """A reason of a megabyte is not carried in every ledger."""
    story = shadowed()
    story.command("arm", rule=POISON, reason="x" * 1_000_000, by="y" * 1_000_000)
    assert len(story.engine.state.settings.armed[POISON]) < 500


def test_a_replay_says_the_same() -> None:
    """Armed, acted, disarmed, another pack: the same inputs give the same entries and the same state."""
    story = armed()
    story.applied(21)
    story.ack(step=22)
    story.command("disarm", rule=POISON)
    story.command("arm", rule=POISON, reason="again")
    story.feed(Pack(story.at, "again", CORE.replace("cooldown: 5", "cooldown: 7")))
    engine, entries = replay(story.inputs)
    assert entries == story.entries and engine.snapshot() == story.engine.snapshot()


# -- what it outlives ---------------------------------------------------------------------------------


def test_a_snapshot_keeps_it() -> None:
    """The next agent stands where the last one stood."""
    story = armed()
    assert POISON in Engine.restore(story.engine.snapshot()).state.settings.armed


def test_the_ledger_keeps_it() -> None:
    """A new pod in mode shadow acts on what was armed in the old one."""
    written = json.loads(json.dumps(facts(armed().engine.state)))
    after = Story(act=False)
    after.command("configure", mode="shadow", approvals=False)
    after.command("ledger", **written)
    after.begin(life="life-b").checkpoint(10).checkpoint(15)
    after.tick(60.0)
    after.steps(16, 30)
    after.applied(31)
    assert after.sent() == ["rollback"]


def test_an_older_ledger_arms_nothing() -> None:
    """One from before arming is read as ever."""
    written = json.loads(json.dumps(facts(armed().engine.state)))
    del written["armed"]
    after = Story(act=False)
    after.command("ledger", **written)
    assert (after.engine.state.settings.armed, after.engine.state.settings.distrust) == ({}, "")


@pytest.mark.parametrize("odd", [[POISON], {POISON: 5}, "yes", {POISON: None}], ids=str)
def test_a_ledger_that_arms_by_no_words_is_distrusted(odd: object) -> None:
    """What stands there must be names and words."""
    written = json.loads(json.dumps(facts(armed().engine.state)))
    after = Story(act=False)
    after.command("ledger", **{**written, "armed": odd})
    assert after.engine.state.settings.armed == {} and after.engine.state.settings.distrust


# -- another pack -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "old, new, stays",
    [
        ("\npack: ", "\npack: my-", True),
        ("is poisoned by values", "is ill of values", True),
        ("      - alert: NonFinitePoison\n", "      - alert: NonFinitePoisoned\n", False),
    ],
    ids=["its name", "its words", "without the rule"],
)
def test_another_pack_disarms_what_it_declares_otherwise(old: str, new: str, stays: bool) -> None:
    """The evidence was of the rule as it was; its name and words for people may change."""
    story = armed()
    assert old in CORE
    story.feed(Pack(story.at, "again", CORE.replace(old, new)))
    assert (POISON in story.engine.state.settings.armed) is stays
    disarmed = [e.text for e in story.told(EntryKind.COMMAND) if e.subject == "disarm"]
    assert bool(disarmed) is not stays


def test_another_playbook_disarms_too() -> None:
    """What would be done is half of what was armed."""
    story = armed()
    head, found, rest = CORE.partition("  - incident: nonfinite\n")
    text = head + found + rest.replace("cooldown: 5", "cooldown: 99", 1)
    story.feed(Pack(story.at, "again", text))
    assert story.engine.state.settings.armed == {}


# -- the supervisor -----------------------------------------------------------------------------------


def test_a_supervisor_is_released_where_something_is_armed() -> None:
    """It held the exit back for an armed rule's sake: where none restarts, it is told that it may go."""
    story = armed()
    story.supervisor()
    story.died()
    assert [e.state for e in story.told(EntryKind.RUN, "released")] == ["released"]


def test_it_is_not_kept_by_a_restart_that_the_mode_holds() -> None:
    """An unarmed incident's restart, held by the mode, will not come."""
    story = shadowed(approvals=True)
    story.supervisor()
    story.command("arm", rule="RewardCollapsed", evidence=EVIDENCE)
    story.skipped(21)
    story.died()
    assert story.action.remedy == "restart" and story.action.reason == "mode is shadow"
    assert story.told(EntryKind.RUN, "released")


def test_an_armed_restart_in_shadow_is_waited_for() -> None:
    """Approved, it is sent; until then the supervisor stays."""
    story = armed(approvals=True)
    story.supervisor()
    story.skipped(21)
    story.died()
    assert story.action.remedy == "restart" and not story.told(EntryKind.RUN, "released")
    story.command("approve", action=story.action.id)
    assert story.sent() == ["restart"]
