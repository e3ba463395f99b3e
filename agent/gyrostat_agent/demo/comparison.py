"""The comparison: what the three runs came to, side by side; the verdict; the row of ``--json``."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from gyrostat_agent.demo.cases import Case, facts
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.mending import mending
from gyrostat_agent.demo.scenarios import CLEAN, NOTHING, TREATED, UNTREATED
from gyrostat_agent.demo.terminal import is_live
from gyrostat_agent.demo.trio import Result, Trio


def verdict(trio: Trio) -> str:
    """What the demonstration showed, in one sentence."""
    return f"{_treated(trio)}; {_untreated(trio)}."


def rows(trio: Trio) -> list[list[str]]:
    """The table's rows: what is compared, then each run's."""
    results = list(trio.results.values())
    return [
        ["last step", *(f"{r.course.step} of {trio.steps}" for r in results)],
        ["reward, last 10", *(_reward(r) for r in results)],
        ["died of", *(r.died or "-" for r in results)],
        ["steps lost", *(str(r.course.lost) for r in results)],
        ["incidents", *("; ".join(map(_case, r.course.cases.values())) or "-" for r in results)],
        ["actions", *("; ".join(_deeds(r.course)) or "-" for r in results)],
        ["seconds", *(f"{r.seconds:.0f}" for r in results)],
    ]


def show(console: Console, trio: Trio) -> None:
    """Print the table and the verdict."""
    style = box.SIMPLE_HEAD if console.encoding.startswith("utf") else box.ASCII
    table = Table("", *trio.results, box=style, pad_edge=False)
    for row in rows(trio):
        table.add_row(*row)
    console.print(table)
    console.print(verdict(trio), style=_colour(trio) if is_live(console) else "")


def as_json(trio: Trio) -> dict[str, Any]:
    """One row of ``--json``: rewards are null where a run died."""
    judged = mending(trio)
    return {
        "scenario": trio.scenario.name,
        "seed": trio.seed,
        "steps": trio.steps,
        "fault_step": trio.fault_step,
        **{name: trio.results[name].reward for name in (CLEAN, UNTREATED, TREATED)},
        "incidents": [facts(case) for case in trio.treated.course.cases.values()],
        "mended": judged.mended,
        "why": judged.why,
        "went_back_to": [d.back_to for d in trio.treated.course.deeds if d.back_to >= 0],
        "lost_steps": trio.treated.course.lost,
        "seconds": round(sum(r.seconds for r in trio.results.values()), 1),
    }


def _colour(trio: Trio) -> str:
    return "bold green" if mending(trio).mended else "bold red"


def _treated(trio: Trio) -> str:
    course, judged = trio.treated.course, mending(trio)
    if not judged.mended:
        return f"Not mended: {judged.why}"
    if trio.scenario.fault == NOTHING:
        return (
            f"As it should be: {judged.why}, and the run reached step {course.step} at reward {_reward(trio.treated)}"
        )
    clean = _reward(trio.results[CLEAN])
    return (
        f"Mended: {judged.why}, and the run reached step {course.step} at reward {_reward(trio.treated)}"
        f" (clean {clean}; steps lost: {course.lost})"
    )


def _untreated(trio: Trio) -> str:
    untreated = trio.results[UNTREATED]
    if trio.scenario.fault == NOTHING:
        return f"without a sidecar its reward is {_reward(untreated)}"
    if untreated.died:
        return f"untreated it died after step {untreated.course.step}"
    return f"untreated it lived through the fault, reward {_reward(untreated)}"


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
