"""What counts as found, as kept healthy and as a false alarm, on corpora that can be judged by eye."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gyrostat_agent.backtest.corpus import cases, index
from gyrostat_agent.backtest.rates import wilson
from gyrostat_agent.backtest.run import rows

Line = Callable[..., dict[str, Any]]
Replayed = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("values", "onset", "deadline", "expected"),
    [
        pytest.param((1, 1, 20), 3, 3, ("LossHigh", 3, 0, 0, "none"), id="a warning in time"),
        pytest.param((1, 1, 20), 3, None, ("LossHigh", 3, 0, None, "none"), id="no deadline is the end"),
        pytest.param((1, 20, 1), None, 3, ("LossHigh", 2, None, 1, "none"), id="no onset"),
        pytest.param((20, 20, 20), 3, 3, ("LossHigh", 1, 2, 2, "none"), id="earlier, and firing still"),
        pytest.param((20, 1, 20), 3, 3, ("LossHigh", 3, 0, 0, "none"), id="a false alarm first"),
        pytest.param(
            (1, 20, 200), 2, 3, ("LossHigh", 2, 0, 1, "turn: lr_scale times 0.5"), id="an incident behind the warning"
        ),
        pytest.param(
            (1, 1, 200), 3, 3, ("LossHigh", 3, 0, 0, "turn: lr_scale times 0.5"), id="muted by the graver one"
        ),
    ],
)
def test_a_fault_is_found(
    line: Line, replayed: Replayed, values: tuple[float, ...], onset: int, deadline: int, expected: tuple[Any, ...]
) -> None:
    """By which alert, at which step, how far from onset and deadline, and what would have been done."""
    found = replayed(line(*values, onset_step=onset, must_fire_by_step=deadline))
    [case] = found["cases"]
    said = tuple(case[name] for name in ("alert", "fired_step", "onset_error", "lead", "action"))
    assert case["found"] and said == expected
    assert found["overall"]["recall"] == found["kinds"]["loss_spike"]["recall"] == 1.0


@pytest.mark.parametrize(
    ("fields", "values", "why"),
    [
        pytest.param({"must_fire_by_step": 2}, (1, 1, 20), "fired late at step 3 (LossHigh), due by step 2", id="late"),
        pytest.param({"onset_step": 3}, (20, 1, 1), "was over before its onset, step 3", id="over before"),
        pytest.param({}, (5, 5, 5), "never fired: Noted, LossHigh (steps seen: 3)", id="info alone"),
        pytest.param(
            {"kind": "reward_collapse"}, (1, 20, 1), "no rule of this pack tells reward_collapse", id="no rule"
        ),
        pytest.param(
            {"signal": "data_time"}, (20, 20), "signals not read: data_time; its rules want loss", id="unread"
        ),
        pytest.param(
            {"must_fire_by_step": 0}, (1, 1), "due by step 0, before its first number, of step 1", id="no data"
        ),
    ],
)
def test_a_fault_is_missed_and_it_is_said_why(
    line: Line, replayed: Replayed, fields: dict[str, Any], values: tuple[float, ...], why: str
) -> None:
    """A warning of another kind, or an info, is no find; the reason names the alert and the step."""
    found = replayed(line(*values, **fields))
    assert found["cases"][0]["found"] is False and why in found["cases"][0]["why"]
    assert found["overall"]["recall"] == 0.0 and found["overall"]["precision"] is None


def test_a_graver_alert_of_the_run_finds_it_too(line: Line, replayed: Replayed) -> None:
    """Who is called for a divergence from the policy sees the loss as well; the action is that incident's."""
    run = {"group": "r"}
    found = replayed(
        line(1, 1, 1, must_fire_by_step=3, **run), line(0, 0, 5, id="F2", signal="kl", kind="kl_explosion", **run)
    )
    assert [(case["alert"], case["action"]) for case in found["cases"]] == [("KlHigh", "page")] * 2


@pytest.mark.parametrize(
    ("values", "incidents", "warnings"),
    [
        pytest.param((1, 1, 1, 1), 0, 0, id="quiet"),
        pytest.param((1, 5, 5, 1), 0, 0, id="info is nothing"),
        pytest.param((1, 20, 1, 20), 0, 2, id="warnings stand beside"),
        pytest.param((1, 200, 200, 1), 1, 0, id="an incident, its warning muted"),
    ],
)
def test_a_healthy_run_fails_by_an_incident(
    line: Line, replayed: Replayed, values: tuple[float, ...], incidents: int, warnings: int
) -> None:
    """Both are told as rates of its steps, and only an incident is false."""
    found = replayed(line(*values, healthy=True))
    overall = found["overall"]
    assert (overall["false_incidents"], overall["warnings"]) == (incidents, warnings)
    assert found["cases"][0]["failed"] is bool(incidents) and overall["healthy_steps"] == 4
    assert overall["false_incidents_per_1000"]["rate"] == 250.0 * incidents
    assert overall["recall"] is None and overall["precision"] == (0.0 if incidents else None)


def test_one_incident_of_a_healthy_run_counts_once(line: Line, replayed: Replayed) -> None:
    """Three lines of a run that tell one kind are one case that fails by one incident, over steps counted once."""
    signals = ("loss", "reward", "entropy")
    lines = [line(1, 200, 200, id=f"H{s}", group="h", signal=s, healthy=True) for s in signals]
    found = replayed(*lines, line(1, 1, 20, onset_step=3))
    overall = found["overall"]
    assert (overall["false_incidents"], overall["failed"], overall["healthy_steps"]) == (1, 1, 3)
    assert overall["precision"] == pytest.approx(1 / 2) and overall["cases"] == 2
    assert (overall["listed"], [case["failed"] for case in found["cases"]]) == (4, [True] * 3 + [None])


