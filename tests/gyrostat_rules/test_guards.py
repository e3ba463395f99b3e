"""Guards: what each allows, holds and denies, with its reason, and that a hold ends when its reason does."""

import pytest
from run_story import CORE, Story, healthy_run

from gyrostat.wire import Record
from gyrostat_rules.ceilings import RUN_ACTIONS
from gyrostat_rules.guards import GUARDS
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.remembered import Deed, Trial


def held(story: Story) -> str:
    """The reason of the newest action, which must be held."""
    assert (story.action.verdict, story.incident.state) == ("hold", "held"), story.action
    return story.action.reason


def test_each_guard_is_tested_here() -> None:
    """A guard that is added needs its own story: below, or in test_silences, test_hands, test_put_off, test_crash."""
    assert [g.__name__ for g in GUARDS] == [
        "silence", "mode", "standing", "capability", "blind", "last_words", "written_down", "sound", "approval",
        "by_hand", "blast_radius", "cooldown", "rung_budget", "budget", "ceiling", "standstill", "busy",
    ]  # fmt: skip


def test_all_well_is_allowed() -> None:
    """With mode act and no guard's reason the action is sent in the moment of its alarm."""
    story = healthy_run()
    story.applied(21)
    assert (story.action.verdict, story.sent()) == ("allow", ["rollback"])


def test_mode_holds_until_it_is_act() -> None:
    """Shadow and observe hold; a person who sets act lets the waiting action go."""
    story = healthy_run(act=False)
    story.command("configure", mode="observe", approvals=False)
    story.applied(21)
    assert held(story) == "mode is observe"
    story.command("configure", mode="act")
    assert story.sent() == ["rollback"]


def test_pause_holds_until_resumed() -> None:
    """A pause stops new actions at once and for all incidents, and says so."""
    story = healthy_run()
    story.command("pause")
    story.applied(21)
    assert held(story) == "paused by a person"
    story.command("resume")
    assert story.sent() == ["rollback"]


def test_distrust_holds_until_trusted() -> None:
    """A run whose history cannot be read is only observed, whatever its mode."""
    story = healthy_run()
    story.command("distrust", reason="the chain is broken")
    story.applied(21)
    assert held(story) == "observe only: the chain is broken"
    story.command("trust", by="Ada")
    assert story.sent() == ["rollback"]


@pytest.mark.parametrize("word", [SourceWord.STALE, SourceWord.FOREIGN])
def test_blind_holds_until_it_sees(word: str) -> None:
    """No action on the word of a stale source."""
    story = healthy_run()
    story.source(word)
    story.applied(21)
    assert held(story) == f"blind: records: it is {word}"
    story.source(SourceWord.FRESH)
    assert story.sent() == ["rollback"]


GPUS_STUCK = "gpus of http://node-0:9400/metrics"
_PAGED = "incident: hardware\n    rungs:\n"
HARDWARE = CORE.replace(_PAGED, f"{_PAGED}      - {{remedy: rollback, horizon: 10, irreversible: true}}\n")


def test_an_exporter_of_gpus_that_is_stuck_holds_nothing_that_others_say() -> None:
    """Its numbers are old; the trainer's own are not."""
    story = healthy_run()
    story.source(SourceWord.STALE, GPUS_STUCK)
    story.applied(21)
    assert story.sent() == ["rollback"]


def test_on_the_word_of_gpus_that_are_not_measured_nothing_is_done() -> None:
    """What they said last may long be over."""
    story = healthy_run(pack=HARDWARE)
    story.source(SourceWord.STALE, GPUS_STUCK)
    story.batch(Record("gpu", 0, "GPU-aa", 0, 1, 21, story.at, {"gpu_lost": 1.0}))
    story.step(21)
    assert held(story) == f"blind: {GPUS_STUCK}: it is stale"
    story.source(SourceWord.FRESH, GPUS_STUCK)
    assert story.sent() == ["rollback"]


