"""The page on guards says what there is: each guard, and the numbers that it has by default."""

import re
from pathlib import Path

import pytest

from gyrostat_rules.ceilings import RUN_ACTIONS, RUN_STEPS
from gyrostat_rules.guards import GUARDS
from gyrostat_rules.pack import Playbook

PAGE = (Path(__file__).parents[2] / "docs" / "guards.md").read_text("utf-8")
ROWS = {
    cells[1].strip(" `"): cells for line in PAGE.splitlines() if (cells := line.split("|"))[0] == "" and len(cells) > 5
}
BOOK = Playbook("stall", ())


def test_every_guard_has_its_row_in_the_order_of_asking() -> None:
    """And no row is of a guard that is not there."""
    assert [name for name in ROWS if re.fullmatch(r"[a-z_]+", name) and name != "guard"] == [
        guard.__name__ for guard in GUARDS
    ]


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        ("budget", f"{{actions: {BOOK.budget_actions}, steps: {BOOK.budget_steps}}}"),
        ("budget", f"{RUN_ACTIONS} in {RUN_STEPS} steps for the run"),
        ("ceiling", f"{{incidents: {BOOK.ceiling_incidents}, steps: {BOOK.ceiling_steps}}}"),
        ("standstill", f"{{incidents: {BOOK.standstill_incidents}, steps: {BOOK.standstill_steps}}}"),
        ("blast_radius", f"{{steps: {BOOK.most_lost}, knobs: {BOOK.most_knobs}, ranks: {BOOK.most_ranks}}}"),
        ("cooldown", f"cooldown: {BOOK.cooldown}`"),
    ],
)
def test_its_numbers_are_the_defaults(guard: str, said: str) -> None:
    """What a person reads is what the agent does."""
    assert said in "|".join(ROWS[guard])
