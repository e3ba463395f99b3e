"""The bill: what an incident came to, written once when it is over, against what doing nothing would have cost."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from run_story import Story, healthy_run, replay

from gyrostat_rules import snapshot
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.ledger import facts
from gyrostat_rules.state import Incident

TURNS = """
pack: turns
groups:
  - name: g
    rules:
      - alert: EntropyLow
        detector: level
        with: {series: [entropy], below: 0.5, needed: 1, of: 1}
        severity: critical
        incident: entropy
        annotations: {summary: "low"}
playbooks:
  - incident: entropy
    budget: {actions: 3, steps: 200}
    cooldown: 15
    rungs:
      - remedy: turn
        horizon: 5
        knobs: [{name: lr_scale, times: 0.5}]
"""


def bill(story: Story) -> Mapping[str, Any]:
    """The facts of the one bill that was written."""
    (entry,) = story.told(EntryKind.BILL)
    return entry.data


def rolled_back(silence: float = 30.0) -> Story:
    """NaN applied at step 21, rolled back to 15, well again; the first new record came after a silence."""
    story = healthy_run()
    story.applied(21)
    story.ack(step=22)
    story.at += silence
    return story.steps(16, 40)


def held(seconds: float, **how: Any) -> Story:
    """A rollback that waits for a word, while the trainer goes on a step in ten seconds."""
    story = healthy_run(**how)
    story.applied(21)
    story.tick(seconds)
    return story


def test_a_rollback_is_billed_by_steps_and_seconds() -> None:
    """Six steps were undone, a second each, and nothing was told for thirty."""
    found = bill(rolled_back())
    assert (found["onset"], found["fired_step"], found["acted_step"], found["closed_step"]) == (21, 21, 21, 31)
    lost = {"steps": 6, "undone": 6, "not_applied": 0, "spoilt": 0, "dead_seconds": 30.0, "seconds": 36.0, "items": 0}
    assert (found["lost"], found["step_seconds"]) == (lost, 1.0)
    assert found["reaction"] == {"steps": 0, "seconds": 0.0, "held_seconds": 0.0}
    assert found["repair"] == {"steps": 15, "seconds": 46.0}
    assert [(a["remedy"], a["outcome"]) for a in found["actions"]] == [("rollback", "done")]


def test_an_applied_nan_spoils_every_later_step() -> None:
    """Doing nothing loses all since the checkpoint for certain; until when, is an assumption, and said to be one."""
    found = bill(rolled_back())["untreated"]
    assert (found["low"], found["high"], found["sure"]) == (5 + 1 + 15 + 30, 51 + 3600, "certain")
    assert "3600 s" in found["why"] and "assumption" in found["why"]


def test_what_was_saved_is_the_difference() -> None:
    """The interval of what doing nothing costs, less what was lost."""
    assert bill(rolled_back())["saved"] == {"low": 45, "high": 3645}


def test_data_passed_over_costs_the_steps_that_were_not_applied() -> None:
    """Two steps that the trainer's guard passed over, and the batch that will not be seen again."""
    story = healthy_run()
    story.skipped(21)
    story.skipped(22)
    assert story.sent() == ["skip_data"]
    story.ack(step=23)
    found = bill(story.steps(23, 40))
    assert (found["lost"]["steps"], found["lost"]["not_applied"], found["lost"]["items"]) == (2, 2, 16)
    assert (found["untreated"]["low"], found["untreated"]["high"], found["untreated"]["sure"]) == (2, None, "guess")


def test_a_restart_pays_for_its_silence() -> None:
    """From the last record of the old life to the first of the new one, less the step that it would have taken."""
    story = Story().begin(procedures=()).supervisor().checkpoint(10).checkpoint(15).steps(1, 20)
    story.applied(21)
    assert story.sent() == ["restart"]
    story.died(asked=True)
    story.at += 100.0
    story.restarted("life-b")
    found = bill(story.steps(16, 60))
    assert (found["lost"]["undone"], found["lost"]["dead_seconds"], found["lost"]["seconds"]) == (6, 100.0, 106.0)
    assert [(a["remedy"], a["outcome"]) for a in found["actions"]] == [("restart", "done")]


