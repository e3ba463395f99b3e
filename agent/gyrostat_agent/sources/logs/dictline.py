"""Dict line: the numbers of a dict that a trainer printed on one line, Python's spelling or JSON's, whole or cut.

A scan by one regular expression, not a parser: a line may begin or end anywhere, or go on in another rank's, and what
is whole of each is read. A value counts where a comma or a bracket ends it: ``0.01`` of a cut ``0.0123`` is no number.
"""

import re
from collections.abc import Iterator

from gyrostat_agent.sources.logs.numerals import numbers

_LEAST = 4  # characters of which no pair is made
# Characters are listed rather than called a class: that is a sixth faster, and a log has many rows.
_PAIR = re.compile(
    r"""['"]([^'"\\]{1,200})['"]:\s?(?:(?:np|numpy|torch|jnp)\.\w{1,20}\(|tensor\()?['"]?"""
    r"""([-+]?[A-Za-z0-9_.][A-Za-z0-9_.%+/-]{0,40})['"]?(?=[)}]|,[\s"'])"""
)


def pairs(text: str, begin: int = 0, end: int | None = None) -> list[tuple[str, str]]:
    """Names and the text of their values, in order; lists and dicts among the values are left out."""
    return _PAIR.findall(text, begin, len(text) if end is None else end)


def values(text: str, begin: int = 0, end: int | None = None) -> dict[str, float]:
    """The numbers among them; ``None`` and ``null`` are NaN."""
    return numbers(pairs(text, begin, end))


def parted(text: str, opening: str) -> Iterator[str]:
    """The text, cut before each ``opening``: ``{'`` or ``{"``. What lies before the first may end an earlier row."""
    begin = 0
    while (after := text.find(opening, begin + 1)) >= 0:
        if after - begin > _LEAST:
            yield text[begin:after]
        begin = after
    yield text[begin:]
