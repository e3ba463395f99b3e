"""Generated runs: what every family promises to whoever judges rules by it."""

import json
import math
import time
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from corpusline import lines, shown
from course import Run, cut, numbered, resumed, told, usual
from families import AFTER, FAULTY, HEALTHY, JUDGED_ONLY, generated
from kinds import KINDS, deadline
from loudness import SPREADS, factor, spread
from noise import shaken

from gyrostat_agent.backtest.case import read
from gyrostat_rules.faults import FAULTS

ROWS = 400
SEEDS = (3, 10_000_007)
EVERY = [*HEALTHY, *FAULTY]
PUBLIC = Path(__file__).parents[3] / "benchmarks" / "detection" / "public_cases.jsonl"


def finite(run: Run, name: str, first: int, last: int) -> list[bool]:
    """Whether the values told in some rows are finite."""
    return [math.isfinite(v) for v in told(run.course.columns[name][first:last])]


@pytest.mark.parametrize("family", EVERY)
def test_the_same_seed_gives_the_same_bytes(family: str) -> None:
    """Whoever reports a case can be followed: family, seed and length are all of it; another seed is another run."""
    first, again, other = (list(lines(generated(family, seed, 240), "judge")) for seed in (5, 5, 6))
    assert first == again
    assert first != other


@pytest.mark.parametrize("family", EVERY)
def test_lines_are_cases_of_the_public_form(family: str) -> None:
    """What replays the public corpus replays this one: the same fields, and none that its reader refuses."""
    known = set(json.loads(PUBLIC.read_text("utf-8").partition("\n")[0]))
    made = list(lines(generated(family, 5, 240), "judge"))
    raws = [json.loads(line) for line in made]
    assert all(known <= raw.keys() for raw in raws)
    assert [wrong for line in made for wrong in read(line.encode(), "made.jsonl", 2)[1]] == []
    assert len({raw["group"] for raw in raws}) == 1
    assert len({raw["id"] for raw in raws}) == len({raw["signal"] for raw in raws}) == len(raws) >= 4


@pytest.mark.parametrize("family", HEALTHY)
def test_a_healthy_run_is_healthy(family: str) -> None:
    """Nothing in it is what a fault is: no two bad values in a row, nothing negative that cannot be."""
    for seed in SEEDS:
        run = generated(family, seed, ROWS)
        assert run.fault is None
        assert run.course.rows == ROWS
        assert run.tempts in KINDS
        for name, column in run.course.columns.items():
            assert not any(not (math.isfinite(a) or math.isfinite(b)) for a, b in pairwise(told(column))), name
        for name in {"grad_norm", "entropy", "kl", "step_time", "response_length"} & run.course.columns.keys():
            assert min(v for v in told(run.course.columns[name]) if math.isfinite(v)) >= 0.0, name
        for name in {"reward_std", "zero_advantage_fraction", "expert_rho_eff"} & run.course.columns.keys():
            assert 0.0 <= min(told(run.course.columns[name])) <= max(told(run.course.columns[name])) <= 1.0, name


@pytest.mark.parametrize("family", HEALTHY)
def test_a_healthy_entropy_stays_above_half_its_start(family: str) -> None:
    """A descent that settles is no collapse: its mean never gets to where one is plain."""
    for seed in SEEDS:
        column = generated(family, seed, ROWS).course.columns.get("entropy")
        if column is not None:
            values = told(column)
            start = sorted(values[5:25])[10]
            means = [sum(values[i : i + 10]) / 10 for i in range(0, ROWS - 10)]
            assert min(means) > 0.8 * min(0.3, 0.5 * start)


@pytest.mark.parametrize("family", FAULTY)
def test_a_fault_has_an_onset_and_a_later_deadline(family: str) -> None:
    """There is a healthy part to hold it against, time to find it in, and an end soon after it is overdue."""
    for seed in SEEDS:
        run = generated(family, seed, ROWS)
        fault, rows = run.fault, run.course.rows
        assert fault is not None
        due = deadline(fault.kind, fault.plain)
        assert 8 <= fault.onset <= fault.plain < rows
        assert fault.onset <= due
        assert rows <= min(ROWS, due + 1 + AFTER)
        assert rows > min(due, ROWS - 1)
        raw = json.loads(next(lines(run, "judge")))
        assert raw["onset_step"] == run.course.steps[fault.onset]
        assert raw["must_fire_by_step"] == run.course.steps[min(due, rows - 1)]
        assert set(fault.signals) <= run.course.columns.keys()


@pytest.mark.parametrize("family", [name for name in FAULTY if name.startswith("nan_")])
def test_a_value_that_is_not_finite_is_there_when_it_is_due(family: str) -> None:
    """Finite up to the row where the fault is plain, and not from there on."""
    for seed in SEEDS:
        run = generated(family, seed, ROWS)
        assert run.fault is not None
        assert all(finite(run, "grad_norm", 0, run.fault.plain))
        assert not any(finite(run, "grad_norm", run.fault.plain, run.course.rows))