def test_a_death_that_a_person_mended_is_billed_by_what_it_cost() -> None:
    """Paged, and started again by hand two minutes later, six steps back: the agent did nothing, and says so."""
    story = healthy_run()
    story.at += 5.0
    story.died(-9)
    story.at += 115.0
    story.segment = 1
    found = bill(story.begin(life="life-b").steps(16, 60))
    assert (found["incident_kind"], found["detection"]) == ("crash", {"steps": 0, "seconds": 5.0})
    assert (found["lost"]["undone"], found["lost"]["dead_seconds"], found["actions"]) == (5, 120.0, [])
    assert found["untreated"]["why"] == "nothing was done, and this is what it came to"


def test_what_doing_nothing_costs_may_be_unknown() -> None:
    """A knob that was turned for a drift: nobody has seen the run that was left alone."""
    story = Story(pack=TURNS).begin()
    story.step(1, entropy=0.1)
    assert story.sent() == ["turn"]
    story.ack(step=2, values={"lr_scale": 0.5})
    for step in range(2, 30):
        story.step(step, entropy=1.0)
    story.ack(values={"lr_scale": 1.0})
    found = bill(story)
    assert (found["untreated"]["low"], found["untreated"]["high"], found["untreated"]["sure"]) == (
        None,
        None,
        "unknown",
    )
    assert (found["saved"], found["taken_back"]) == ({"low": None, "high": None}, 1)
    assert "not known" in story.told(EntryKind.BILL)[0].text


def test_what_is_over_by_itself_cost_what_it_cost() -> None:
    """Nothing was done, so that there is nothing to estimate."""
    story = held(1.0, approvals=True)
    found = bill(story.steps(22, 60))
    assert found["actions"] == [] and "reaction" not in found and "repair" not in found
    assert (found["untreated"]["low"], found["untreated"]["high"], found["untreated"]["sure"]) == (0, 0, "certain")


def test_shadow_says_what_would_have_been() -> None:
    """Nothing was done, and the bill names the rollback that was not."""
    story = held(1.0, act=False)
    found = bill(story.steps(22, 60))
    would = found["would"]
    assert (found["mode"], would["remedy"], would["undone"], would["held"]) == (
        "shadow", "rollback", 6, "mode is shadow",
    )  # fmt: skip
    assert "nothing was done, rollback would have been" in story.told(EntryKind.BILL)[0].text


def test_waiting_for_a_word_is_told_apart() -> None:
    """The minutes until somebody approved are nobody's slowness but a person's."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.tick(100.0)
    story.tick(300.0)
    story.command("approve", action=story.action.id, by="ada")
    story.ack(step=22)
    found = bill(story.steps(16, 40))
    assert found["reaction"] == {"steps": 0, "seconds": 400.0, "held_seconds": 400.0}
    assert "of that held 400 s" in story.told(EntryKind.BILL)[0].text


@pytest.mark.parametrize(("seconds", "bills"), [(3500.0, 0), (3700.0, 1)], ids=["still held", "nobody came"])
def test_held_for_hours_is_billed_when_it_is_stopped(seconds: float, bills: int) -> None:
    """As long as it waits there is no bill; when nobody came, one that says it had not ended."""
    story = held(seconds, approvals=True)
    found = story.told(EntryKind.BILL)
    assert len(found) == bills
    if found:
        untreated = found[0].data["untreated"]
        assert (found[0].state, untreated["high"], untreated["sure"]) == ("stopped", None, "certain")


def test_what_stands_on_a_bad_update_is_lost() -> None:
    """Nobody may go back, and the run goes on: each step since the onset stands on an update that was not finite."""
    story = held(1.0, approvals=True)
    story.steps(22, 26)
    story.applied(27)
    story.command("deny", action=story.action.id, by="ada")
    found = bill(story)
    assert (found["lost"]["spoilt"], found["lost"]["steps"], found["untreated"]["low"]) == (7, 7, 7)


def test_a_denied_action_is_billed_at_once() -> None:
    """Whoever refuses it is shown what it has come to."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.command("deny", action=story.action.id, by="ada")
    assert [(e.state, e.subject) for e in story.told(EntryKind.BILL)] == [("stopped", "i0001")]


