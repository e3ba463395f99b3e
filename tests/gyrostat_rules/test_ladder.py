"""The ladder: the mildest rung that fits, what is passed by and why, and where it ends."""

import pytest
from run_story import CORE, KNOBS, NAN, Story, healthy_run

from gyrostat.wire import Directive, KnobState, Resume
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Pack

KNOBBED = """\
pack: knobbed
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
    cooldown: 0
    rungs:
      - remedy: rollback
        horizon: 5
        irreversible: true
        knobs: [{name: lr_scale, times: 0.1}, {name: max_grad_norm, to: 1.0}]
      - {remedy: stop, irreversible: true}
"""


STALL_ONLY = """\
pack: less
groups:
  - name: g
    rules:
      - {alert: S, detector: stall, severity: critical, incident: stall}
playbooks:
  - {incident: stall, rungs: [{remedy: page}]}
"""


def passed_by(story: Story) -> dict[str, str]:
    """Remedies that did not fit, and why."""
    told = story.told(EntryKind.ACTION, "passed by")
    return {e.data["remedy"]: e.text for e in told}


@pytest.mark.parametrize(
    ("more", "arguments"),
    [
        pytest.param({"suspect_item": 77.0}, {"items": [77]}, id="by item"),
        pytest.param({}, {"cursor": [352, 368]}, id="by cursor range"),
    ],
)
def test_poisoned_data_are_passed_over_first(more: dict[str, float], arguments: dict[str, list[int]]) -> None:
    """Skipped twice and not applied: the mildest remedy, aimed as narrowly as the trainer can tell."""
    story = healthy_run()
    story.skipped(21, **more)
    story.skipped(22, **more)
    assert (story.sent(), story.action.arguments) == (["skip_data"], arguments)


def test_an_applied_step_is_rolled_back() -> None:
    """Passing data over does not take a bad update back."""
    story = healthy_run()
    story.applied(21, suspect_item=77.0)
    assert story.sent() == ["rollback"]
    assert "a bad update was applied" in passed_by(story)["skip_data"]
    assert story.action.arguments == {
        "checkpoint": "/ck/step-15-s0",
        "digest": "xxh3:15",
        "step": 15,
        "pass_over": [77],
    }


def test_what_the_trainer_cannot_do_is_passed_by() -> None:
    """A trainer without procedures is offered none, and the history says of each why."""
    story = Story().begin(procedures=()).checkpoint(10).steps(1, 20)
    story.applied(21)
    assert story.sent() == []
    assert {r: "does not offer" in why for r, why in passed_by(story).items() if r != "restart"} == {
        "skip_data": True,
        "rollback": True,
        "stop": True,
    }
    assert (story.incident.state, story.incident.why) == (
        "stopped",
        "no rung fits: the trainer does not offer 'stop'; a person is needed",
    )


def test_data_that_nobody_names_are_not_passed_over() -> None:
    """Without cursor or item there is nothing to skip: the next rung."""
    story = Story().begin().checkpoint(10).steps(1, 20)
    for step in (21, 22):
        row = story.record(step, loss=NAN, step_applied=0.0)
        for name in ("data_cursor", "data_items"):
            del row.values[name]
        story.batch(row)
    assert "do not say which data" in passed_by(story)["skip_data"]
    assert story.sent() == ["rollback"]


def test_a_dead_trainer_is_restarted_by_its_supervisor() -> None:
    """Nobody is left to roll back: the supervisor begins the process anew, from the certified checkpoint."""
    story = healthy_run().supervisor()
    story.skipped(21, suspect_item=77.0)
    story.died()
    assert story.sent() == ["restart"]
    directive = Directive.decode(story.action.orders["directive"].encode())
    resume = Resume.decode(story.action.orders["resume"].encode())
    assert (directive.role, directive.incarnation, directive.segment) == ("supervisor", "super-a", 0)
    assert (resume.checkpoint, resume.step, resume.pass_over) == ("/ck/step-15-s0", 15, (77,))
    story.restarted("life-b")
    story.steps(16, 31)
    assert story.incident.state == "resolved"
    assert [i.kind for i in story.incidents] == ["nonfinite"]