# How far the first of a fault's signals has gone when it is due, as a multiple of its usual before: least, most.
MOVED = {
    "grad_jump": (10.0, math.inf),
    "grad_growth": (8.0, math.inf),
    "loss_jump": (1.25, 12.0),
    "loader_stalls": (10.0, math.inf),
    "optimizer_lost": (1.1, 4.0),
    "entropy_fast": (0.0, 0.35),
    "entropy_slow": (0.0, 0.75),
    "entropy_rises": (1.6, 12.0),
    "kl_rises": (5.0, math.inf),
    "reward_gone": (0.0, 0.4),
    "reward_declines": (0.0, 0.45),
    "silent_death": (0.0, 0.0),
    "reward_hacked": (1.0, 2.0),
    "verifier_dead": (0.0, 1.5),
    "answers_shrink": (0.0, 0.6),
    "answers_cut_off": (3.0, math.inf),
    "detached": (0.0, 0.0),
    "rollouts_apart": (8.0, math.inf),
    "rollouts_drift": (5.0, math.inf),
    "router_collapses": (0.0, 0.75),
    "balance_lost": (1.2, 4.0),
    "memory_leak": (1.05, 3.0),
    "scale_to_its_floor": (0.0, 1e-2),
}


@pytest.mark.parametrize(("family", "least", "most"), [(name, *span) for name, span in MOVED.items()], ids=MOVED)
def test_a_fault_is_really_there(family: str, least: float, most: float) -> None:
    """When a fault is due, the numbers say so; what nobody could see must not be asked of anybody."""
    for seed in SEEDS:
        run = generated(family, seed, ROWS)
        assert run.fault is not None
        column, due = run.course.columns[run.fault.signals[0]], deadline(run.fault.kind, run.fault.plain)
        now = usual(column, min(due, run.course.rows - 1) + 1, 3)
        assert least <= now / usual(column, run.fault.onset) <= most


def test_every_faulty_family_is_looked_at() -> None:
    """A family without a test of its signature may have none."""
    assert set(MOVED) == {name for name in FAULTY if not name.startswith("nan_")}


def test_kinds_are_the_words_of_the_rules() -> None:
    """A kind that no rule can name would be missed by every pack."""
    assert set(KINDS) <= set(FAULTS)
    assert {generated(name, 1, 200).fault.kind for name in FAULTY} == set(KINDS)  # type: ignore[union-attr]


def test_two_families_are_kept_for_the_judge() -> None:
    """One of each sort, so that neither alarms nor their absence can have been learnt."""
    assert len(JUDGED_ONLY & HEALTHY.keys()) == len(JUDGED_ONLY & FAULTY.keys()) == 1


@pytest.mark.parametrize("noise", [0.01, 0.1, 0.3], ids=str)
def test_just_clear_is_clear_of_the_noise(noise: float) -> None:
    """The quietest fault is by its least factor away, and by nine spreads of its own run's noise."""
    dice = Random(1)
    column = shaken(dice, [2.0] * 100, noise)
    for _ in range(50):
        by = factor(dice, column, 100, 1.5, 1.6)
        assert math.log(by) >= max(math.log(1.5), SPREADS * spread(column, 100)) - 1e-9


def test_a_thousand_steps_take_well_under_a_second() -> None:
    """300,000 healthy steps are made in minutes, on any machine."""
    began = time.process_time()
    run = generated("learns", 1, 1000)
    made = list(lines(run, "judge"))
    assert len(made) >= 10
    assert time.process_time() - began < 0.5


def test_a_resumed_run_tells_steps_twice() -> None:
    """Steps go back where it was resumed and then go on; the rows are the course's own."""
    course = resumed(numbered("verl", {"loss": [float(row) for row in range(10)]}, 5), 6, 2)
    assert course.steps == [5, 10, 15, 20, 25, 30, 25, 30, 35, 40]
    assert cut(course, 7).columns["loss"] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for family in ("resumes", "optimizer_lost"):
        assert any(b <= a for a, b in pairwise(generated(family, 4, ROWS).course.steps))


def test_columns_of_unlike_lengths_are_refused() -> None:
    """A family that lost a row would shift a series against the others."""
    with pytest.raises(ValueError, match="lengths"):
        numbered("verl", {"loss": [1.0], "kl": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("value", "text"),
    [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (2.0**32, 4294970000), (0.1234567, 0.123457)],
    ids=["nan", "inf", "-inf", "whole", "digits"],
)
def test_numbers_as_a_corpus_spells_them(value: float, text: object) -> None:
    """JSON has no NaN; more digits than a trainer prints are of no use."""
    assert shown(value) == text
