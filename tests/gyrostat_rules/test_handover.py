"""One decider, many agents: a follower plans nothing, a new leader goes on where the old one was, and who is unseen."""

import json

import pytest
from run_story import NAN, Story, healthy_run

from gyrostat.wire import Record
from gyrostat_rules import ledger
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import AlertTold, Batch, Forwarded, SourceState, SourceWord


def follower(story: Story, leader: str = "node-0") -> Story:
    story.command("stand", **{"as": "follower", "node": "node-1", "leader": leader, "term": 3})
    return story


def lead(story: Story, term: int = 4, node: str = "node-0", **more: object) -> Story:
    story.command("stand", **{"as": "leader", "node": node, "leader": node, "term": term, **more})
    story.at += 6.0
    return story


def sent(story: Story) -> list[str]:
    return [e.text for e in story.entries if e.kind == EntryKind.ACTION and e.state == "sent"]


def poisoned(story: Story) -> Story:
    story.step(21, loss=NAN, step_applied=1.0)
    story.step(22, loss=NAN, step_applied=1.0)
    return story


def test_a_follower_folds_and_tells_and_plans_nothing() -> None:
    """Its incident is there to be seen, and says who decides."""
    story = poisoned(follower(healthy_run()))
    (incident,) = story.engine.state.incidents
    assert (incident.state, incident.why, incident.actions) == ("held", "node-0 decides for this run", [])
    assert not sent(story)
    story.at += 7200.0
    story.tick()
    assert incident.state == "held", "and that is no hour's wait for a person"


def test_a_follower_that_begins_to_lead_plans_for_what_it_has() -> None:
    """Nobody wrote anything down before: what it sees itself is what there is."""
    story = lead(poisoned(follower(healthy_run())))
    story.step(23, loss=NAN, step_applied=1.0)
    assert sent(story)


def test_alone_nothing_is_any_different() -> None:
    """An agent that was told of no cluster acts as ever, and writes the same ledger."""
    story = poisoned(healthy_run())
    assert sent(story)
    assert "term" not in ledger.facts(story.engine.state)


def test_whoever_leads_no_more_begins_nothing_and_ends_nothing() -> None:
    """What it has sent goes on at the new leader: it neither watches it nor takes it back."""
    story = poisoned(lead(healthy_run()))
    assert len(sent(story)) == 1
    story.command("stand", **{"as": "follower", "node": "node-0", "leader": "node-1", "term": 5})
    (incident,) = story.engine.state.incidents
    assert (incident.state, incident.why) == ("stopped", "handed over: node-1 decides for this run")
    story.steps(23, 60)
    assert len(sent(story)) == 1
    assert not [e for e in story.entries if e.kind == EntryKind.BILL]


def test_a_new_leader_takes_up_what_the_old_one_wrote_down() -> None:
    """Open incidents, budgets and numbers are the run's: nothing is sent twice, no number is given twice."""
    old = poisoned(lead(healthy_run()))
    written = json.loads(json.dumps(ledger.facts(old.engine.state)))
    assert written["term"] == 4
    new = poisoned(follower(healthy_run()))
    lead(new, 5, "node-1", ledger=written)
    state = new.engine.state
    assert [i.id for i in state.incidents if i.open] == [i.id for i in old.engine.state.incidents if i.open]
    assert state.next_directive == old.engine.state.next_directive
    assert state.deeds == old.engine.state.deeds
    new.step(23, loss=NAN, step_applied=1.0)
    assert not sent(new), "the old one's directive is on its way: its answer, or its time, is waited for"
    assert state.incident_count == 1, "and the same cause is the same incident"


def test_a_ledger_that_cannot_be_read_leads_to_nothing() -> None:
    """A leader that knows no history only observes."""
    story = lead(poisoned(follower(healthy_run())), ledger={"version": 99})
    story.step(23, loss=NAN)
    assert story.engine.state.settings.distrust
    assert not sent(story)


def test_a_term_never_goes_back() -> None:
    """An old word about who leads changes who does, but not what has been counted."""
    story = lead(healthy_run(), 9)
    story.command("stand", **{"as": "follower", "node": "node-0", "leader": "", "term": 2})
    assert story.engine.state.standing.term == 9
    assert story.engine.state.standing.follows


def test_a_word_that_is_none_changes_nothing() -> None:
    """It is written down, as every word that is not understood."""
    story = healthy_run()
    story.command("stand", **{"as": "king", "term": 1})
    story.command("stand", **{"as": "leader", "term": "1"})
    assert story.engine.state.standing.word == "alone"