def test_damage_that_was_passed_over_is_no_blindness() -> None:
    """One torn frame must not stop the healing."""
    story = healthy_run()
    story.source(SourceWord.DAMAGED)
    story.applied(21)
    assert story.sent() == ["rollback"]


def test_capability_needs_somebody_there() -> None:
    """An action whose hands have gone is not sent into the void: it is planned anew for who is left."""
    story = healthy_run(approvals=True).supervisor()
    story.applied(21)
    story.died()
    story.command("approve", action=story.action.id)
    assert story.sent() == ["restart"]


@pytest.mark.parametrize("remedy", ["rollback", "skip_data"])
def test_approval_is_for_what_cannot_be_undone(remedy: str) -> None:
    """A rollback waits for a person; one item of data does not."""
    story = healthy_run(approvals=True)
    if remedy == "rollback":
        story.applied(21)
        assert held(story) == f"needs approval: gyrostat approve {story.action.id}"
        story.command("approve", action=story.action.id, by="Ada")
    else:
        story.skipped(21)
        story.skipped(22)
    assert story.sent() == [remedy]


def test_an_approval_is_for_one_action_and_once() -> None:
    """What was approved has been used up: the next rung asks again, and the old word does not count."""
    story = healthy_run(approvals=True)
    story.applied(21)
    first = story.action.id
    story.command("approve", action=first, by="Ada")
    story.ack("failed", reason="no memory", step=22)
    assert "needs approval" in held(story)
    assert story.action.id != first
    story.command("approve", action=first, by="Ada")
    assert story.sent() == ["rollback"]
    assert "no action" in story.entries[-1].text


@pytest.mark.parametrize("action", ["i0001.9", "", None, 7], ids=str)
def test_an_approval_of_nothing_does_nothing(action: object) -> None:
    """A word for an action that does not wait is written down, and that is all."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.command("approve", action=action)
    assert story.sent() == []


def test_denied_stays_denied() -> None:
    """A person's no ends it: the same alarm going on asks nobody again, and no later yes turns it."""
    story = healthy_run(approvals=True)
    story.applied(21)
    action = story.action
    story.command("deny", action=action.id, by="Ada")
    assert (story.incident.state, story.incident.why) == ("stopped", "rollback was denied by Ada")
    story.applied(22)
    story.command("approve", action=action.id, by="Bob")
    story.applied(23)
    assert (len(story.incidents), story.sent()) == (1, [])


def recurrent(story: Story) -> Story:
    """An incident mended by rollback, and the next one three steps after its end: skip_data does not fit in either."""
    story.applied(21)
    story.ack(step=22)
    story.steps(16, 33)
    assert story.incident.state == "resolved"
    story.applied(34)
    return story


def test_cooldown_holds_the_same_remedy_and_ends() -> None:
    """The same remedy for the same cause waits out the playbook's cooldown, counted in steps."""
    story = recurrent(healthy_run())
    assert held(story) == "rollback ended at step 31; cooldown is 5 steps"
    story.step(35)
    assert story.sent() == ["rollback"]
    story.step(36)
    assert story.sent() == ["rollback", "rollback"]


def test_cooldown_lets_worse_through() -> None:
    """A rollback for entropy does not hold up a rollback for NaN."""
    story = healthy_run()
    story.engine.state.closed.append(Deed("entropy", "rollback", 19, story.at))
    story.applied(21)
    assert story.sent() == ["rollback"]


def test_cooldown_is_for_the_first_action_of_an_incident() -> None:
    """The next rung of the same incident is not held up by an earlier one's end."""
    story = healthy_run()
    story.engine.state.closed.append(Deed("nonfinite", "rollback", 20, story.at))
    story.skipped(21)
    story.skipped(22)
    assert story.sent() == ["skip_data"]
    story.ack(step=23)
    story.applied(23)
    assert story.sent() == ["skip_data", "rollback"]


