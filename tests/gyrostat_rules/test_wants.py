"""Wants: a rule that is told nothing it looks at is named, with what it wants, and no other is."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rows_told import Rows
from run_story import CORE, NAN, Story

from gyrostat.wire import Hello, Record
from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.detectors.balance import ExpertBalance
from gyrostat_rules.detectors.drift import Drift
from gyrostat_rules.detectors.drop import Drop
from gyrostat_rules.detectors.entropy import Entropy
from gyrostat_rules.detectors.grows import Grows
from gyrostat_rules.detectors.knobdrift import KnobDrift
from gyrostat_rules.detectors.level import Level
from gyrostat_rules.detectors.nonfinite import NonFinite
from gyrostat_rules.detectors.rise import Rise
from gyrostat_rules.detectors.spike import Spike
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.needs import NEEDS, Heard
from gyrostat_rules.pack import Rule
from gyrostat_rules.packfile import parse
from gyrostat_rules.wants import Off, heard, is_early, off, words

PAGE = (Path(__file__).parents[2] / "docs" / "series.md").read_text(encoding="utf-8")
RULES = parse(CORE).rules
WAVES = [1.0, 1.1] * 16
TOLD = "a knob told under its own name"


class Case(NamedTuple):
    """A detector that is sure to speak of ``values`` under ``name``, and would say nothing of them under ``other``."""

    detector: str
    params: Any
    name: str
    other: str
    values: Iterable[float]
    wanted: str


CASES = [
    Case("nonfinite", NonFinite(), "actor/grad_norm", "eval/loss", [1.0, NAN], "loss, grad_norm, reward or their like"),
    Case("nonfinite", NonFinite(), "params_finite", "own", [0.0], "loss, grad_norm, reward or their like"),
    Case("spike", Spike(("grad_norm",)), "actor/grad_norm", "grad_norm/layer.3", [*WAVES, 99.0], "grad_norm"),
    Case("drift", Drift(("loss",), reference=16), "loss", "eval/loss", [*WAVES, *[9.0] * 40], "loss"),
    Case("drop", Drop(("score", "reward")), "rewards/reward/mean", "reward_max", [*WAVES, *[0.0] * 9],
         "score or reward"),
    Case("level", Level(("kl", "drift_kl"), above=1.5), "drift_kl", "my_drift_kl", [9.0] * 9, "kl or drift_kl"),
    Case("entropy", Entropy(), "policy_entropy", "entropy_floor", [*WAVES, *[0.01] * 20], "entropy"),
    Case("entropy", Entropy(series="nats"), "nats", "entropy", [*WAVES, *[0.01] * 20], "nats"),
    Case("knob_drift", KnobDrift(), "lr", "lr_scale", [*WAVES, 99.0, 99.0], f"learning_rate or lr or {TOLD}"),
    Case("knob_drift", KnobDrift(()), "kl_coef", "entropy", [1.0] * 9 + [2.0] * 3, TOLD),
    Case("grows", Grows(("errors_total",)), "errors_total", "errors_per_second", [0.0] * 9 + [1.0], "errors_total"),
    Case("rise", Rise(("step_time",)), "train/step_time", "eval/step_time", [1.0] * 30 + [9.0] * 5, "step_time"),
]  # fmt: skip


def rule(detector: str, params: Any) -> Rule:
    return Rule("Mine", detector, params, "warning")


def names(found: Iterable[Off]) -> set[str]:
    return {one.alert for one in found}


def told(case: Case, name: str) -> Rows:
    return Rows(kl_coef=1.0).column(name, case.values)


def test_every_detector_is_asked_what_it_wants() -> None:
    """A detector that is not named here would be silent without a word about it."""
    assert set(NEEDS) == set(DETECTORS)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.detector} of {c.name}")
def test_what_a_detector_speaks_of_is_what_its_rule_wants(case: Case) -> None:
    """It speaks, and its rule is not off; of the same values under another name it says nothing, and it is off."""
    rows, mine = told(case, case.name), rule(case.detector, case.params)
    assert rows.read(DETECTORS[case.detector].read, case.params) and off([mine], heard(rows.state)) == ()
    rows = told(case, case.other)
    assert not rows.read(DETECTORS[case.detector].read, case.params)
    assert off([mine], heard(rows.state)) == (Off("Mine", case.wanted),)


@pytest.mark.parametrize(
    "tell, speaks",
    [
        (lambda rows: rows.loads([1000] + [0] * 7, 9), True),
        (lambda rows: rows.column("expert_rho_eff", [0.1] * 9, expert_dead_share=0.9), True),
        (lambda rows: rows.column("expert_rho_eff", [0.1] * 9), False),
        (lambda rows: rows.loads([5] + [0] * 7, 3), False),
    ],
    ids=["counts", "both series", "half of them", "too few tokens"],
)
def test_experts_are_told_by_counts_or_by_both_series(tell: Callable[[Rows], Rows], speaks: bool) -> None:
    """As the detector reads them, so the rule is off."""
    rows, params = tell(Rows()), ExpertBalance()
    assert bool(rows.read(DETECTORS["expert_balance"].read, params)) == speaks
    found = off([rule("expert_balance", params)], heard(rows.state))
    assert [one.wants for one in found] == (
        [] if speaks else ["expert counts or expert_rho_eff beside expert_dead_share"]
    )


def test_a_mean_over_nothing_may_be_any_series() -> None:
    """Where something is told, a rule for what is undefined has all that there can be."""
    mine = rule("nonfinite", NonFinite(("undefined",)))
    assert off([mine], heard(Rows().tell(custom=1.0).state)) == ()
    assert off([mine], heard(Rows().tell().state)) == (Off("Mine", "any series"),)


def test_deaths_are_seen_by_a_supervisor_alone() -> None:
    """An agent beside a trainer that somebody else has begun sees no exit status, and says so."""
    story = Story().begin().steps(1, 30)
    assert "TrainerDied" in names(off(RULES, heard(story.engine.state)))
    assert "TrainerDied" not in names(off(RULES, heard(story.supervisor().engine.state)))


@pytest.mark.parametrize(
    "name, word, read",
    [("log:/run.log", SourceWord.FRESH, True), ("log:/run.log", SourceWord.DAMAGED, False), ("gpu", "fresh", False)],
    ids=["a log", "a log that cannot be read", "no log"],
)
def test_error_lines_come_from_a_log_that_is_read(name: str, word: str, read: bool) -> None:
    """Else a log without faults and a log that nobody reads would look the same."""
    story = Story().begin().steps(1, 30)
    story.source(word, name)
    assert ("FaultInLog" not in names(off(RULES, heard(story.engine.state)))) == read


def test_rules_of_checkpoints_want_a_folder_or_a_word_of_them() -> None:
    """A trainer that names no folder is told that nobody will see its checkpoints."""
    story = Story().begin(checkpoint_root="").steps(1, 30)
    assert {"CheckpointOverdue", "CheckpointIll"} <= names(off(RULES, heard(story.engine.state)))
    story.step(31, checkpoint_seconds=3.0)
    assert "CheckpointOverdue" not in names(off(RULES, heard(story.engine.state)))
    assert not {"CheckpointIll"} & names(off(RULES, heard(story.checkpoint(30).engine.state)))


def test_silent_servers_are_looked_for_where_there_are_two() -> None:
    """One alone has nobody beside it, and the rule is off."""
    story = Story().begin().steps(1, 30)
    for rank in range(2):
        assert "NodeSilent" in names(off(RULES, heard(story.engine.state)))
        story.batch(Record("rollout", rank, f"r{rank}", 0, 1, 30, story.at, {"cache_use": 0.5}))
    assert "NodeSilent" not in names(off(RULES, heard(story.engine.state)))


def test_silence_is_heard_while_a_trainer_runs() -> None:
    """A past log has no clock, and neither has a run that nobody has spoken in."""
    assert "TrainerStalled" in names(off(RULES, Heard(frozenset(["loss"]))))
    assert "TrainerStalled" in names(off(RULES, heard(Story().begin().engine.state)))
    assert "TrainerStalled" not in names(off(RULES, heard(Story().begin().steps(1, 2).engine.state)))


def test_a_series_of_any_process_will_do() -> None:
    """Rollouts tell the entropy, a GPU whether it is lost: rules look at all who speak."""
    story = Story().begin().steps(1, 30)
    assert {"GpuLost", "EntropyLow"} <= names(off(RULES, heard(story.engine.state)))
    gpu = Record("gpu", 3, "GPU-3", 0, 1, 30, story.at, {"gpu_lost": 0.0})
    story.batch(Hello("run", "rollout", 0, 1, "life-r"), gpu)
    story.batch(Record("rollout", 0, "life-r", 0, 1, 30, story.at, {"entropy": 0.5}))
    assert not {"GpuLost", "EntropyLow"} & names(off(RULES, heard(story.engine.state)))


def test_a_series_that_one_rank_has_left_off_and_another_tells_is_told() -> None:
    """Ranks are not judged by the first of them."""
    story = Story(world=2).begin().steps(1, 5)
    story.step(6, entropy=0.5)
    for step in range(7, 60):
        story.batch(story.record(step), story.record(step, 1, entropy=0.5))
    assert "EntropyLow" not in names(off(RULES, heard(story.engine.state)))


def test_what_is_told_no_more_is_wanted_again() -> None:
    """A trainer begun anew without its entropy: its rules are silent from then on."""
    story = Story().begin()
    for step in range(1, 31):
        story.step(step, entropy=0.5)
    assert "EntropyLow" not in names(off(RULES, heard(story.steps(31, 50).engine.state)))
    assert "EntropyLow" in names(off(RULES, heard(story.steps(51, 51).engine.state)))


def test_a_series_told_now_and_then_is_told() -> None:
    """A reward every fiftieth step is looked at every fiftieth step, and its rule is not off in between."""
    story = Story().begin()
    for step in range(1, 195):
        story.step(step, **({"reward": 0.5} if step % 50 == 0 else {}))
    assert "RewardCollapsed" not in names(off(RULES, heard(story.engine.state)))


@pytest.mark.parametrize("values", [{"loss": 1.0}, {}], ids=["numbers", "nothing but steps"])
def test_it_is_early_until_20_steps_are_told(values: dict[str, float]) -> None:
    """Before, a series that comes every tenth step would be called missing; after, a trainer that tells none is."""
    story = Story().begin()
    for step in range(1, 20):
        story.at += 1.0
        story.batch(story.record(step)._replace(values=values))
    assert is_early(story.engine.state)
    story.at += 1.0
    story.batch(story.record(20)._replace(values=values))
    assert not is_early(story.engine.state)


def test_a_new_life_is_not_early_again() -> None:
    """What is off does not vanish from the page because a trainer was begun anew."""
    story = Story().begin().steps(1, 30).begin(life="life-b").steps(31, 31)
    assert not is_early(story.engine.state)


def test_asking_changes_nothing() -> None:
    """A replay of a run gives what it gave, whoever has looked at it."""
    story = Story().begin().steps(1, 30)
    before = story.engine.snapshot()
    assert off(RULES, heard(story.engine.state)) and not is_early(story.engine.state)
    assert story.engine.snapshot() == before


def test_the_page_of_series_lists_what_each_rule_wants() -> None:
    """Who reads that a rule is off finds it there, in the order of the pack, and none beside."""
    section = PAGE.partition("## What a rule wants")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE)
    assert rows == [(rule.alert, words(rule)) for rule in RULES]