def test_each_rung_that_does_not_hold_leads_to_the_next_and_then_it_ends() -> None:
    """skip_data, rollback, rollback with smaller steps; then the budget is spent, and a person is asked."""
    story = healthy_run()
    story.skipped(21)
    story.skipped(22)
    story.ack(step=23)
    story.applied(23)
    assert story.sent() == ["skip_data", "rollback"]
    story.ack(step=24)
    story.steps(16, 20)
    story.applied(21)
    assert story.sent() == ["skip_data", "rollback", "rollback"]
    assert [(k.name, k.value) for k in story.action.knobs] == [("lr_scale", 0.5), ("max_grad_norm", 1.0)]
    story.ack(step=22)
    story.steps(11, 15)
    story.applied(16)
    assert story.incident.state == "stopped"
    assert "budget is spent" in story.incident.why
    assert [a.arguments["step"] for a in story.incident.actions if a.number and a.remedy == "rollback"] == [15, 10]


def test_all_rungs_spent_is_stopped() -> None:
    """A ladder that ends is told as ended; nothing begins anew from its first rung."""
    story = Story().begin().steps(1, 20)
    story.applied(21)
    assert story.sent() == ["stop"]
    story.ack("failed", reason="busy", step=22)
    story.applied(22)
    assert (story.incident.state, len(story.incidents), story.sent()) == ("stopped", 1, ["stop"])


@pytest.mark.parametrize("change", ["checkpoint gone bad", "trainer dies", "a shorter playbook"])
def test_a_held_action_that_no_longer_fits_is_planned_anew(change: str) -> None:
    """An approval given for what has become wrong must not carry it out."""
    story = healthy_run(approvals=True).supervisor()
    story.applied(21)
    old = story.action
    assert (old.remedy, old.verdict) == ("rollback", "hold")
    if change == "checkpoint gone bad":
        story.checkpoint(15, fit="unfit", why="digest differs")
        assert (story.action.remedy, story.action.arguments["step"]) == ("rollback", 10)
    elif change == "trainer dies":
        story.died()
        assert story.action.remedy == "restart"
    else:
        head = CORE.index("      - {remedy: skip_data")
        tail = CORE.index("  # A knob was turned by hand")
        stop = "      - {remedy: stop, irreversible: true}\n\n"
        story.feed(Pack(story.at, "short", CORE[:head] + stop + CORE[tail:]))
        assert (old.verdict, old.reason) == ("deny", "the playbook has changed")
    assert "no longer fits" in story.told(EntryKind.ACTION, "passed by")[-1].text or old.verdict == "deny"
    story.command("approve", action=old.id, by="Ada")
    assert story.sent() == []


def test_a_kind_without_a_playbook_is_stopped() -> None:
    """An incident for which nobody wrote a playbook is told, and ends; a held one too when its playbook goes."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.feed(Pack(story.at, "less", STALL_ONLY))
    assert (story.incident.state, story.incident.why) == ("stopped", "no playbook for nonfinite")


def test_knobs_are_turned_within_what_the_trainer_takes() -> None:
    """Bounds and largest change hold in the rule too: the trainer would refuse the rest."""
    story = healthy_run(pack=KNOBBED)
    story.applied(21)
    assert [(k.name, k.expect, k.value) for k in story.action.knobs] == [
        ("lr_scale", 1.0, 0.5),  # ten times less was wanted, twice at most is taken
        ("max_grad_norm", 2.0, 1.0),
    ]


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        pytest.param(KnobState("lr_scale", NAN, 0.01, 1.0), None, id="reads NaN"),
        pytest.param(KnobState("lr_scale", 1.0, 0.4, 1.0), 0.4, id="at its bound"),
        pytest.param(KnobState("lr_scale", 1.0, 0.0, 1.0, None, 0.25), 0.75, id="largest step"),
        pytest.param(KnobState("other", 1.0, 0.0, 1.0), None, id="not offered"),
    ],
)
def test_a_knob_that_cannot_be_turned_is_left_alone(knob: KnobState, value: float | None) -> None:
    """A knob without a number, or that is not there, does not keep the remedy from being sent."""
    story = Story(pack=KNOBBED).begin(knobs=(knob,)).checkpoint(10).steps(1, 20)
    story.applied(21)
    assert story.sent() == ["rollback"]
    assert [k.value for k in story.action.knobs] == ([] if value is None else [value])


def test_knobs_are_given_back_when_the_incident_is_over() -> None:
    """A remedy's knob returns to its old value: the undo names the directive that it takes back."""
    story = healthy_run(pack=KNOBBED)
    story.applied(21)
    rollback = story.action
    story.ack(step=22)
    story.steps(16, 26)
    undo = story.action
    assert [(k.name, k.expect, k.value, k.undo_of) for k in undo.knobs] == [
        ("lr_scale", 0.5, 1.0, rollback.number),
        ("max_grad_norm", 1.0, 2.0, rollback.number),
    ]
    story.ack(step=27)
    assert (story.incident.state, undo.outcome, rollback.outcome) == ("resolved", "done", "done")