@pytest.mark.parametrize("age", [10, 250], ids=["lately", "long ago"])
def test_budget_denies_what_is_too_often(age: int) -> None:
    """Three actions in two hundred steps for one cause are enough; older ones are forgotten."""
    story = healthy_run(last=300)
    story.engine.state.deeds += [Deed("nonfinite", "skip_data", 300 - age, 0.0)] * 3
    story.applied(301)
    if age == 10:
        assert (story.action.verdict, story.incident.state) == ("deny", "stopped")
        assert story.incident.why == "3 actions in 200 steps: the budget is spent"
    else:
        assert story.sent() == ["rollback"]


def test_the_run_has_a_budget_of_its_own() -> None:
    """Whatever the playbooks allow each, so many actions of all kinds together are too many."""
    story = healthy_run()
    story.engine.state.deeds += [Deed("entropy", "skip_data", 5, 0.0)] * RUN_ACTIONS
    story.applied(21)
    assert "of this run: its budget is spent" in story.incident.why


@pytest.mark.parametrize("count", [2, 3])
def test_ceiling_denies_the_same_cause_again_and_again(count: int) -> None:
    """Three mended incidents of one cause in a thousand steps are no accident that a remedy mends."""
    story = healthy_run(last=40)
    story.engine.state.closed += [Deed("nonfinite", "skip_data", 5, 0.0)] * count
    story.applied(41)
    if count == 3:
        assert story.incident.why == "3 nonfinite incidents in 1000 steps"
    else:
        assert story.sent() == ["rollback"]


def test_busy_holds_while_a_checkpoint_is_written() -> None:
    """Nothing is done in the middle of a save; the next record that says it is over lets it go."""
    story = healthy_run()
    story.applied(21, checkpoint_busy=1.0)
    assert held(story) == "a checkpoint is being written"
    story.step(22)
    assert story.sent() == ["rollback"]


def test_busy_holds_while_another_incident_is_acted_on() -> None:
    """One experiment at a time."""
    pack = """\
pack: two
groups:
  - name: g
    rules:
      - alert: P
        detector: nonfinite
        with: {classes: [poison], confirmed: true}
        severity: critical
        incident: nonfinite
      - {alert: S, detector: stall, severity: critical, incident: stall}
playbooks:
  - {incident: nonfinite, rungs: [{remedy: rollback, horizon: 5, irreversible: true}]}
  - {incident: stall, rungs: [{remedy: stop, irreversible: true}]}
"""
    story = healthy_run(pack=pack)
    story.applied(21)
    story.ack(step=22)
    story.tick(910.0)
    assert story.incident.kind == "stall"
    assert held(story) == "incident i0001 is in probation"
    assert story.sent() == ["rollback"]


@pytest.mark.parametrize("why", ["probation", "blind", "saving"])
def test_a_page_is_held_by_nothing(why: str) -> None:
    """A page touches nothing: a run that hangs in the middle of a probation must wake somebody."""
    story = healthy_run()
    if why == "probation":
        story.applied(21)
        story.ack(step=22)
    elif why == "blind":
        story.source(SourceWord.STALE)
    else:
        story.step(21, checkpoint_busy=1.0)
    story.tick(910.0)
    assert (story.incident.kind, story.action.remedy, story.action.outcome) == ("stall", "page", "done")


def test_a_hold_that_nobody_ends_expires() -> None:
    """What waits for a person is given up after an hour, and told; nothing is done later on an old alarm."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.tick(3590.0)
    assert story.incidents[0].state == "held"
    story.tick(20.0)
    assert story.incidents[0].state == "stopped"
    assert story.incidents[0].why.startswith("nobody answered: needs approval")
    story.command("approve", action="i0001.2")
    assert story.sent() == []


def test_the_reason_shown_is_the_reason_that_holds() -> None:
    """When one reason to wait ends and another begins, the incident says the new one."""
    story = healthy_run(approvals=True)
    story.command("pause")
    story.applied(21)
    assert story.incident.why == "paused by a person"
    story.command("resume")
    assert story.incident.why.startswith("needs approval")


RUNGED = """\
pack: runged
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
    budget: {actions: 9, steps: 200}
    ceiling: {incidents: 9, steps: 1000}
    cooldown: 0
    MORE
    rungs:
      - {remedy: skip_data, horizon: 3, irreversible: true, budget: {actions: 1}}
      - {remedy: rollback, horizon: 3, irreversible: true, knobs: [{name: lr_scale, times: 0.5}]}