# -- what is forwarded --------------------------------------------------------------------------------


def beside_another(world: int = 4) -> Story:
    """A leader with ranks 0 and 1; those of node-1 are forwarded."""
    story = lead(Story(world=world))
    story.batch(*(story.hello(r) for r in (0, 1)), Forwarded("node-1", tuple(story.hello(r) for r in (2, 3))))
    for step in range(1, 21):
        both(story, step)
    return story


def both(story: Story, step: int, **values: float) -> None:
    """All four tell a step; ``values`` are rank 3's."""
    story.at += 1.0
    own = tuple(story.record(step, r) for r in (0, 1))
    theirs = Forwarded("node-1", (story.record(step, 2), story.record(step, 3, **values)))
    story.batch(*own, theirs)


def test_what_is_forwarded_is_looked_at_like_what_is_read() -> None:
    """A rank of another node that shows a NaN opens the run's incident, at the one who decides."""
    story = beside_another()
    assert not story.engine.state.buckets
    assert story.engine.state.processes["trainer/3"].node == "node-1"
    both(story, 21, grad_norm=NAN)
    both(story, 22, grad_norm=NAN)
    assert [i.kind for i in story.engine.state.incidents] == ["nonfinite"]


def test_a_replay_decides_the_same() -> None:
    """What followers forward is an input like any other; a snapshot in the middle changes nothing."""
    story = beside_another()
    story.batch(SourceState("node node-1", SourceWord.STALE, "not heard"))
    both(story, 21, grad_norm=NAN)
    whole, restored = Engine(), Engine()
    for given in story.inputs[:20]:
        restored.feed(given)
    restored = Engine.restore(restored.snapshot())
    told = [e for given in story.inputs for e in whole.feed(given)]
    again = [e for given in story.inputs[20:] for e in restored.feed(given)]
    assert told == story.entries
    assert again == told[-len(again) :]


def test_ranks_that_are_not_heard_are_unseen_and_not_dead() -> None:
    """No step waits for them, no stall is told of them, and when they are heard again all is as before."""
    story = beside_another()
    story.batch(SourceState("node node-1", SourceWord.STALE, "not heard for 12 s: ranks 2, 3 are not seen"))
    for step in range(21, 30):
        story.at += 300.0
        story.batch(*(story.record(step, r) for r in (0, 1)))
        assert not story.engine.state.buckets, "it waits for nobody"
    assert not story.engine.state.incidents
    story.batch(SourceState("node node-1", SourceWord.FRESH, "heard again"))
    assert story.engine.state.unseen == 0


def test_no_action_on_the_word_of_ranks_that_are_not_heard_any_more() -> None:
    """What they said last may long be over; what a rank that is seen says is acted on all the same."""
    story = beside_another()
    own = [story.record(21, r) for r in (0, 1)]
    theirs = Forwarded("node-1", (story.record(21, 2), story.record(21, 3, grad_norm=NAN)))
    story.batch(*own, theirs, SourceState("node node-1", SourceWord.STALE, "not heard for 12 s"))
    (incident,) = story.engine.state.incidents
    assert incident.state == "held" and incident.why.startswith("blind: node node-1"), incident.why
    assert not sent(story)
    for step in (22, 23):
        story.at += 1.0
        story.batch(*(story.record(step, r, loss=NAN) for r in (0, 1)))
    assert sent(story)


def test_an_order_to_the_trainer_waits_for_the_agent_beside_rank_zero() -> None:
    """Whoever stands in for it cannot lay a directive where the trainer reads it, and says so."""
    story = lead(Story(world=2), node="node-1")
    story.batch(story.hello(1), Forwarded("node-0", (story.hello(0),)))
    for step in range(1, 24):
        story.at += 1.0
        bad = {"loss": NAN} if step > 20 else {}
        told: tuple[Record, ...] = (story.record(step, 0, **bad),)
        story.batch(story.record(step, 1, **bad), Forwarded("node-0", told))
    (incident,) = story.engine.state.incidents
    assert incident.why == "the agent beside rank 0, on node-0, is gone"
    assert not sent(story)


def told(state: str, rule: str = "GpuFellOffTheBus") -> Batch:
    alert = AlertTold(f"{rule}{{rank=0,role=gpu}}", rule, {"role": "gpu", "rank": "0"}, state, 5, 7, 79.0, "Xid 79")
    return Batch(1030.0, (Forwarded("node-1", (alert,)),))


