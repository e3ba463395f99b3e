"""Ranks and lives: a job that ends ends all of its ranks, a smaller one leaves none behind, a metric may lie."""

import pytest
from run_story import NAN, Story, healthy_run

from gyrostat_rules import series


def test_a_job_begun_with_fewer_ranks_leaves_none_behind() -> None:
    """Ranks that the new life has not are no stall, for ever after, and keep no step waiting."""
    story = Story(world=4).begin().steps(1, 30)
    story.world = 2
    story.begin(life="life-b").steps(31, 32)
    story.tick(910.0)
    assert {key.partition("rank=")[2][0] for key in story.engine.state.alerts} == {"0", "1"}
    assert set(story.engine.state.processes) == {"trainer/0", "trainer/1"}


def test_a_launcher_that_died_took_its_ranks_with_it() -> None:
    """The supervisor sees one process end; its ranks are not stalled two minutes later."""
    story = Story(world=4).begin().supervisor().steps(1, 30)
    story.died(-9)
    story.tick(910.0)
    assert {i.kind for i in story.incidents} == {"crash"}


def test_a_nan_of_another_rank_that_the_job_died_on_is_confirmed() -> None:
    """One rank's NaN in its last record, then the launcher ends: that is a poisoned run and no mere crash."""
    story = Story(world=2).begin().supervisor().checkpoint(10).steps(1, 30)
    story.at += 1.0
    story.batch(story.record(31), story.record(31, 1, loss=NAN, step_applied=0.0))
    story.died()
    assert (story.incident.kind, story.sent()) == ("nonfinite", ["restart"])


def test_a_measurement_that_never_was_finite_is_no_incident() -> None:
    """An entropy that is NaN from the first step on, while loss and gradient are well, costs no run its life."""
    story = Story().begin().checkpoint(10)
    for step in range(1, 60):
        story.step(step, entropy=NAN)
    assert not story.incidents and "NonFiniteValue/0" in story.alerts
    story.applied(60, entropy=NAN)
    assert story.incident.onset == 60


def test_the_spread_of_a_single_sample_is_undefined() -> None:
    """torch.std of one value is NaN in every healthy run."""
    story = healthy_run().steps(21, 22)
    story.step(23, reward_std=0.1)
    story.step(24, reward_std=NAN)
    assert not story.incidents and list(story.alerts) == ["UndefinedValue/0"]


def test_a_parameter_that_is_not_finite_needs_no_other_witness() -> None:
    """An expert that nobody routes to is NaN in no loss."""
    story = healthy_run()
    story.step(21, params_finite=0.0)
    assert (story.incident.kind, story.incident.onset, story.incident.update_applied) == ("nonfinite", 21, True)


@pytest.mark.parametrize(
    "name",
    [
        "train_loss",
        "loss/train",
        "lm loss",
        "total_loss",
        "critic/rewards/mean",
        "global_grad_norm",
        "actor/entropy_loss",
    ],
)
def test_a_loss_is_known_by_any_trainers_name(name: str) -> None:
    """What Megatron, Lightning, verl and TensorBoard call it."""
    assert series.meaning(name) == series.POISON


@pytest.mark.parametrize(
    "name", ["best_loss", "eval_loss", "val/loss", "loss_scale", "advantage_std", "loss/max", "lr"]
)
def test_what_only_sounds_like_a_loss_is_none(name: str) -> None:
    """A best loss is infinite before the first evaluation."""
    assert series.meaning(name) == series.UNDEFINED
