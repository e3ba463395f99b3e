"""Values that are not finite: which of them alarm, how gravely, and from which step on."""

import math

import pytest
from run_story import NAN, Story, healthy_run

from gyrostat.wire import Exit, Record
from gyrostat_rules import series
from gyrostat_rules.detectors.nonfinite import classify
from gyrostat_rules.inputs import Died

POISON = sorted(series._POISON)


def test_one_bad_row_that_the_trainer_skips_is_a_warning_and_no_incident() -> None:
    """A NaN that the trainer's guard skipped is told, clears with the next record, and costs nobody's night."""
    story = healthy_run()
    story.skipped(21)
    assert list(story.alerts) == ["NonFiniteValue/0"]
    story.step(22)
    assert not story.alerts
    assert not story.incidents


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        pytest.param({"loss": NAN, "step_applied": 1.0}, "the optimizer step was applied", id="applied"),
        pytest.param(
            {"loss": NAN, "step_applied": 0.0, "params_finite": 0.0}, "a parameter is not finite", id="params"
        ),
    ],
)
def test_harm_is_critical_at_once(values: dict[str, float], reason: str) -> None:
    """A poisoned step that reached the weights opens an incident with its first record."""
    story = healthy_run()
    story.step(21, **values)
    assert story.alerts["NonFinitePoison/0"].why.endswith(reason)
    assert (story.incident.kind, story.incident.onset, story.incident.update_applied) == ("nonfinite", 21, True)


def test_two_in_a_row_are_critical() -> None:
    """The second poisoned record in a row is no accident, though both steps were skipped."""
    story = healthy_run()
    story.skipped(21)
    story.skipped(22)
    assert "the record before it was not finite either" in story.alerts["NonFinitePoison/0"].why
    assert (story.incident.onset, story.incident.update_applied) == (21, False)


def test_two_bad_rows_with_a_good_one_between_are_two_warnings() -> None:
    """Rows that are not in a row are not confirmed by each other."""
    story = healthy_run()
    story.skipped(21)
    story.step(22)
    story.skipped(23)
    assert not story.incidents


@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "later"])
def test_a_trainer_that_dies_on_it_confirms_it(together: bool) -> None:
    """A skipped NaN is critical once the process died right after it, and the death is not a second incident."""
    story = healthy_run().supervisor()
    if together:
        bad = story.record(21, loss=NAN, step_applied=0.0)
        story.batch(Died("super-a", Exit("trainer", 0, 7, 1, False)), bad)  # the supervisor's file is read first
    else:
        story.skipped(21)
        story.died()
    assert [i.kind for i in story.incidents] == ["nonfinite"]
    assert "the process died on it (exit 1)" in story.alerts["NonFinitePoison/0"].why
    assert story.alerts["TrainerDied/0"].muted_by


@pytest.mark.parametrize("end", ["bye", "asked", "exit 0"])
def test_a_run_that_ends_in_order_did_not_die_on_its_last_record(end: str) -> None:
    """A skipped NaN in the last record of a run that says goodbye is no incident, and its alert does not stay."""
    story = healthy_run().supervisor()
    story.skipped(21)
    if end == "bye":
        story.bye()
    else:
        story.died(0 if end == "exit 0" else -15, asked=end == "asked")
    story.tick()
    assert not story.incidents
    if end != "exit 0":
        assert not story.alerts


def test_a_new_life_that_dies_before_its_first_record_did_not_die_of_the_old_one() -> None:
    """A trainer that fails to start is a crash, whatever the last record of its former life said."""
    story = healthy_run().supervisor()
    story.skipped(21)
    story.begin(life="life-b")
    story.died()
    assert [i.kind for i in story.incidents] == ["crash"]


def test_a_backlog_gives_what_was_given_one_by_one() -> None:
    """An agent that was away reads a thousand records at once, and finds the NaN in their middle all the same."""
    live, late = healthy_run(), healthy_run()
    story = Story().begin()
    rows = [story.record(s) for s in range(21, 621)]
    rows[300] = story.record(321, loss=NAN, step_applied=0.0)
    rows[301] = story.record(322, loss=NAN, step_applied=0.0)
    for row in rows[:320]:
        live.batch(row)
    late.batch(*rows[:320])
    assert [(i.kind, i.onset) for i in live.incidents] == [("nonfinite", 321)]
    assert [(i.kind, i.onset) for i in late.incidents] == [("nonfinite", 321)]