"""


def runged(more: str = "standstill: {incidents: 9}", **how: bool) -> Story:
    """A run whose first rung may be tried once in 200 steps."""
    return healthy_run(pack=RUNGED.replace("MORE", more), **how)


def mended_by_skipping(story: Story, step: int) -> Story:
    """Two bad rows from ``step`` on, whose item is passed over, and clean steps until that is proved."""
    story.skipped(step)
    story.skipped(step + 1)
    story.ack(step=step + 2)
    story.steps(step + 2, step + 6)
    assert story.incident.state == "resolved"
    return story


def test_a_rungs_budget_passes_it_by_and_the_next_rung_follows() -> None:
    """What has been tried often enough is not tried again, and that ends nothing: the next remedy is sent at once."""
    story = mended_by_skipping(runged(), 21)
    story.skipped(40)
    story.skipped(41)
    assert story.sent() == ["skip_data", "rollback"]
    passed = next(a for a in story.incident.actions if a.remedy == "skip_data")
    assert (passed.verdict, passed.number) == ("deny", 0)
    assert passed.reason == "skip_data was tried 1 times in 200 steps: this rung's budget is spent"


def test_a_rungs_budget_comes_back() -> None:
    """What was tried long ago counts no more."""
    story = mended_by_skipping(runged(), 21).steps(28, 299)
    story.skipped(300)
    story.skipped(301)
    assert story.sent() == ["skip_data", "skip_data"]


def test_a_rung_without_a_budget_has_its_playbooks() -> None:
    """The packs that come with it bound each playbook, and no rung more narrowly."""
    story = healthy_run()
    assert not any(r.budget_actions for b in story.engine._pack().playbooks for r in b.rungs)


def test_a_rung_that_is_passed_by_waits_where_a_person_was_asked() -> None:
    """A pause holds it, and what waits has used up nothing."""
    story = mended_by_skipping(runged(), 21)
    story.command("pause")
    story.skipped(40)
    story.skipped(41)
    assert held(story) == "paused by a person"
    story.command("resume")
    assert story.sent() == ["skip_data", "rollback"]


@pytest.mark.parametrize("place", [30, 60], ids=["the same place", "further on"])
def test_a_standstill_is_no_accident(place: int) -> None:
    """Two incidents of one cause at one place, whatever came of them, and the third is a person's."""
    story = healthy_run(last=place)
    story.engine.state.trials += [Trial("i1", "nonfinite", 25), Trial("i2", "nonfinite", 33)]
    story.applied(place + 1)
    if place == 30:
        said = "2 nonfinite incidents were acted on around step 31: the run gets no further"
        assert (story.incident.state, story.incident.why) == ("stopped", said)
    else:
        assert story.sent() == ["rollback"]


@pytest.mark.parametrize("outcome", ["ineffective", "unknown"])
def test_unknown_progress_uses_up_neither_ceiling(outcome: str) -> None:
    """A remedy that was taken back counts as tried at this place; one of which nobody knows what came, does not."""
    story = healthy_run(pack=RUNGED.replace("MORE", "standstill: {incidents: 1}"))
    story.skipped(21)
    story.skipped(22)
    if outcome == "ineffective":
        story.ack(step=23)
        story.skipped(23)
        story.ack("failed", reason="no memory", step=24)
        story.ack("failed", reason="no memory", step=24)
    else:
        story.delivery("unknown")
        story.tick(3700.0)
    assert story.incident.state == "stopped"
    assert story.incident.actions[0].outcome == outcome
    state = story.engine.state
    assert (len(state.trials), state.closed, bool(state.deeds)) == (int(outcome == "ineffective"), [], True)


