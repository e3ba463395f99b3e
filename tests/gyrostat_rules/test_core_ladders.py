"""What the core pack does about entropy and experts with knobs: which rung follows, what stays, what goes back."""

from itertools import pairwise

import pytest
from run_story import Story

from gyrostat.wire import ExpertLoad, KnobState
from gyrostat_rules.entries import EntryKind

SWITCH = KnobState("token_entropy_flow_control", 0.0, 0.0, 1.0, None)
BONUS = KnobState("alpha_max", 0.0, 0.0, 1.0, None)
ROUTER = tuple(KnobState(n, 0.0, 0.0, 0.1, None) for n in ("router_aux_coef", "router_z_coef", "router_bias_rate"))


def now_at(story: Story, step: int) -> None:
    """The trainer obeys the newest directive, and says Hello with its knobs as they are then."""
    knobs = story.engine.state.processes["trainer/0"].knobs
    wanted = {c.name: c.value for c in story.action.knobs}
    turned_now = [k._replace(value=wanted.get(k.name, k.value)) for k in knobs.values()]
    story.batch(story.hello(last=story.action.number, knobs=turned_now))
    story.ack(step=step, values={k.name: k.value for k in turned_now})


@pytest.mark.parametrize(
    ("works", "sent", "kept"),
    [
        pytest.param(("opefo_lambda", "entropy_bonus"), ["turn"], [1.0, 0.1], id="both work"),
        pytest.param(("opefo_lambda",), ["turn", "undo", "turn"], [1.0, 0.0], id="the bonus is inert"),
        pytest.param(
            ("entropy_bonus",), ["turn", "undo", "turn", "undo", "turn"], [0.0, 0.1], id="the switch is inert"
        ),
    ],
)
def test_of_entropys_controls_the_one_that_works_is_found_and_kept(
    works: tuple[str, ...], sent: list[str], kept: list[float]
) -> None:
    """Entropy that nothing held up: four steps for each try, and what has helped stays on when it is over."""
    story = Story().begin(knobs=(SWITCH, BONUS))
    needed, held, tries = {"opefo_lambda": SWITCH.name, "entropy_bonus": BONUS.name}, False, list[int]()
    for step in range(1, 140):
        while story.incidents and story.incident.state == "acting":
            if story.action.remedy == "turn":
                tries.append(step)
            now_at(story, step)
        knobs = story.engine.state.processes["trainer/0"].knobs
        told = {name: 0.05 if name in works and knobs[knob].value else 0.0 for name, knob in needed.items()}
        held = held or (len(story.sent()) == len(sent) and sum(told.values()) > 0)
        now = 0.6 if step < 31 or held else 0.05
        story.step(step, entropy=now, entropy_average=now, entropy_floor=0.3, reward=0.8, **told)
    assert (story.incident.state, story.sent()) == ("resolved", sent)
    assert [k.value for k in knobs.values()] == kept
    assert all(later - earlier == 5 for earlier, later in pairwise(tries))
    assert all("inert" in e.text for e in story.told(EntryKind.ACTION, "ineffective"))


def test_the_router_keeps_what_it_lacked() -> None:
    """Of losses and bias that were missing a part is left in when the load is even: else experts go cold again."""
    story = Story().begin(knobs=ROUTER)

    def load(step: int, *counts: int) -> None:
        story.batch(story.record(step, load=ExpertLoad(1, 1, len(counts), counts), reward=0.8))

    for step in range(1, 16):
        load(step, *[4000] * 3, *[900] * 9, *[10] * 4)
    assert [(c.name, c.value) for c in story.action.knobs] == [
        ("router_aux_coef", 0.1), ("router_z_coef", 0.001), ("router_bias_rate", 0.005),
    ]  # fmt: skip
    now_at(story, 16)
    for step in range(16, 60):
        load(step, *[1200] * 16)
    assert [c[:3] for c in story.action.knobs] == [("router_aux_coef", 0.1, 0.03)]
    now_at(story, 60)
    assert (story.incident.state, story.sent()) == ("resolved", ["turn", "undo"])


@pytest.mark.parametrize("series", ["zero_advantage_fraction", "zero_adv_frac", "actor/frac_reward_zero_std"])
@pytest.mark.parametrize(
    ("shares", "found"), [([0.95] * 5, True), ([0.95] * 4, False), ([0.95, 0.95, 0.5, 0.95, 0.95], False),
                          ([0.9] * 9, False)],
    ids=["five", "four", "one with spread", "at the limit"],
)  # fmt: skip
def test_groups_without_spread_are_told_and_never_acted_on(series: str, shares: list[float], found: bool) -> None:
    """Five steps in a row with nine groups in ten alike are a word to the reader, whatever the trainer calls them."""
    story = Story().begin().steps(1, 20)
    for step, share in enumerate(shares, 21):
        story.step(step, **{series: share})
    assert (list(story.alerts) == ["GroupsWithoutSpread/0"]) is found
    assert not story.incidents


def test_a_death_by_another_cause_is_no_word_against_the_knobs() -> None:
    """A NaN kills the trainer while the router's knobs are watched: that is mended, and nobody is asked of these."""
    story = Story().begin(knobs=ROUTER).supervisor().checkpoint(10)
    for step in range(1, 16):
        story.batch(story.record(step, load=ExpertLoad(1, 1, 16, (*[4000] * 3, *[900] * 9, *[10] * 4)), reward=0.8))
    now_at(story, 16)
    experts = story.incident
    story.batch(story.record(17, load=ExpertLoad(1, 1, 16, (1200,) * 16), reward=0.8))
    assert (experts.kind, experts.state) == ("experts", "probation")
    story.applied(18, params_finite=0.0)
    story.died(1)
    assert [i.kind for i in story.incidents] == ["experts", "nonfinite"]
    assert experts.state == "resolved" and "another cause struck: i0002, nonfinite" in experts.why
    assert story.told(EntryKind.ACTION, "unknown") and not story.told(EntryKind.ACTION, "paged")
