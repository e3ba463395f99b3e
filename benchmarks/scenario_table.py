"""The table of the scenario campaign: what was mended, how fast, at what cost, and what was not, seed by seed.

README and ``docs/scenarios.md`` show it between marks; a test holds them to the results that are checked in.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from bootstrap import lower_bound
from scenario_rows import Results, Row, has_fault

from gyrostat_agent.demo.scenarios import SCENARIOS

BEGIN, END = "<!-- scenarios: begin -->", "<!-- scenarios: end -->"
GOAL = -0.03  # of the mean difference between treated and twin; above it the lower bound holds
ENOUGH = 5  # seeds; one twin is luck, and the bound of fewer says nothing
ALL = "all"
_HEAD = ("scenario", "mended", "steps to the action", "steps lost", "treated", "twin", "lower bound (n)", "misses")


class Summary(NamedTuple):
    """What the ``runs`` of a scenario came to, or all of them. None: there is nothing to tell it by.

    ``acted``: steps from the fault to the first action, median and worst. ``treated`` and ``twin`` are mean rewards of
    those with a fault, where any has one; a run that died has none. ``bound`` is of the mean of their difference over
    ``seeds`` seeds. ``twinless``: runs whose twin is wanted and not there. ``misses``: seed and reason.
    """

    scenario: str
    runs: int
    mended: int
    acted: tuple[float, int] | None
    lost: float
    treated: float
    twin: float | None
    bound: float | None
    seeds: int
    twinless: int
    misses: tuple[tuple[int, str], ...]

    @property
    def holds(self) -> bool:
        """Every run was mended, and their reward is no worse than that of their twins, where seeds are enough."""
        judged = self.bound is not None and self.seeds >= ENOUGH
        return self.mended == self.runs and not self.twinless and (not judged or (self.bound or 0.0) > GOAL)


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """One of each scenario, in the order of the demonstration, then that of all."""
    named = [(name, [row for row in rows if row.scenario == name]) for name in SCENARIOS]
    found = [summary(name, its) for name, its in named if its]
    return [*found, summary(ALL, [row for row in rows if row.scenario in SCENARIOS])] if found else []


def summary(name: str, rows: Sequence[Row]) -> Summary:
    """What some rows, one at least, came to. Each seed counts once for the bound, by the mean of its differences.

    Scenarios of one seed share a clean run, so they are not independent of each other.
    """
    faulty = [row for row in rows if has_fault(row.scenario)]
    acted = [row.acted_after for row in faulty if row.acted_after is not None]
    twins = [row.twin for row in faulty if row.twin is not None]
    differences = _by_seed(faulty)
    return Summary(
        name, len(rows), sum(row.mended for row in rows), (median(acted), max(acted)) if acted else None,
        median(row.lost_steps for row in rows), mean(row.treated or 0.0 for row in faulty or rows),
        mean(twins) if twins else None, lower_bound(differences) if differences else None,
        len(differences), len(faulty) - len(twins),
        tuple((row.seed, row.why) for row in rows if not row.mended),
    )  # fmt: skip


def as_json(found: Iterable[Summary]) -> list[Mapping[str, Any]]:
    """The summaries for a results file; the misses, which stand in its rows, by number."""
    return [
        {name: round(value, 4) if isinstance(value, float) else value for name, value in one._asdict().items()}
        | {"holds": one.holds, "misses": one.runs - one.mended}
        for one in found
    ]


def markdown(results: Results) -> str:
    """The table, with a line above it that says how it came about and one below that says whether it holds."""
    found = summaries(results.rows)
    lines = [_played(results, found), "", _line(_HEAD), _line(["---"] * len(_HEAD))]
    lines += [_line(_cells(one)) for one in found]
    return "\n".join([*lines, "", verdict(found)])


def verdict(found: Sequence[Summary]) -> str:
    """Whether it all holds, in a sentence, and where not."""
    wrong = [one.scenario for one in found if not one.holds]
    few = any(one.bound is not None and one.seeds < ENOUGH for one in found)
    held = f"Not held: {', '.join(wrong)}." if wrong else "Held in every scenario." if found else "Nothing was played."
    return f"{held} Bounds of fewer than {ENOUGH} seeds are not judged." if few else held


def between_marks(page: str) -> str | None:
    """What a page shows between the marks; None where it has none."""
    _, _, rest = page.partition(BEGIN)
    shown, mark, _ = rest.partition(END)
    return shown.strip() if mark else None


def _by_seed(rows: Iterable[Row]) -> list[float]:
    seeds: dict[int, list[float]] = {}
    for row in rows:
        if row.difference is not None:
            seeds.setdefault(row.seed, []).append(row.difference)
    return [mean(differences) for _, differences in sorted(seeds.items())]


def _played(results: Results, found: Sequence[Summary]) -> str:
    counts = sorted({one.runs for one in found if one.scenario != ALL})
    seeds = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    named = {"gyrostat": "Gyrostat", "python": "Python", "torch": "torch"}
    tools = ", ".join(f"{shown} {results.played[name]}" for name, shown in named.items() if name in results.played)
    played = f"Mode act, approvals off: nobody helps. Seeds of each scenario: {seeds}. {tools}."
    codes = sorted({row.code for row in results.rows})
    if len(codes) > 1:
        return f"{played} Played with {len(codes)} versions of the code."
    return f"{played} One version of the code ({codes[0]})." if codes and codes[0] else played


def _cells(one: Summary) -> list[str]:
    acted = "-" if one.acted is None else f"{one.acted[0]:g} ({one.acted[1]})"
    bound = "-" if one.bound is None else f"{one.bound:+.3f} ({one.seeds})"
    twin = "-" if one.twin is None else f"{one.twin:.3f}"
    mended = f"{one.mended} of {one.runs}"
    return [one.scenario, mended, acted, f"{one.lost:g}", f"{one.treated:.3f}", twin, bound, _missed(one)]


def _missed(one: Summary) -> str:
    """Who was not mended and why, seed by seed; of all together how many, for each stands with its scenario."""
    if one.scenario == ALL:
        return str(len(one.misses)) if one.misses else "-"
    said = [f"seed {seed}: {' '.join(why.split()).replace('|', '/')}" for seed, why in one.misses]
    return "; ".join([*said, *([f"without a twin: {one.twinless}"] if one.twinless else [])]) or "-"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
