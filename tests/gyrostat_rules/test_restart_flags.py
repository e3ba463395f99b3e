"""A restart that turns flags: for a trainer that is known by its log alone, after a plain restart did not hold."""

from run_story import KNOBS, Story

from gyrostat.wire import Ack, Directive, KnobState, Resume
from gyrostat_rules.inputs import Answer

CLIP = KnobState("max_grad_norm", 0.8, 0.008, 0.8, 2.0)


def log_alone(*flags: KnobState) -> Story:
    """A run under a supervisor that can turn these flags, whose trainer died on a NaN; plainly restarted in vain."""
    story = Story().begin(procedures=(), knobs=()).supervisor(*flags)
    story.checkpoint(10).checkpoint(15).steps(1, 20)
    story.applied(21)
    story.died()
    assert story.sent() == ["restart"] and story.action.knobs == []
    restarted(story, "life-b")
    story.steps(story.action.arguments["step"] + 1, 20)
    story.applied(21)
    story.died()
    return story


def restarted(story: Story, life: str) -> None:
    """The supervisor answers for its trainer, which begins anew where its flags say."""
    action = story.action
    flags = {"flags": f"--resume_from_checkpoint {action.arguments['checkpoint']}"}
    ack = Ack(action.number, action.id, Ack.APPLIED, 0, detail=flags, values={c.name: c.value for c in action.knobs})
    story.batch(Answer("supervisor", 0, "super-a", ack))
    story.segment = story.engine.state.segment
    story.begin(life=life, procedures=(), knobs=())


def test_what_comes_back_is_restarted_with_a_flag_turned() -> None:
    """Half the clipping, told with the restart itself, and not as a knob that is set while it runs."""
    story = log_alone(CLIP)
    assert story.sent() == ["restart", "restart"]
    action = story.action
    assert [(c.name, c.expect, c.value) for c in action.knobs] == [("max_grad_norm", 0.8, 0.4)]
    directive = Directive.decode(action.orders["directive"].encode())
    assert (directive.role, directive.knobs, directive.arguments["knobs"]) == (
        "supervisor", (), {"max_grad_norm": 0.4}
    )  # fmt: skip
    assert Resume.decode(action.orders["resume"].encode()).knobs == {}
    assert action.explanation.startswith("with max_grad_norm 0.8 to 0.4; ")


def test_a_flag_stays_when_the_incident_is_over() -> None:
    """Nobody could turn it back but by another restart: it is not sent to a trainer that knows no such knob."""
    story = log_alone(CLIP)
    restarted(story, "life-c")
    story.steps(story.action.arguments["step"] + 1, 60)
    assert story.incident.state == "resolved" and story.sent() == ["restart", "restart"]


def test_where_no_flag_is_known_it_is_passed_by_in_words() -> None:
    """The same restart once more would prove nothing."""
    story = log_alone()
    assert story.sent() == ["restart"]
    assert any("no flag of the command is known for max_grad_norm" in a.reason for a in story.incident.actions)


def test_a_flag_at_its_bound_is_passed_by() -> None:
    """It has been halved until nothing was left of it."""
    story = log_alone(CLIP._replace(value=0.008))
    assert story.sent() == ["restart"]


def test_a_trainer_with_knobs_of_its_own_has_its_flags_left_alone() -> None:
    """It turns them as it runs, and a checkpoint brings them back."""
    story = Story().begin(knobs=KNOBS).supervisor(CLIP)
    story.checkpoint(5).checkpoint(10).checkpoint(15).steps(1, 20)
    story.applied(21)
    for life in ("life-b", "life-c"):
        story.died()
        if story.action.remedy != "restart" or not story.action.number:
            break
        story.restarted(life)
        story.steps(story.action.arguments["step"] + 1, 20)
        story.applied(21)
    assert all(a.knobs == [] for i in story.incidents for a in i.actions if a.remedy == "restart")
