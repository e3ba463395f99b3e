"""The comparison: what the three runs came to, side by side; the verdict; the row of ``--json``."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from gyrostat_agent.demo.cases import Case, Deed, facts
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.scenarios import CLEAN, TREATED, UNTREATED, Scenario
from gyrostat_agent.demo.terminal import is_live


class Result(NamedTuple):
    """One run: its course, why it died ('' where it did not), and how long it took in seconds."""

    course: Course
    died: str
    seconds: float

    @property
    def reward(self) -> float | None:
        """Mean reward of the last ten steps; None for a run that died or never had a finite one."""
        reward = self.course.reward
        return None if self.died or not math.isfinite(reward) else reward


class Comparison(NamedTuple):
    """The three runs of one scenario and seed, ``steps`` long, the fault at ``fault_step``."""

    scenario: Scenario
    seed: int
    steps: int
    fault_step: int
    results: dict[str, Result]

    @property
    def treated(self) -> Result:
        """The run that has the sidecar beside it."""
        return self.results[TREATED]

    @property
    def mended(self) -> bool:
        """True where the treated run came to its last step and each of its incidents, one at least, is resolved."""
        course = self.treated.course
        resolved = all(case.state == "resolved" for case in course.cases.values())
        return bool(course.cases) and resolved and not self.treated.died and course.step >= self.steps


def verdict(comparison: Comparison) -> str:
    """What the demonstration showed, in one sentence."""
    return f"{_treated(comparison)}; {_untreated(comparison)}."


def rows(comparison: Comparison) -> list[list[str]]:
    """The table's rows: what is compared, then each run's."""
    results = list(comparison.results.values())
    return [
        ["last step", *(f"{r.course.step} of {comparison.steps}" for r in results)],
        ["reward, last 10", *(_reward(r) for r in results)],
        ["died of", *(r.died or "-" for r in results)],
        ["steps lost", *(str(r.course.lost) for r in results)],
        ["incidents", *("; ".join(map(_case, r.course.cases.values())) or "-" for r in results)],
        ["actions", *("; ".join(_deeds(r.course)) or "-" for r in results)],
        ["seconds", *(f"{r.seconds:.0f}" for r in results)],
    ]


def show(console: Console, comparison: Comparison) -> None:
    """Print the table and the verdict."""
    style = box.SIMPLE_HEAD if console.encoding.startswith("utf") else box.ASCII
    table = Table("", *comparison.results, box=style, pad_edge=False)
    for row in rows(comparison):
        table.add_row(*row)
    console.print(table)
    console.print(verdict(comparison), style=_colour(comparison) if is_live(console) else "")


def as_json(comparison: Comparison) -> dict[str, Any]:
    """One row of ``--json``: rewards are null where a run died."""
    return {
        "scenario": comparison.scenario.name,
        "seed": comparison.seed,
        **{name: comparison.results[name].reward for name in (CLEAN, UNTREATED, TREATED)},
        "incidents": [facts(case) for case in comparison.treated.course.cases.values()],
        "lost_steps": comparison.treated.course.lost,
        "seconds": round(sum(r.seconds for r in comparison.results.values()), 1),
    }


def _colour(comparison: Comparison) -> str:
    return "bold green" if comparison.mended else "bold red"


def _treated(comparison: Comparison) -> str:
    course, died = comparison.treated.course, comparison.treated.died
    if comparison.mended:
        done = _remedies(course.cases.values())
        clean = _reward(comparison.results[CLEAN])
        return (
            f"Mended: {done}, and the run reached step {course.step} at reward {_reward(comparison.treated)}"
            f" (clean {clean}; steps lost: {course.lost})"
        )
    if died:
        return f"Not mended: with the sidecar the run still died: {died}"
    if not course.cases:
        return "Not mended: the sidecar opened no incident"
    states = ", ".join(f"{name} is {case.state}" for name, case in course.cases.items())
    return f"Not mended: the run reached step {course.step} of {comparison.steps}, and incident {states}"


def _untreated(comparison: Comparison) -> str:
    untreated = comparison.results[UNTREATED]
    if untreated.died:
        return f"untreated it died after step {untreated.course.step}"
    return f"untreated it lived through the fault, reward {_reward(untreated)}"


def _remedies(cases: Iterable[Case]) -> str:
    said = [f"{d.remedy} at step {d.applied_step}" for case in cases for d in case.deeds.values() if _held(d)]
    return " and ".join(said) or "the fault passed by itself"


def _held(deed: Deed) -> bool:
    return deed.outcome == "done" and deed.remedy != "undo"


def _reward(result: Result) -> str:
    return "-" if result.reward is None else f"{result.reward:.3f}"


def _case(case: Case) -> str:
    resolved = f", resolved at {case.resolved_step}" if case.resolved_step >= 0 else f", {case.state}"
    return f"{case.kind}: onset {case.onset_step}, fired {case.fired_step}{resolved}"


def _deeds(course: Course) -> list[str]:
    return [
        f"{deed.remedy}: {deed.outcome or ('passed by' if deed.verdict == 'deny' else 'no outcome')}"
        for case in course.cases.values()
        for deed in case.deeds.values()
    ]
