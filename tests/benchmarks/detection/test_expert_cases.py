"""Cases for the diagnosis of experts: the label is what was done, and the numbers say so; and how they are judged."""

import json
import math
from random import Random

import judge_experts
import pytest
from expert_cases import (
    DEAD,
    IMBALANCE,
    LABELS,
    MISMATCH,
    SPECIALISATION,
    ExpertCase,
    case,
    cases,
    effective,
    emptied,
    even,
    moved,
    skewed,
)
from judge_experts import Answer, confusion, f1

SEEDS = range(10_000_000, 10_000_012)


def last(one: ExpertCase, step: int = -1) -> list[float]:
    """Shares of the row that is looked at, the loops' first where none is."""
    place = 0 if one.subject is None else one.subject[0] * one.loops + one.subject[1]
    counts = one.steps[step].counts[place]
    return [count / sum(counts) for count in counts]


def unused(shares: list[float]) -> float:
    """Share of experts with less than a tenth of an even load."""
    return sum(share < 0.1 / len(shares) for share in shares) / len(shares)


@pytest.mark.parametrize("label", LABELS)
def test_the_same_seed_gives_the_same_case(label: str) -> None:
    """And another seed another one."""
    assert case(label, 7) == case(label, 7)
    assert case(label, 7) != case(label, 8)


def test_as_many_of_each_label() -> None:
    """A label that is rarer would count less than its share."""
    made = list(cases(0, 3))
    assert [one.label for one in made] == [*LABELS] * 3
    assert all(len(step.counts) == one.layers * one.loops for one in made for step in one.steps)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_imbalance_is_skewed_and_something_went_wrong(seed: int) -> None:
    """The load is below the warning's level at the end, and it, its experts or the reward are not what they were."""
    one = case(IMBALANCE, seed)
    began, ends = last(one, 0), last(one)
    assert effective(ends) < 0.5
    away = sum(b * math.log(b / max(a, 1e-4)) for a, b in zip(began, ends, strict=True) if b)
    rewards = [step.values["reward"] for step in one.steps]
    assert effective(began) > 0.9 or away > 0.15 or rewards[-1] < 0.6 * max(rewards)


@pytest.mark.parametrize("seed", SEEDS)
def test_dead_experts_are_unused_and_the_rest_is_even(seed: int) -> None:
    """More than a fifth get nothing, and those that live share alike."""
    ends = last(case(DEAD, seed))
    assert unused(ends) > 0.2
    assert effective([share for share in ends if share > 0.1 / len(ends)]) > 0.85


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mismatch_shows_in_what_is_told(seed: int) -> None:
    """KL, routes or the lag say it for the last ten steps at least."""
    told = [step.values for step in case(MISMATCH, seed).steps]
    assert all(
        row["mismatch_kl"] > 0.01 or row.get("route_flip_rate", 0.0) > 0.25 or row["policy_lag"] > 5
        for row in told[-10:]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_specialists_are_what_they_were(seed: int) -> None:
    """Skewed from the first step on, nobody idle, next to no way from there, and a reward that rises."""
    one = case(SPECIALISATION, seed)
    began, ends = last(one, 0), last(one)
    assert effective(ends) < 0.5
    assert unused(ends) == 0.0
    assert sum(b * math.log(b / a) for a, b in zip(began, ends, strict=True)) < 0.05
    rewards = [step.values["reward"] for step in one.steps]
    assert sum(rewards[-10:]) > sum(rewards[:10])


@pytest.mark.parametrize("rho", [0.3, 0.4, 0.6])
def test_a_skewed_load_is_as_skewed_as_asked(rho: float) -> None:
    """Cases just below a limit and far below it are both wanted."""
    shares = skewed(Random(1), 16, rho)
    assert sum(shares) == pytest.approx(1.0)
    assert effective(shares) == pytest.approx(rho, abs=0.01)
    assert unused(emptied(even(16), 0.3)) == pytest.approx(0.3, abs=0.04)
    other = moved(Random(1), shares)
    assert sorted(other) == sorted(shares)
    assert other != shares


ANSWERS = [
    Answer("dead", "dead", 1, "", ""),
    Answer("dead", "imbalance", 2, "", ""),
    Answer("imbalance", "imbalance", 3, "", ""),
]


@pytest.mark.parametrize(("label", "score"), [("dead", 2 / 3), ("imbalance", 2 / 3), ("mismatch", 0.0)])
def test_f1(label: str, score: float) -> None:
    """Half found and none wrong, all found and one wrong, never said."""
    assert f1(ANSWERS, label) == pytest.approx(score)
    assert confusion(ANSWERS)["dead"] == {"dead": 1, "imbalance": 1}


def test_the_diagnosis_is_asked_through_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    """Two cases of each label, told record by record: most are called right, and the status says whether enough are."""
    assert judge_experts.main(["--cases", "2", "--json", "--require", "0.6"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["cases"] == 8
    assert set(said["f1"]) == set(LABELS)
    assert judge_experts.main(["--cases", "1", "--require", "1.01"]) == 1
    assert "macro-F1" in capsys.readouterr().out
