"""Circumstances: what a person looks up first is told with the incident, as read back and never as assumed."""

import math

import pytest
from rows_told import Rows
from run_story import NAN, Story

from gyrostat.wire import KnobState
from gyrostat_rules.circumstances import circumstances
from gyrostat_rules.entries import Entry, EntryKind

WILD = {"reward_min": 0.0, "reward_max": math.inf, "reward_finite": 0.875}
CLIPPING = (KnobState("max_grad_norm", 2.0, 0.1, 4.0), KnobState("use_gepo", 1.0, 0.0, 1.0))
NUMBERS = pytest.mark.parametrize("kind", ["nonfinite", "divergence", "knobs"])


def said(kind: str, knobs: dict[str, float] | None = None, **values: float) -> str:
    """What is said of an incident of that kind after one row."""
    return circumstances(Rows(**(knobs or {})).tell(**values).state, kind)


def told(story: Story) -> list[Entry]:
    """The entries that tell circumstances."""
    return [e for e in story.told(EntryKind.INCIDENT) if e.data.get("circumstances")]


def poisoned(knobs: tuple[KnobState, ...], *rows: dict[str, float]) -> Story:
    """A healthy run whose last steps, from 21 on, are not finite."""
    story = Story().begin(knobs=knobs).checkpoint(10).checkpoint(15).steps(1, 20)
    for step, values in enumerate(rows, 21):
        story.skipped(step, **values)
    assert story.incident.kind == "nonfinite"
    return story


# -- numbers that broke --------------------------------------------------------------------------------------


def test_they_are_told_once_with_the_incident() -> None:
    """How far the batch ran, how much of it was finite, the advice, and the clipping: one entry at its opening."""
    story = poisoned(CLIPPING, WILD, WILD, WILD)
    (entry,) = told(story)
    assert entry.text == (
        "the batch's reward ran from 0 to inf, 87.5% finite: check data normalisation;"
        " clipping, read back: GEPO on, max_grad_norm 2"
    )
    assert (entry.subject, entry.state, entry.step) == (story.incident.id, "open", 22)
    assert (entry.data["incident_kind"], entry.data["onset"]) == ("nonfinite", 21)


def test_nothing_told_is_no_entry() -> None:
    """A trainer that tells neither its batch nor its clipping has nothing said about them."""
    assert not told(poisoned((), {}, {}))


def test_what_was_told_of_an_older_batch_is_not_told_of_this_one() -> None:
    """The extremes of the step before would be taken for those of the step that broke."""
    assert not told(poisoned((), WILD, {}))


@NUMBERS
def test_all_kinds_of_broken_numbers_have_them(kind: str) -> None:
    """A finite death and a knob turned by hand are looked into in the same way."""
    assert said(kind, {"kl_clamp": 5.0}, **WILD).endswith(
        "87.5% finite: check data normalisation; clipping, read back: kl_clamp 5"
    )


@pytest.mark.parametrize("kind", ["experts", "mismatch", "stall", "crash"])
def test_other_kinds_have_none(kind: str) -> None:
    """Nobody looks for the batch's extremes where a process is silent."""
    assert said(kind, {"max_grad_norm": 2.0}, **WILD) == ""


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        pytest.param(
            {"reward_min": -1.5, "reward_max": 2.0, "reward_finite": 1.0},
            "the batch's reward ran from -1.5 to 2, 100.0% finite",
            id="a healthy batch",
        ),
        pytest.param({"reward_min": 0.0, "reward_max": 1.0}, "the batch's reward ran from 0 to 1", id="no share"),
        pytest.param(
            {"input_min": NAN, "input_max": NAN},
            "the batch's input ran from nan to nan: check data normalisation",
            id="NaN",
        ),
        pytest.param(
            {"input_min": -math.inf, "input_max": 1.0},
            "the batch's input ran from -inf to 1: check data normalisation",
            id="endless downwards",
        ),
        pytest.param({"reward_min": 0.0, "reward_finite": 0.5}, "", id="half of the span"),
        pytest.param({"reward_max": 0.0}, "", id="the other half"),
        pytest.param({"reward_finite": 0.5}, "", id="the share alone"),
        pytest.param({"reward": 0.5, "loss": NAN}, "", id="none of it"),
        pytest.param(
            {"reward_min": 0.0, "reward_max": 1.0, "advantage_min": -2.0, "advantage_max": math.inf},
            "the batch's reward ran from 0 to 1; "
            "the batch's advantage ran from -2 to inf: check data normalisation",
            id="two quantities",
        ),
    ],
)  # fmt: skip
def test_the_span_of_a_batch(values: dict[str, float], wanted: str) -> None:
    """The advice stands where a value is not finite and nowhere else; what is half told is not told."""
    assert said("nonfinite", **values) == wanted