@pytest.mark.parametrize("value", [NAN, math.inf, -math.inf], ids=str)
def test_infinity_is_as_bad(value: float) -> None:
    """NaN and both infinities alarm alike."""
    story = healthy_run()
    story.step(21, grad_norm=value, step_applied=1.0)
    assert story.incident.evidence["values"]["grad_norm"] in ("nan", "inf", "-inf")


def test_a_sum_that_overflows_is_no_alarm() -> None:
    """Two huge finite numbers are finite: the short cut over their sum must not decide."""
    story = healthy_run()
    story.step(21, loss=1.7e308, grad_norm=1.7e308, reward=1.7e308)
    assert not [alert for alert in story.alerts if "NonFinite" in str(alert)]


def test_opposite_infinities_are_seen() -> None:
    """inf and -inf in one record do not cancel out."""
    story = healthy_run()
    story.step(21, loss=math.inf, grad_norm=-math.inf)
    assert len(story.incident.evidence["values"]) == 2


@pytest.mark.parametrize(
    "name", ["my_metric", "loss_scale", "grad_norm_clip_fraction", "response/length_mean", "lossy"]
)
def test_a_name_nobody_knows_never_opens_an_incident(name: str) -> None:
    """A custom metric that is NaN for ever is noted, and nothing more."""
    story = healthy_run()
    for step in range(21, 40):
        story.step(step, **{name: NAN})
    assert {a.rule for a in story.engine.state.alerts.values()} == {"UndefinedValue"}
    assert not story.incidents


@pytest.mark.parametrize("name", ["eval/loss", "val/kl", "eval_loss", "test/reward", "validation.loss", "x/eval/loss"])
def test_metrics_of_an_evaluation_are_apart(name: str) -> None:
    """A NaN that was measured beside the training does not feed the update."""
    assert series.meaning(name) == series.UNDEFINED


@pytest.mark.parametrize("name", ["train/loss", "actor/grad_norm", "Loss", "critic.vf_loss", "a/b/c:kl", "/loss/"])
def test_names_are_read_by_their_last_part(name: str) -> None:
    """However a framework prefixes it, the loss is the loss."""
    assert series.meaning(name) == series.POISON


@pytest.mark.parametrize("name", POISON)
def test_each_poison_series_alarms(name: str) -> None:
    """No series of the list is listed in vain."""
    story = healthy_run()
    story.step(21, **{name: 1.0})
    story.step(22, **{name: NAN})
    assert story.incident.evidence["classes"] == {name: "poison"}


def test_a_loss_that_vanishes_beside_a_nan_is_poison_in_disguise() -> None:
    """Megatron omits a NaN loss: its absence beside another NaN is told as missing, and is critical when applied."""
    story = healthy_run()
    row = story.record(21, length_mean=NAN)
    del row.values["loss"]
    story.batch(row)
    assert story.incident.evidence["classes"] == {"loss": "missing"}
    assert story.incident.evidence["values"]["loss"] == "missing"


def test_a_loss_that_stays_missing_is_confirmed_by_the_second_row() -> None:
    """Two rows without the loss, each beside a NaN, are two in a row."""
    story = healthy_run()
    for step in (21, 22):
        row = story.record(step, length_mean=NAN, step_applied=0.0)
        del row.values["loss"]
        story.batch(row)
    assert story.incident.kind == "nonfinite"


def test_a_series_told_now_and_then_is_not_missing_in_between() -> None:
    """A reward that comes every fourth step is not missing on the others, though a mean over nothing stands there."""
    story = Story().begin()
    for step in range(1, 40):
        rollout = {"reward": 1.0} if step % 4 == 0 else {}
        story.step(step, **rollout, **({"length_mean": NAN} if step % 3 == 0 else {}))
    assert not story.incidents
    assert all("UndefinedValue" in e.subject for e in story.told("alert"))


