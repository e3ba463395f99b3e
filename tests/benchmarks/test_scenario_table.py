"""What the campaign says of its rows, and what README and the page of scenarios show of it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scenario_code import code
from scenario_rows import Results, Row, read, write
from scenario_table import BEGIN, END, Summary, as_json, between_marks, markdown, summaries, summary

from gyrostat_agent.demo.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results/scenarios.json"
ROW = Row("nan_data", 0, 60, True, "all of it held", 0.97, None, 0.96, 0.97, 2, 1, (), ("skip_data: done",))


def rows(count: int, **fields: Any) -> list[Row]:
    """The same row for so many seeds."""
    return [ROW._replace(seed=seed, **fields) for seed in range(count)]


def line(found: Sequence[Row], name: str) -> str:
    """A scenario's line of the table."""
    [one] = [line for line in markdown(Results({}, tuple(found))).splitlines() if line.startswith(f"| {name} ")]
    return one


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        (rows(20), True),
        ([*rows(19), ROW._replace(seed=19, mended=False)], False),
        (rows(20, treated=0.94), False),
        (rows(20, treated=0.941), True),
        ([*rows(4), ROW._replace(seed=4, treated=None)], False),
        ([*rows(19), ROW._replace(seed=19, twin=None)], False),
        (rows(4, treated=0.9), True),
    ],
    ids=["well", "one not mended", "as bad as the goal", "just better", "one died", "no twin", "too few to be judged"],
)
def test_what_holds(given: list[Row], holds: bool) -> None:
    """Every seed mended, every twin there, the bound above -0.03; one twin is luck, so a few seeds are not judged."""
    assert [one.holds for one in summaries(given)] == [holds, holds]


def test_a_run_that_died_has_no_reward() -> None:
    """It counts as 0, and is not left out of the mean."""
    told = summary("nan_data", [ROW, ROW._replace(seed=1, treated=None)])
    assert (told.treated, told.seeds) == (pytest.approx(0.48), 2)
    assert told.bound == pytest.approx(-0.97)


def test_each_seed_counts_once_over_all_scenarios() -> None:
    """Scenarios of one seed share their clean run: two of them are not twice the evidence."""
    found = summaries([*rows(20), *rows(20, scenario="nan_applied")])
    assert [(one.scenario, one.runs, one.seeds) for one in found] == [
        ("nan_data", 20, 20), ("nan_applied", 20, 20), ("all", 40, 20)
    ]  # fmt: skip


def test_the_table_says_what_a_reader_asks() -> None:
    """Under which mode it was played, how often it was mended, how fast, at what cost, and each miss by its seed."""
    found = [*rows(19), ROW._replace(seed=19, mended=False, why="reward 0.5 | too low\nat step 30", acted_after=7)]
    assert markdown(Results({"python": "3.11.7"}, tuple(found))).startswith(
        "Mode act, approvals off: nobody helps. Seeds of each scenario: 20. Python 3.11.7."
    )
    assert line(found, "nan_data") == (
        "| nan_data | 19 of 20 | 1 (7) | 2 | 0.960 | 0.970 | -0.010 (20) | seed 19: reward 0.5 / too low at step 30 |"
    )
    assert line(found, "all").endswith("| 1 |")


def test_results_come_back_as_they_were_written(tmp_path: Path) -> None:
    """A campaign goes on from its file, and the table is made of it."""
    file = tmp_path / "results" / "scenarios.json"
    given = [*rows(2), ROW._replace(seed=2, treated=None, went_back_to=(20, 20), twin=None, acted_after=None)]
    write(file, given, as_json(summaries(given)))
    assert list(read(file).rows) == given
    assert file.read_text(encoding="utf-8").count("\n") < 20, "a row is a line: a change of one is seen as one"


@pytest.mark.parametrize("page", ["README.md", "docs/scenarios.md"])
def test_pages_show_the_results_that_are_checked_in(page: str) -> None:
    """Nobody's table is older than the campaign, or better."""
    if not RESULTS.exists():
        pytest.skip("benchmarks/results/scenarios.json is not there yet: no campaign has been checked in")
    shown = between_marks((ROOT / page).read_text(encoding="utf-8"))
    assert shown == markdown(read(RESULTS)), f"{page}: paste what benchmarks/scenarios.py --table {RESULTS.name} prints"


def test_the_results_that_are_checked_in_leave_no_scenario_out() -> None:
    """A table that says "held" was played with all of them, the same seeds of each."""
    if not RESULTS.exists():
        pytest.skip("benchmarks/results/scenarios.json is not there yet: no campaign has been checked in")
    found = read(RESULTS).rows
    assert {row.key for row in found} == {(name, row.seed) for name in SCENARIOS for row in found}


def test_the_page_shows_no_other_table() -> None:
    """Between its marks stands the table of the results, and without results nothing."""
    shown = between_marks((ROOT / "docs/scenarios.md").read_text(encoding="utf-8"))
    assert shown is not None and (RESULTS.exists() or shown == "")


def test_marks_are_found() -> None:
    """A page without both marks has no table, rather than the rest of the page."""
    assert between_marks(f"a\n{BEGIN}\n\n| x |\n\n{END}\nb") == "| x |"
    assert between_marks(f"a\n{BEGIN}\n| x |\n") is None


def test_a_summary_of_what_was_never_acted_on_has_no_steps() -> None:
    """A missing figure is a dash, never a 0."""
    told: Summary = summary("nan_data", rows(5, acted_after=None))
    assert told.acted is None and " | - | " in line(rows(5, acted_after=None), "nan_data")


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (("", ""), ""),
        (("ab12", "ab12"), "One version of the code (ab12)."),
        (("ab12", "cd34"), "2 versions of the code"),
    ],
    ids=["not known", "one", "two"],
)
def test_the_table_says_how_many_versions_of_the_code_played_it(codes: tuple[str, str], said: str) -> None:
    """Rows of two versions are no one measurement, and must not look like it."""
    given = tuple(ROW._replace(seed=seed, code=code) for seed, code in enumerate(codes))
    told = markdown(Results({}, given)).splitlines()[0]
    assert told.endswith(said) if len(set(codes)) == 1 else said in told


def test_the_code_is_named_by_what_is_in_it() -> None:
    """The same name each time, and not that of nothing: what decides is found."""
    assert re.fullmatch(r"[0-9a-f]{10}", code())
    assert code() == code.__wrapped__()