def test_one_bad_item_of_a_large_batch_is_not_rounded_away() -> None:
    """Of 4096 rewards one is infinite: whoever reads that all are finite looks elsewhere."""
    assert "100.0% finite" not in said("nonfinite", reward_min=0.0, reward_max=math.inf, reward_finite=4095 / 4096)


@pytest.mark.parametrize(
    ("knobs", "wanted"),
    [
        ({"use_gepo": 0.0}, "clipping, read back: GEPO off"),
        ({"use_gepo": 1.0, "mask_degenerate": 0.0},
         "clipping, read back: GEPO on, masking of groups without spread off"),
        ({"eps_lo": 0.2, "eps_hi": 0.28, "max_grad_norm": 1.0},
         "clipping, read back: max_grad_norm 1, eps_lo 0.2, eps_hi 0.28"),
        ({"ratio_cap": 20.0, "use_gepo": 1.0}, "clipping, read back: GEPO on, ratio_cap 20"),
        ({"lr_scale": 1.0}, ""),
    ],
    ids=["off", "switches", "numbers", "both", "no clipping"],
)  # fmt: skip
def test_clipping_is_told_as_it_reads(knobs: dict[str, float], wanted: str) -> None:
    """What the trainer offers and no more: what is not offered is not known to be off."""
    assert said("nonfinite", knobs) == wanted


def test_clipping_that_a_directive_has_set_is_told_as_it_is_now() -> None:
    """The trainer says Hello again once it has obeyed, and that is what counts."""
    story = Story().begin(knobs=CLIPPING)
    story.batch(story.hello(knobs=(CLIPPING[0]._replace(value=0.5),)))
    story.steps(1, 20)
    story.applied(21)
    assert told(story)[0].text == "clipping, read back: max_grad_norm 0.5"


def test_clipping_that_a_hand_has_switched_off_is_not_told_as_on() -> None:
    """The newest record reads 1e9: to say that the gradient was clipped at 2 sends the engineer the wrong way."""
    assert "max_grad_norm 2" not in said("knobs", {"max_grad_norm": 2.0}, max_grad_norm=1e9)


def test_a_trainer_that_died_of_it_has_told_them() -> None:
    """Its last words are the very ones that are looked for."""
    story = Story().begin(knobs=CLIPPING).supervisor().steps(1, 20)
    story.skipped(21, **WILD)
    story.died()
    assert "check data normalisation" in told(story)[0].text


# -- entropy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("knobs", "bonus", "wanted"),
    [
        ({"token_entropy_flow_control": 0.0, "alpha_max": 0.0}, 0.0,
         "the trainer's own control is off (token_entropy_flow_control and alpha_max 0)"),
        ({"alpha_max": 0.0}, 0.0, "the trainer's own control is off (alpha_max 0)"),
        ({"token_entropy_flow_control": 1.0, "alpha_max": 0.1}, 0.05, "the trainer's own control is at work"),
        ({"token_entropy_flow_control": 1.0, "alpha_max": 0.0}, 0.0, "the trainer's own control is at work"),
        ({"token_entropy_flow_control": 1.0, "alpha_max": 0.1}, 0.1,
         "the trainer's own control is at its limit (entropy_bonus 0.1)"),
        ({"max_grad_norm": 2.0}, 0.0, ""),
        ({}, 0.0, ""),
    ],
    ids=["off", "all there is off", "at work", "half of it", "saturated", "other knobs", "no knobs"],
)  # fmt: skip
def test_entropy_has_the_word_on_the_trainers_own_control(knobs: dict[str, float], bonus: float, wanted: str) -> None:
    """Whether it is at work, and nothing of the batch; nothing at all where there is none."""
    rows = Rows(**knobs).column("entropy", [0.5, 0.4, 0.3], entropy_bonus=bonus, **WILD)
    assert circumstances(rows.state, "entropy") == wanted


def test_a_run_without_a_trainer_has_none() -> None:
    """Records of another rank alone say nothing about rank 0's batch."""
    assert circumstances(Rows(rank=1).tell(**WILD).state, "nonfinite") == ""


def test_a_batch_of_which_nothing_is_known_opens_its_incident() -> None:
    """An empty batch's share of finite values is itself NaN: that must not stop what it is told of."""
    story = Story().begin().steps(1, 20)
    bad = {"reward_min": NAN, "reward_max": NAN, "reward_finite": NAN}
    for step in (21, 22):
        story.step(step, loss=NAN, step_applied=0.0, **bad)
    assert story.incident.kind == "nonfinite"
    assert any("ran from nan to nan: check data normalisation" in e.text for e in story.entries)