def test_a_run_weighs_the_same_however_many_series_it_tells(line: Line, replayed: Replayed) -> None:
    """Sixteen lines of one fault, all found, and a fault of one line that is missed: half are found."""
    many = [line(1, 20, id=f"F{n:02d}", group="r", signal=f"metric{n}") for n in range(15)]
    found = replayed(line(1, 20, group="r"), *many, line(1, 1, id="lost"))
    for figures in (found["overall"], found["kinds"]["loss_spike"]):
        assert (figures["cases"], figures["found"], figures["recall"]) == (2, 1, 0.5)
    assert found["overall"]["listed"] == 17


def test_a_fault_is_found_where_each_of_its_lines_is(line: Line, replayed: Replayed) -> None:
    """Of two deadlines for one fault the first is the one that was missed; the kinds of a run count apart."""
    run = {"group": "r"}
    late = replayed(
        line(1, 1, 20, onset_step=2, must_fire_by_step=2, **run),
        line(0, 0, 0, id="F2", signal="other", onset_step=2, must_fire_by_step=3, **run),
    )
    assert (late["overall"]["found"], late["overall"]["faulty"]) == (0, 1)
    assert [case["found"] for case in late["cases"]] == [False, True]
    two = replayed(
        line(1, 20, must_fire_by_step=2, **run), line(0, 0, id="F2", signal="kl", kind="kl_explosion", **run)
    )
    assert (two["overall"]["found"], two["overall"]["faulty"]) == (1, 2)
    assert two["kinds"]["kl_explosion"]["recall"] == 0.0


def test_a_healthy_line_of_an_ill_run_rules_out_its_own_kind_alone(line: Line, replayed: Replayed) -> None:
    """An incident there is right; one of the kind that the healthy line says is not there is false."""
    ill = line(1, 200, 200, id="F", group="r", kind="divergence", onset_step=2, must_fire_by_step=2)
    kl = {"group": "r", "signal": "kl", "kind": "kl_explosion", "healthy": True}
    right = replayed(ill, line(0, 0, 0, id="H", **kl))
    assert [case["failed"] for case in right["cases"]] == [None, False] and right["overall"]["false_incidents"] == 0
    # Within ten steps the two alerts would be one incident.
    far = [[step, 5 if step > 40 else 0] for step in range(1, 50)]
    wrong = replayed(ill, line(id="H", **kl) | {"series": far})
    assert [case["failed"] for case in wrong["cases"]] == [None, True] and wrong["overall"]["false_incidents"] == 1


def test_an_incident_before_the_fault_began_is_told(line: Line, replayed: Replayed) -> None:
    """An ill run may be called ill for nothing first; that is no find."""
    found = replayed(line(200, 1, 1, 1, 1, onset_step=5, must_fire_by_step=5))
    assert found["overall"]["early_incidents"] == 1 and not found["cases"][0]["found"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"series": [], "evidence": "claim"}, "it has no numbers (claim)"),
        ({"series": []}, "it has no numbers"),
        ({"step_basis": "rank"}, "its numbers are no time series (rank)"),
        ({"step_basis": "expert"}, "its numbers are no time series (expert)"),
        ({"step_basis": "compare"}, "its numbers are no time series (compare)"),
    ],
    ids=["claim", "empty", "rank", "expert", "compare"],
)
def test_what_cannot_be_replayed_is_listed_and_counts_for_nothing(
    line: Line, replayed: Replayed, fields: dict[str, Any], why: str
) -> None:
    """It is in no rate, and is never dropped in silence."""
    found = replayed(line(20, 20) | fields)
    assert (found["cases"][0]["replayed"], found["cases"][0]["why"]) == (False, why)
    overall = found["overall"]
    assert (overall["cases"], overall["listed"], overall["not_replayable"], found["kinds"]) == (0, 1, 1, {})


def test_lines_that_count_otherwise_are_replayed_apart(line: Line, replayed: Replayed) -> None:
    """Place 2 of one series is not step 2 of another: what fires on one finds nothing on the other."""
    run = {"group": "r"}
    found = replayed(
        line(1, 200, step_basis="order", **run), line(0, 0, 0, id="F2", signal="kl", kind="kl_explosion", **run)
    )
    assert [case["found"] for case in found["cases"]] == [True, False]


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (1, 1000, 0.000177, 0.005642)],
    ids=["none", "half", "all", "rare"],
)
def test_bounds_are_wilsons(count: int, of: int, low: float, high: float) -> None:
    """Values of the published formula; a few cases prove little, and it is shown."""
    rate = wilson(count, of)
    assert rate.value == count / of and (rate.low, rate.high) == pytest.approx((low, high), abs=1e-4)
    assert wilson(0, 0).value is None


def test_a_series_told_seldom_goes_with_the_run_that_went_back(line: Line, write: Callable[..., Path]) -> None:
    """An evaluation at 20 and at 40 shows no jump of its own; the loss, told each step, says that 40 is behind one."""
    losses = [[step, 1.0] for step in (*range(1, 31), *range(11, 46))]
    evaluated = line(id="F2", group="g", signal="eval_loss", series=[[20, 2.0], [40, 2.0]])
    path = write(line(group="g", series=losses), evaluated)
    [run] = index([str(path)])
    placed = [(segment, step) for segment, step, values in rows(cases(run)) if len(values) > 1]
    assert placed == [(0, 20), (1, 40)]
