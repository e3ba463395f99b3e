"""The ledger: what must outlive the pod comes back from it, and one that cannot be read is distrusted."""

import json
from typing import Any

import pytest
from run_story import Story, healthy_run

from gyrostat_rules.ledger import VERSION, facts


def written(story: Story) -> dict[str, Any]:
    """The facts as a file gives them back."""
    return dict(json.loads(json.dumps(facts(story.engine.state), allow_nan=False)))


def test_budgets_numbers_and_what_was_tried_come_back() -> None:
    """A new pod goes on where the old one stood: the reboot loop begins where the monitor forgets."""
    story = healthy_run()
    story.applied(21)
    story.ack(step=22)
    after = Story()
    after.command("ledger", **written(story))
    old, new = story.engine.state, after.engine.state
    assert (new.deeds, new.closed, new.jumps, new.incidents) == (old.deeds, old.closed, old.jumps, old.incidents)
    assert (new.next_directive, new.incident_count, new.segment, new.run) == (2, 1, 1, "run")


def test_an_open_incident_waits_for_the_trainer_to_be_seen() -> None:
    """Taken up before anybody has said Hello: nothing is passed by for want of a trainer that is only starting."""
    story = healthy_run(approvals=True)
    story.applied(21)
    after = Story(approvals=True)
    after.command("ledger", **written(story))
    assert after.incident.state == "held"
    assert not any("passed by" in e.state for e in after.entries)
    after.begin(life="life-b").checkpoint(15).steps(16, 18)
    assert after.incident.state == "held"


def test_a_restart_under_way_is_answered_in_the_new_pod() -> None:
    """The action that ended the pod is the one that the new trainer answers."""
    story = healthy_run().supervisor()
    story.skipped(21)
    story.died()
    after = Story()
    after.command("ledger", **written(story))
    after.segment = 0
    after.restarted("life-b")
    assert after.incident.state == "probation"
    after.tick(60.0)
    after.steps(16, 40)
    assert after.incident.state == "resolved"


@pytest.mark.parametrize(
    "change",
    [
        {"version": VERSION + 1}, {"version": None}, {"incidents": 5}, {"incidents": ["abc"]}, {"incidents": [[1, 2]]},
        {"deeds": None}, {"deeds": [{}]}, {"closed": "x"}, {"jumps": [[1]]}, {"next_directive": "many"},
        {"next_directive": float("inf")}, {"incident_count": []}, {"segment": None},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_read_is_distrusted(change: dict[str, Any]) -> None:
    """A run with a history but no readable ledger is only observed; nothing is half taken up."""
    story = healthy_run()
    story.applied(21)
    after = Story()
    after.command("ledger", **{**written(story), **change})
    state = after.engine.state
    assert "cannot be read" in state.settings.distrust
    assert (state.incidents, state.deeds, state.next_directive) == ([], [], 1)


@pytest.mark.parametrize("name", sorted(facts(Story().engine.state).keys() - {"run", "paused", "tags"}))
def test_a_missing_field_is_distrusted(name: str) -> None:
    """Each field counts."""
    ledger = written(healthy_run())
    del ledger[name]
    after = Story()
    after.command("ledger", **ledger)
    assert after.engine.state.settings.distrust


def test_it_says_what_it_found() -> None:
    """The first line of the new pod's history is what the old one left."""
    story = healthy_run()
    story.applied(21)
    after = Story()
    after.command("ledger", **written(story))
    assert "ledger read: 1 open incidents, 1 actions so far, next directive 2" in [e.text for e in after.entries]
