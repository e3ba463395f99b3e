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


def changed(ledger: Any, path: str, value: Any) -> Any:
    """The ledger with one value in it changed; the path is of keys and places, parted by dots."""
    names: list[Any] = [int(n) if n.isdecimal() else n for n in path.split(".")]
    place = ledger
    for name in names[:-1]:
        place = place[name]
    place[names[-1]] = value
    return ledger


def _nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


ABSURD = [
    ("next_directive", -1), ("next_directive", 0), ("next_directive", 1 << 70), ("next_directive", 2.5),
    ("next_directive", True), ("next_directive", 10**400), ("incident_count", -5), ("segment", 1 << 60),
    ("segment", "0"), ("run", 7), ("paused", "yes"), ("tags", {"a": "b"}), ("trials", [["i1", "cold", 3]]),
    ("incidents.0.0", 7), ("incidents.0.1", "a kind of later"), ("incidents.0.2", "flying"),
    ("incidents.0.2", "resolved"), ("incidents.0.3", "twenty"), ("incidents.0.3", 1 << 64), ("incidents.0.6", {"a": 1}),
    ("incidents.0.8", _nested(60)), ("incidents.0.10", -1), ("incidents.0.11", []),
    ("incidents.0.11.0.1", "i0099"), ("incidents.0.11.0.3", "levitate"),
    ("incidents.0.11.0.13", -2), ("deeds.0.0", "a kind of later"), ("deeds.0.2", None), ("deeds.0.2", "21"),
    ("closed", [["nonfinite", "rollback", 1, {"~": "huge"}]]), ("jumps", [[0, 1 << 90]]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), ABSURD, ids=lambda v: str(v)[:20])
def test_what_no_run_can_have_done_is_distrusted(path: str, value: Any) -> None:
    """JSON as it should be, and values that would end the agent later, in the middle of deciding: at every start."""
    story = healthy_run().supervisor()
    story.applied(21)
    story.engine.state.segment = 1
    after = Story()
    after.command("ledger", **changed(written(story), path, value))
    state = after.engine.state
    assert "cannot be read" in state.settings.distrust and len(state.settings.distrust) < 400
    assert (state.incidents, state.deeds, state.next_directive) == ([], [], 1)
    after.begin(last=1).checkpoint(15).steps(16, 20)
    after.applied(21)
    assert after.sent() == []


def test_one_that_a_newer_agent_wrote_says_so() -> None:
    """The reason is what to do about it."""
    after = Story()
    after.command("ledger", **{**written(healthy_run()), "version": VERSION + 1})
    assert after.engine.state.settings.distrust.endswith("a newer agent wrote it: upgrade this one")


def test_what_an_older_agent_wrote_is_taken_up() -> None:
    """A deed without its rung, an incident without what came later, no trials: the budgets go on."""
    story = healthy_run()
    story.applied(21)
    old = written(story)
    del old["trials"]
    old["deeds"] = [deed[:4] for deed in old["deeds"]]
    old["incidents"] = [incident[:20] for incident in old["incidents"]]
    after = Story()
    after.command("ledger", **old)
    state = after.engine.state
    assert (state.settings.distrust, len(state.deeds), state.deeds[0].rung) == ("", 1, -1)


def test_one_of_another_run_is_taken_up_and_said() -> None:
    """The same checkpoints under another name have the same history: numbers and budgets go on."""
    story = healthy_run()
    story.applied(21)
    after = Story()
    after.command("configure", mode="act", approvals=False, run="another")
    after.command("ledger", **written(story))
    assert after.engine.state.next_directive == 2
    assert any(e.text.startswith("ledger of run run read: 1 open incidents") for e in after.entries)


@pytest.mark.parametrize("moment", ["planned", "held", "acting", "probation", "undoing", "resolved"])
def test_every_state_of_an_incident_is_plausible(moment: str) -> None:
    """What this agent writes, it takes up again."""
    story = healthy_run(approvals=moment == "held")
    if moment == "planned":
        story.command("pause")
    story.applied(21)
    if moment not in ("planned", "held", "acting"):
        story.ack(step=22)
    if moment == "resolved":
        story.steps(16, 40)
    after = Story()
    after.command("ledger", **written(story))
    assert after.engine.state.settings.distrust == ""


@pytest.mark.parametrize(
    "name",
    sorted(
        facts(Story().engine.state).keys()
        - {"run", "paused", "tags", "trials", "armed", "armed_as", "silences", "silence_count"}
    ),
)
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