def test_a_run_that_stays_dead_pays_until_the_end() -> None:
    """Nobody came for an hour: the silence up to the bill counts, and it had not ended."""
    story = healthy_run()
    story.died(-9)
    story.tick(1800.0)
    story.tick(1900.0)
    found = bill(story)
    assert (found["actions"], found["lost"]["dead_seconds"]) == ([], 3699.0)
    assert "had not ended" in found["untreated"]["why"]


def test_two_incidents_do_not_pay_for_one_jump() -> None:
    """Bills of one run may be added up: one of those that are open pays, the one that ordered it."""
    story = healthy_run(approvals=True).supervisor()
    story.source("stale", "gpu")
    story.applied(21)
    story.step(22, entropy=0.01)
    story.source("fresh", "gpu")
    story.command("approve", action=story.incidents[0].actions[-1].id, by="ada")
    story.ack(step=23)
    story.steps(16, 80)
    assert sum(e.data["lost"]["undone"] for e in story.told(EntryKind.BILL)) == 7


def test_a_bill_is_written_once_and_the_same_again() -> None:
    """Fed again, the same bill with the same id; and none more, however long the run goes on."""
    story = rolled_back()
    story.steps(41, 90)
    _, again = replay(story.inputs)
    assert [e for e in again if e.kind == EntryKind.BILL] == story.told(EntryKind.BILL)
    assert len(story.told(EntryKind.BILL)) == 1


def test_the_meter_outlives_engine_and_pod() -> None:
    """A snapshot and the ledger hold what an open incident has cost so far."""
    story = held(50.0, approvals=True)
    story.steps(22, 25)
    meter = story.incident.meter
    assert Engine.restore(story.engine.snapshot()).state.incidents[-1].meter == meter
    (written,) = facts(story.engine.state)["incidents"]
    assert snapshot.from_plain(Incident, written).meter == meter and meter.told == 4


def test_incidents_of_an_older_version_are_not_billed() -> None:
    """What ended before there were bills has no meter, and no bill that would be made up."""
    story = rolled_back()
    written = snapshot.to_plain(story.incident)[:-1]
    story.engine.state.incidents = [snapshot.from_plain(Incident, written)]
    story.steps(41, 45)
    assert len(story.told(EntryKind.BILL)) == 1


@pytest.mark.parametrize("clock", [-500.0, math.inf, math.nan], ids=["set back", "infinite", "no number"])
def test_a_clock_that_is_wrong_costs_nothing(clock: float) -> None:
    """Whatever time a trainer tells, seconds are finite and never less than none."""
    story = healthy_run()
    story.applied(21)
    story.ack(step=22)
    story.batch(story.record(16)._replace(time=story.at + clock))
    story.at -= 5.0
    found = bill(story.steps(17, 40))
    assert found["lost"]["undone"] == 6 and found["lost"]["dead_seconds"] < 10.0
    assert min(found["repair"]["seconds"], found["lost"]["seconds"], found["lost"]["dead_seconds"]) >= 0.0


def test_time_alone_leaves_no_trace() -> None:
    """A tick that changes nothing is not journaled: the meter must not run by it."""
    story = held(10.0, approvals=True)
    before = story.engine.snapshot()
    story.tick(5.0)
    assert not story.engine.changed and story.engine.snapshot() == before