def test_a_vanished_key_alone_is_nothing() -> None:
    """A trainer may stop telling a series: without a NaN beside it that means nothing."""
    story = healthy_run()
    row = story.record(21)
    del row.values["loss"]
    story.batch(row)
    assert not story.alerts


def test_the_onset_is_dated_back_over_the_streak() -> None:
    """The rollback's target depends on where it began, not on where it was confirmed."""
    story = healthy_run()
    story.skipped(21)
    story.skipped(22)
    story.step(23, loss=1.0, grad_norm=NAN)
    assert story.incident.onset == 21


def test_a_step_told_in_two_records_is_one_step() -> None:
    """A NaN in a step's first record is not made good by its second, read in the same batch."""
    story = healthy_run()
    first = story.record(21)._replace(values={"loss": NAN})
    second = story.record(21)._replace(values={"reward": 1.0, "step_applied": 1.0})
    story.batch(first, second)
    assert story.incident.update_applied
    story.step(22)
    assert not story.alerts


@pytest.mark.parametrize("world", [1, 8], ids=["1 rank", "8 ranks"])
def test_a_hundred_of_a_hundred_are_found(world: int) -> None:
    """A NaN that lasts one step is found, in any series, on any rank, whether or not the others have spoken yet."""
    found = 0
    for case in range(100):
        story = Story(world=world).begin()
        for step in range(1, 4):
            story.step(step)
        rank, name = case % world, POISON[case % len(POISON)]
        alone = case % 2 == 0
        bad = story.record(4, rank, **{name: NAN, "step_applied": 0.0})
        others = [story.record(4, r) for r in range(world) if r != rank]
        if alone:
            story.batch(bad)
            found += f"NonFiniteValue/{rank}" in story.alerts
            story.batch(*others)
        else:
            story.batch(*others, bad)
            found += f"NonFiniteValue/{rank}" in story.alerts
        story.step(5)
        assert not story.alerts, f"case {case} stays"
        assert not story.incidents, f"case {case} opens an incident"
    assert found == 100


def test_a_step_of_silent_ranks_is_looked_at_all_the_same() -> None:
    """A NaN on one rank is found though another rank never tells that step, and it clears in the end."""
    story = Story(world=8).begin().steps(1, 3)
    story.batch(story.record(4, 5, loss=NAN))
    assert "NonFinitePoison/5" in story.alerts
    story.step(5, ranks=range(7))
    story.tick(10.0)
    assert "NonFinitePoison/5" not in story.alerts


def test_data_of_the_step_are_kept_as_evidence() -> None:
    """What the step saw is what may be passed over: the suspect item and the cursor's range."""
    story = healthy_run()
    story.applied(21, suspect_item=77.0)
    assert story.incident.evidence["data"] == {"suspect_item": 77, "data_cursor": 336, "data_items": 16}


def test_a_record_without_values_says_nothing() -> None:
    """An empty record neither alarms nor breaks."""
    story = healthy_run()
    empty = Record("trainer", 0, story.life, 0, 21, 21, story.at, {})
    story.batch(empty)
    assert classify(empty, story.engine.state) == {}
    assert not story.alerts


def test_a_value_that_is_bad_every_second_step_is_more_than_one_bad_row() -> None:
    """A trainer that does not say what it applied, and a NaN that comes and goes: three of five are enough."""
    story = Story().begin().steps(1, 10)
    for step in range(11, 16):
        story.batch(story.record(step, **({"loss": NAN, "step_applied": 0.0} if step % 2 else {"step_applied": 0.0})))
    assert [i.kind for i in story.incidents] == ["nonfinite"]
    assert story.incidents[0].fired_step == 15


def test_a_spent_guard_makes_the_next_bad_row_critical() -> None:
    """It steps aside from here on: what comes next would be applied."""
    story = Story().begin().steps(1, 10)
    story.batch(story.record(11, loss=NAN, step_applied=0.0, guard_exhausted=1.0))
    assert [i.kind for i in story.incidents] == ["nonfinite"]
