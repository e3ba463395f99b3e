"""Dict rows: the pairs of a row printed as a Python dict or as JSON, scanned and never evaluated.

A row may be cut in the middle or begin in the middle, and two processes' rows may share a line: what is whole of each
is taken, and a pair is whole where something ends it. Only values that are numbers are found, quoted or bare.
"""

import re
from collections.abc import Iterator

from gyrostat_agent.sources.logs.numerals import numbers

_LEAST = 4  # characters of which no pair is made
_NUMBER = r"-?(?:\d[\d.eE+-]*|[nN][aA][nN]|[iI]nf(?:inity)?|null|None)"
_PYTHON = re.compile(rf"'([^']+)': '?(?:[a-z][\w.]{{0,20}}\()?({_NUMBER})\)?'?(?=[,}}])")
_JSON = re.compile(rf'"([^"]+)": ?"?({_NUMBER})"?(?=[,}}])')


def python_row(text: str, begin: int = 0) -> dict[str, float]:
    """The numbers of ``{'loss': '0.0132', 'grad_norm': nan}`` from ``begin`` on, by name."""
    return numbers(_PYTHON.findall(text, begin))


def json_row(text: str, begin: int = 0) -> dict[str, float]:
    """The numbers of ``{"loss": 0.0132, "grad_norm": NaN}`` from ``begin`` on, by name."""
    return numbers(_JSON.findall(text, begin))


def parted(text: str, opening: str) -> Iterator[str]:
    """The text, cut before each ``opening``: ``{'`` or ``{"``. What lies before the first may end an earlier row."""
    begin = 0
    while (after := text.find(opening, begin + 1)) >= 0:
        if after - begin > _LEAST:
            yield text[begin:after]
        begin = after
    yield text[begin:]