def test_an_alert_of_another_node_stands_until_that_node_ends_it() -> None:
    """Its own GPU's trouble opens an incident here, under that node's name; no detector here clears it."""
    story = beside_another()
    rule = next(r.alert for r in story.engine._pack().rules if r.incident == "hardware")
    story.feed(told("firing", rule))
    key = f"{rule}{{rank=0,role=gpu,node=node-1}}"
    assert story.engine.state.alerts[key].labels["node"] == "node-1"
    assert [i.kind for i in story.engine.state.incidents] == ["hardware"]
    both(story, 21)
    story.feed(told("firing", rule))
    assert key in story.engine.state.alerts
    assert len([e for e in story.entries if e.kind == EntryKind.ALERT and e.subject == key]) == 1, "told once"
    story.feed(told("resolved", rule))
    assert key not in story.engine.state.alerts


def test_an_alert_of_a_rule_that_is_not_here_is_passed_over() -> None:
    """Its node has another pack: nobody here could say what to do about it."""
    story = beside_another()
    story.feed(told("firing", "NobodysRule"))
    assert not story.engine.state.alerts


@pytest.mark.parametrize("heard", [True, False], ids=["rank 0 is elsewhere", "rank 0 was never heard of"])
def test_who_stands_in_restarts_no_single_node(heard: bool) -> None:
    """Its own launcher begun anew would go on from where nobody else does; only a job's restart reaches all."""
    story = lead(Story(world=2), node="node-1").supervisor()
    if heard:
        story.batch(Forwarded("node-0", (story.hello(0),)))
    story.batch(story.hello(1))
    story.checkpoint(10)
    for step in range(1, 24):
        story.at += 1.0
        bad = {"loss": NAN, "params_finite": 0.0} if step > 20 else {}
        theirs = (Forwarded("node-0", (story.record(step, 0, **bad),)),) if heard else ()
        story.batch(story.record(step, 1, **bad), *theirs)
    story.died(1, rank=1)
    story.at += 5.0
    story.tick()
    assert not sent(story)
    assert any("beside rank 0" in i.why for i in story.incidents), [i.why for i in story.incidents]


def test_a_supervisor_is_let_go_only_where_another_decides_for_sure() -> None:
    """While nobody is known to lead, or rank 0 is here, a restart may yet be ordered: its supervisor waits."""
    for leader, here, let_go in (("", False, False), ("node-0", False, True), ("node-0", True, False)):
        story = Story(world=2)
        story.batch(*((story.hello(0),) if here else ()), story.hello(1)).clear()
        story.supervisor()
        story.command("stand", **{"as": "follower", "node": "node-1", "leader": leader, "term": 3})
        story.died(-9)
        story.tick()
        assert bool([e for e in story.entries if e.state == "released"]) is let_go, (leader, here)


def test_what_people_said_at_the_last_leader_is_how_they_said_it_last() -> None:
    """Resumed and disarmed there, it does not come back paused and armed because it was so here before."""
    first = lead(healthy_run())
    first.command("pause")
    assert first.engine.state.settings.paused
    first.command("stand", **{"as": "follower", "node": "node-0", "leader": "node-1", "term": 5})
    second = follower(healthy_run())
    lead(second, 5, "node-1", ledger=json.loads(json.dumps(ledger.facts(first.engine.state))))
    assert second.engine.state.settings.paused
    second.command("resume")
    lead(first, 6, ledger=json.loads(json.dumps(ledger.facts(second.engine.state))))
    assert not first.engine.state.settings.paused


def test_a_rank_that_begins_anew_on_a_node_that_is_heard_is_seen() -> None:
    """Moved from a node that fell silent: no hang of it is missed for ever."""
    story = beside_another()
    story.batch(SourceState("node node-1", SourceWord.STALE, "not heard"))
    assert story.engine.state.unseen == 2
    story.batch(Forwarded("node-9", (story.hello(3),)))
    assert story.engine.state.unseen == 1 and not story.engine.state.processes["trainer/3"].unseen


def test_what_a_node_told_ends_with_its_last_rank() -> None:
    """A GPU's alert of a node that was replaced pages nobody for ever."""
    story = beside_another()
    rule = next(r.alert for r in story.engine._pack().rules if r.incident == "hardware")
    story.feed(told("firing", rule))
    for rank in (2, 3):
        story.batch(Forwarded("node-9", (story.hello(rank),)))
    story.batch(SourceState("node node-1", SourceWord.FRESH, "no rank of the run is on it any more"))
    assert not [a for a in story.engine.state.alerts.values() if a.node]
    assert "node node-1" not in story.engine.state.sources