def test_a_rollback_that_would_lose_too_much_asks_a_person() -> None:
    """Even where approvals are off; with a person's word it goes, once."""
    story = runged("blast_radius: {steps: 3}")
    story.applied(21)
    assert held(story) == f"more than 3 steps would be lost: needs approval: gyrostat approve {story.action.id}"
    story.command("approve", action=story.action.id, by="Ada")
    assert story.sent() == ["rollback"]


@pytest.mark.parametrize(
    ("more", "held_by"),
    [
        ("blast_radius: {knobs: 1}", ""),
        ("blast_radius: {steps: 6}", ""),
        ("blast_radius: {ranks: 2}", ""),
        ("blast_radius: {steps: 0}", "more than 0 steps would be lost"),
    ],
)
def test_a_blast_radius_holds_what_is_beyond_it(more: str, held_by: str) -> None:
    """A rollback of six steps with one knob, that ends nobody."""
    story = runged(more)
    story.applied(21)
    assert held(story).startswith(held_by) if held_by else story.sent() == ["rollback"]


def test_a_restart_ends_every_rank() -> None:
    """Where a playbook says how many, the restart of more asks a person first."""
    text = RUNGED.replace("MORE", "blast_radius: {ranks: 3}").replace("remedy: rollback", "remedy: restart")
    story = healthy_run(world=4, pack=text.replace(", knobs: [{name: lr_scale, times: 0.5}]", "")).supervisor()
    story.applied(21)
    assert held(story).startswith("more than 3 ranks would be ended: needs approval")


def test_busy_holds_while_weights_are_on_their_way() -> None:
    """A rollback in the middle of a weight sync would leave the engines with half of each."""
    story = healthy_run()
    story.applied(21, weight_sync_busy=1.0)
    assert held(story) == "weights are on their way to the rollouts"
    story.step(22)
    assert story.sent() == ["rollback"]


@pytest.mark.parametrize("seconds", [0.0, 90.0], ids=["lately", "long ago"])
def test_an_engine_that_holds_its_requests_is_waited_for(seconds: float) -> None:
    """It does so while weights are put into it; a page that nobody has read for a minute holds up nothing."""
    story = healthy_run()
    story.batch(Record("rollout", 0, "engine-a", 0, 1, 1, story.at, {"requests_paused": 3.0}))
    story.at += seconds
    story.applied(21)
    if seconds:
        assert story.sent() == ["rollback"]
    else:
        assert held(story) == "weights are on their way to the rollouts"


@pytest.mark.parametrize("tripped", ["pause", "budget", "ceiling", "standstill", "blind", "distrust"])
def test_a_tripped_breaker_never_blocks_healing(tripped: str) -> None:
    """Knobs that a remedy has turned go back whatever has tripped meanwhile: only harm is held up."""
    pack = RUNGED.replace("MORE", "").replace("rollback, horizon: 3, irreversible: true", "turn, horizon: 3")
    story = healthy_run(pack=pack.replace("      - {remedy: skip_data, horizon: 3, irreversible: true, budget: "
                                          "{actions: 1}}\n", ""))  # fmt: skip
    story.skipped(21)
    story.skipped(22)
    assert story.sent() == ["turn"]
    story.ack(step=23, values={"lr_scale": 0.5})
    state = story.engine.state
    if tripped in ("pause", "distrust"):
        story.command(tripped, reason="the chain is broken")
    elif tripped == "blind":
        story.source(SourceWord.STALE)
    else:
        state.deeds += [Deed("nonfinite", "turn", 22, 0.0)] * 20
        state.closed += [Deed("nonfinite", "turn", 22, 0.0)] * 20
        state.trials += [Trial(f"i9{n}", "nonfinite", 22) for n in range(9)]
    story.skipped(23)
    assert story.sent() == ["turn", "undo"]
    assert (story.action.knobs[0].name, story.action.knobs[0].value) == ("lr_scale", 1.0)
