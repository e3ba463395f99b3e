"""entropy_log.txt: the step first in a line, the entropy last, as ``awk '{print $1,$NF}'`` reads it.

What stands between is not read. A field may bear its name (``step=120 ... entropy=0.43``).
"""

import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.logs.said import Said, Told

_FIRST = re.compile(r"(?:(?:global_)?step[=:]?)?(\d{1,12})(?:\.0+)?[,:;]?", re.IGNORECASE)
_LAST = re.compile(r"(?:\w{0,30}entropy\w{0,30}[=:])?([-+]?[\w.+-]{1,40})", re.IGNORECASE)
_WORDS = re.compile(r"nan|[-+]?inf(?:inity)?", re.IGNORECASE)


class EntropyLogReader:
    """A row a line; a header and comments say nothing."""

    def read(self, line: Line) -> Iterable[Said]:
        """The step and the entropy of a line."""
        found = _row(line.text)
        if found is None and line.rank >= 0:  # "120: 0.43" looks like what a launcher puts before its lines
            found = _row(f"{line.rank} {line.text}")
            return (Told({"entropy": found[1]}, found[0]),) if found else ()
        return (Told({"entropy": found[1]}, found[0], rank=max(line.rank, 0)),) if found else ()

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()


def _row(text: str) -> tuple[int, float] | None:
    fields = text.replace(",", " ").split(None, 1) if "," in text else text.split(None, 1)
    if len(fields) < 2 or not (first := _FIRST.fullmatch(fields[0])):
        return None
    last = _LAST.fullmatch(fields[1].rsplit(None, 1)[-1])
    value = number(last[1]) if last else None
    return None if value is None else (int(first[1]), value)


def _sign(text: str) -> int:
    """Sure where entropy is named; else two numbers, the latter of which is no count."""
    row = _row(text)
    if row is None:
        return 3 if text.lower().lstrip("# ").startswith("step") and text.rstrip().lower().endswith("entropy") else 0
    last = text.split()[-1]
    if "entropy" in last.lower():
        return 3
    return int("=" not in text and "," not in text and ("." in last or _WORDS.fullmatch(last) is not None))


ENTROPY_LOG = Format(
    "entropy-log", "entropy_log.txt, step first and entropy last", _sign, EntropyLogReader, {"entropy": "entropy"},
    ("entropy_log*", "entropy*.txt", "entropy*.log"),
)  # fmt: skip
