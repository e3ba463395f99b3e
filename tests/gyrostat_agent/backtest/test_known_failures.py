"""Where other tools were seen to fail, by running them: a small run for each, on which the shipped packs do right.

Runs are fed to the engine as ``gyrostat backtest`` feeds them, or written as a log and given to ``gyrostat diagnose``.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from gyrostat_agent.backtest.case import Case
from gyrostat_agent.backtest.run import Course, Told, play
from gyrostat_agent.cli.group import gyrostat
from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_rules.pack import Severity

NAN = math.nan
Columns = Mapping[str, Sequence[float]]


def played(columns: Columns, trainer: str = "", steps: Sequence[int] = ()) -> Course:
    """What the shipped packs tell of a run; steps count from 1 unless given."""
    text = builtin()
    return play([case(name, column, trainer, steps) for name, column in columns.items()], text, digest_of(text))


def case(name: str, column: Sequence[float], trainer: str, steps: Sequence[int]) -> Case:
    """One series of a run."""
    series = tuple(zip(steps or range(1, len(column) + 1), column, strict=True))
    return Case("run", 1, name, "run", "any", name, False, series, None, None, trainer)


def noisy(count: int, middle: float, spread: float = 0.05, seed: int = 1) -> list[float]:
    """Log-normal around a level."""
    dice = Random(f"{seed}/{middle}")
    return [middle * math.exp(dice.gauss(0.0, spread)) for _ in range(count)]


def loud(course: Course, severity: Severity = Severity.WARNING) -> list[Told]:
    """The alerts that call somebody: warnings and worse, or critical ones."""
    wanted = (severity, Severity.CRITICAL)
    return [one for one in course.told if one.severity in wanted]


@pytest.mark.parametrize("before", [1, 40], ids=["at the start", "later"])
def test_a_nan_that_recovers_by_itself_is_a_warning(before: int) -> None:
    """One bad row that was skipped: others stop the run for it, or say nothing."""
    course = played({"loss": [*noisy(before, 0.3), NAN, *noisy(40, 0.3)]})
    assert [(one.severity, one.step) for one in loud(course)] == [(Severity.WARNING, before + 1)]
    assert course.opened == []


@pytest.mark.parametrize(
    ("series", "usual"),
    [("grad_norm", 0.5), ("reward", 0.5), ("entropy", 0.5), ("kl", 0.01), ("critic_loss", 0.5), ("ppo_kl", 1e-3)],
    ids=str,
)
def test_a_nan_anywhere_but_in_the_loss_is_seen_at_once(series: str, usual: float) -> None:
    """Four of the others look at the loss alone; by the second row it is an incident."""
    course = played({"loss": noisy(45, 0.3), series: [*noisy(40, usual), *[NAN] * 5]})
    assert [(one.severity, one.step) for one in loud(course)] == [(Severity.WARNING, 41), (Severity.CRITICAL, 42)]
    assert [one.step for one in course.opened] == [42]


def test_a_loss_scale_is_no_loss() -> None:
    """It doubles and halves all the time in a healthy run; another tool called that a diverging loss."""
    search = [2.0 ** (32 - row) for row in range(16)]
    steady = [2.0 ** (16 + row // 60 - (row % 60 == 0)) for row in range(240)]
    assert loud(played({"loss_scale": search + steady, "loss": noisy(256, 2.0)}, "deepspeed")) == []


@pytest.mark.parametrize(
    ("trainer", "norms"),
    [("hf_trainer", [NAN] * 5), ("hf_trainer", None), ("trl", [0.0] * 5)],
    ids=["norm is NaN", "loss alone", "norm is 0"],
)
def test_a_nan_that_was_filtered_to_0_is_found(trainer: str, norms: list[float] | None) -> None:
    """The logger shows a loss of 0.0 in its place: "no problems found" is the wrong thing to say."""
    columns = {"loss": [*noisy(40, 1.5), *[0.0] * 5]}
    course = played(columns if norms is None else {**columns, "grad_norm": [*noisy(40, 0.5), *norms]}, trainer)
    assert min(one.step for one in loud(course)) == 41
    assert [(one.kind, one.step) for one in course.opened] == [("nonfinite", 42)]


@pytest.mark.parametrize("level", [0.28, 0.6, 0.95])
def test_a_low_entropy_is_healthy_and_its_collapse_is_not_missed_for_it(level: float) -> None:
    """Published healthy runs lie below 1 nat; a tool that calls all of them critical is muted when it is true."""
    healthy = noisy(200, level, 0.02)
    assert loud(played({"entropy": healthy})) == []
    course = played({"entropy": [*healthy, *(level * 0.85**row for row in range(1, 30))]})
    gone = next(row for row in range(1, 30) if level * 0.85**row < min(0.15, level / 4))
    assert 200 < min(one.step for one in loud(course)) <= 200 + gone
    assert [one.kind for one in course.opened] == ["entropy"]


@pytest.mark.parametrize("blip", [[1.9], [30.0, 30.0, 30.0]], ids=["none", "an alert of its own"])
@pytest.mark.parametrize("series", ["grad_norm", "loss"])
def test_a_small_blip_does_not_swallow_the_blow_up_behind_it(series: str, blip: list[float]) -> None:
    """Eight steps later it is 1,400 times its usual; a cooldown must let worse things through."""
    wild = [*noisy(100, 0.5), *(0.5 * by for by in blip), *noisy(8, 0.5, seed=2), *[700.0] * 3]
    course = played({series: wild})
    struck = len(wild) - 2
    fresh = [one for one in loud(course) if struck <= one.step <= struck + 1]
    assert fresh, [(one.alert, one.step, one.until) for one in loud(course)]


def test_one_divergence_is_told_once() -> None:
    """Its numbers change at every row and it is one all the same; another tool told one eleven times."""
    growing = [1.3**row for row in range(1, 40)]
    course = played({"loss": [*noisy(60, 1.0), *growing], "grad_norm": [*noisy(60, 1.0, seed=2), *growing]})
    told = Counter(one.alert for one in loud(course))
    assert told and max(told.values()) == 1
    assert len(course.opened) <= 1


def test_a_run_that_was_taken_back_is_not_an_alarm() -> None:
    """After a rollback of 20 steps the loss stands where it stood then: a baseline of before must not call it ill."""
    loss = [1.5 + 2.0 * math.exp(-row / 30) for row in range(200)]
    shaken = [value * by for value, by in zip(loss, noisy(200, 1.0, 0.01), strict=True)]
    steps = [*range(1, 121), *range(101, 201)]
    columns = {"loss": [*shaken[:120], *shaken[100:]], "grad_norm": noisy(220, 0.5, 0.1)}
    assert loud(played(columns, steps=steps)) == []


def test_a_healthy_run_is_left_alone() -> None:
    """Others would have stepped in 192 times in 1,000 such steps: no incident, and one warning at most."""
    count = 1000
    settling = [0.4 + 0.5 * math.exp(-row / 200) for row in range(count)]
    course = played(
        {
            "loss": noisy(count, 0.08, 0.3), "grad_norm": noisy(count, 0.35, 0.3),
            "entropy": [value * by for value, by in zip(settling, noisy(count, 1.0, 0.04), strict=True)],
            "kl": [0.002 + 0.06 * row / count for row in range(count)],
            "reward": [0.2 + 0.5 * row / count + 0.1 * (by - 1.0) for row, by in enumerate(noisy(count, 1.0, 0.4))],
            "response_length": noisy(count, 450.0),
        }
    )  # fmt: skip
    assert course.opened == [] and len(loud(course)) <= 1


# -- logs, as a person gives them ---------------------------------------------------------------------


def diagnosed(path: Path) -> tuple[int, dict[str, Any]]:
    """Exit status and answer of ``gyrostat diagnose``."""
    result = CliRunner().invoke(gyrostat, ["diagnose", "--json", str(path)])
    found: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, found


@pytest.mark.parametrize("spelled", ["null", "NaN"])
def test_a_log_with_nested_data_is_read(tmp_path: Path, spelled: str) -> None:
    """verl's file logger puts the numbers under ``data``: a tool that looks beside it calls every run clean."""
    rows = [(step, "0.2" if step <= 30 else spelled) for step in range(1, 41)]
    lines = [f'{{"step": {step}, "data": {{"actor/pg_loss": 0.01, "actor/grad_norm": {norm}}}}}' for step, norm in rows]
    path = tmp_path / "metrics.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    status, found = diagnosed(path)
    assert (status, found["healthy"]) == (1, False)
    assert found["faults"][0]["onset_step"] == 31


def test_a_run_that_is_all_nan_does_not_end_well(tmp_path: Path) -> None:
    """A script that asks by exit status must not be told that all is well."""
    path = tmp_path / "log.jsonl"
    rows = [{"loss": 1.5 if step < 5 else "NaN", "grad_norm": 0.5, "epoch": 0.1, "step": step} for step in range(1, 30)]
    path.write_text("".join(json.dumps(row).replace('"NaN"', "NaN") + "\n" for row in rows), encoding="utf-8")
    status, found = diagnosed(path)
    assert (status, found["healthy"]) == (1, False)