@pytest.mark.parametrize("way", ["refused", "failed", "turned", "died", "replaced", "overdue", "undelivered"])
def test_knobs_that_cannot_be_given_back_do_no_harm(way: str) -> None:
    """The run is mended: an undo that comes to nothing must not lead to the next, harsher rung."""
    story = healthy_run(pack=KNOBBED)
    story.applied(21)
    story.ack(step=22)
    story.steps(16, 26)
    assert story.action.remedy == "undo"
    if way in ("refused", "failed", "turned"):
        reason = "lr_scale reads 0.3: somebody else has turned it" if way == "turned" else "no"
        story.ack("failed" if way == "failed" else "refused", reason=reason, step=27)
    elif way == "died":
        story.died()
    elif way == "replaced":
        story.begin(life="life-b")
    elif way == "overdue":
        story.tick(200.0)
    else:
        story.delivery("failed")
    first = story.incidents[0]
    assert first.state == "resolved"
    assert "the knobs stay as they are" in first.why
    assert story.sent() == ["rollback", "undo"]


def test_a_directive_says_who_where_and_until_when() -> None:
    """The trainer checks all of it: run, incarnation, segment, expiry and the expected values."""
    story = healthy_run()
    story.applied(21)
    d = Directive.decode(story.action.orders["directive"].encode())
    assert (d.number, d.run, d.role, d.incarnation, d.segment) == (1, "run", "trainer", "life-a", 0)
    assert (d.action, d.procedure, d.expires_at) == (story.action.id, "rollback", story.at + 60.0)


def test_directive_numbers_go_on_from_what_the_trainer_has_applied() -> None:
    """A number is never used twice, whatever this agent remembers."""
    story = Story().begin(last=41).checkpoint(10).steps(1, 20)
    story.applied(21)
    assert story.action.number == 42


@pytest.mark.parametrize("knobs", [KNOBS, ()], ids=["knobs", "no knobs"])
def test_shadow_plans_and_does_nothing(knobs: tuple[KnobState, ...]) -> None:
    """In the default mode it is written down what would have been done, and nothing is."""
    story = Story(act=False).begin(knobs=knobs).checkpoint(10).steps(1, 20)
    story.applied(21)
    assert (story.action.remedy, story.action.verdict, story.action.reason) == ("rollback", "hold", "mode is shadow")
    assert story.sent() == []


def test_a_run_that_is_ill_when_first_seen_is_looked_at_before_it_is_treated() -> None:
    """An agent that comes late has no verdict on any checkpoint yet: it must not pass rollback by and stop the run."""
    story = Story()
    told = [story.record(step) for step in range(1, 21)] + [story.record(21, loss=NAN, step_applied=1.0)]
    story.batch(story.hello(), *told)
    assert story.sent() == []
    story.checkpoint(15)
    story.tick(6.0)
    assert story.sent() == ["rollback"]


def test_the_newest_checkpoint_being_ill_is_no_word_on_the_older_ones() -> None:
    """They are verified newest first: one saved after the onset comes alone, and older ones are still being read."""
    story = Story()
    told = [story.record(step) for step in range(1, 21)] + [story.record(21, loss=NAN, step_applied=1.0)]
    story.batch(story.hello(), *told)
    story.checkpoint(21)
    assert story.sent() == []
    story.checkpoint(15)
    assert story.sent() == ["rollback"]


def test_where_there_is_no_older_checkpoint_it_is_not_waited_for_long() -> None:
    """Five seconds after the first Hello what was not told of is not there, and the next rung is taken."""
    story = Story()
    told = [story.record(step) for step in range(1, 21)] + [story.record(21, loss=NAN, step_applied=1.0)]
    story.batch(story.hello(), *told)
    story.checkpoint(21)
    story.tick(6.0)
    passed = [entry.text for entry in story.told(EntryKind.ACTION, "passed by")]
    assert any("rollback does not fit: no certified checkpoint" in text for text in passed)
