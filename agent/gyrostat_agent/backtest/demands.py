"""Demands: what a backtest must come to, as ``--require`` says it."""

from collections.abc import Callable
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.backtest.tally import Tally
from gyrostat_agent.errors import SetupError


class Demand(NamedTuple):
    """A figure's name and its bound."""

    name: str
    bound: float


AT_LEAST: dict[str, Callable[[Tally], float | None]] = {
    "recall": lambda found: found.overall.recall.value,
    "precision": lambda found: found.overall.precision.value,
}
AT_MOST: dict[str, Callable[[Tally], float | None]] = {
    "false_incidents": lambda found: float(found.incidents),
    "false_incidents_per_1000": lambda found: found.false_rate.value,
    "warnings_per_1000": lambda found: found.warning_rate.value,
}


def demands(text: str) -> list[Demand]:
    """What is asked for; raises SetupError with every mistake."""
    found, wrong = [], []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, bound = part.partition("=")
        try:
            if name.strip() not in AT_LEAST | AT_MOST:
                raise ValueError
            found.append(Demand(name.strip(), float(bound)))
        except ValueError:
            wrong.append(clean(part))
    if wrong or not found:
        known = ", ".join(AT_LEAST | AT_MOST)
        said = "; ".join(wrong) or "nothing"
        raise SetupError(f"--require {said}: write NAME=NUMBER, parted by commas, with names of {known}")
    return found


def unmet(asked: list[Demand], found: Tally) -> list[str]:
    """What was asked for and is not so, in words. What nothing was counted for is not shown to be so."""
    said = []
    for name, bound in asked:
        least = name in AT_LEAST
        value = (AT_LEAST | AT_MOST)[name](found)
        if value is None:
            said.append(f"{name}: no case to tell it by")
        elif not (value >= bound if least else value <= bound):
            said.append(f"{name} is {value:g}, {'at least' if least else 'at most'} {bound:g} was required")
    return said
