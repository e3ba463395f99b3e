"""Dict line: the numbers of a dict that a trainer printed on one line, Python's spelling or JSON's, whole or cut.

A scan by one regular expression, not a parser: a line may end anywhere, or go on in another rank's, and what is whole
before that is read. A value counts where a comma or a bracket ends it: ``0.01`` of a cut ``0.0123`` is no number.
"""

import re

from gyrostat_agent.sources.logs.numerals import numbers

_PAIR = re.compile(
    r"""['"]([^'"\\]{1,200})['"]:\s?(?:(?:np|numpy|torch|jnp)\.\w{1,20}\(|tensor\()?['"]?"""
    r"""([-+]?[\w.][\w.%+/-]{0,40})['"]?(?=[)}]|,[\s"'])"""
)


def pairs(text: str, begin: int = 0, end: int | None = None) -> list[tuple[str, str]]:
    """Names and the text of their values, in order; lists and dicts among the values are left out."""
    return _PAIR.findall(text, begin, len(text) if end is None else end)


def values(text: str, begin: int = 0, end: int | None = None) -> dict[str, float]:
    """The numbers among them; ``None`` and ``null`` are NaN."""
    return numbers(pairs(text, begin, end))
