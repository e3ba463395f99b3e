"""Recognise: which format a log is of, by the signs in its lines and its file's name."""

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line

SURE = 3  # of one line that no other trainer writes, or of several that may be
_ENOUGH = 3 * SURE  # and so far ahead of the next, that nothing more need be read


def recognise(lines: Iterable[Line], path: str, formats: Mapping[str, Format]) -> Format | None:
    """The format with the most signs, None where none is sure. Ties go by the file's name, then the table's order.

    Lines that only may be of a format count together as one that is: however many there are, they prove no more. And
    where a format has file names of its own, without one of those they prove nothing.
    """
    named = {f.name for f in formats.values() if any(fnmatchcase(os.path.basename(path), p) for p in f.files)}
    marks = {name: 0.5 if name in named else 0.0 for name in formats}
    weak: dict[str, int] = {}
    for line in lines:
        for name, one in formats.items():
            if sign := one.sign(line.text):
                strong = sign >= SURE
                if strong or ((name in named or not one.files) and weak.get(name, 0) < SURE):
                    marks[name] += sign
                    weak[name] = weak.get(name, 0) + (0 if strong else sign)
        first, second = sorted(marks.values(), reverse=True)[:2] if len(marks) > 1 else (max(marks.values()), 0.0)
        if first - second >= _ENOUGH:
            break
    best = max(marks, key=lambda name: marks[name])
    return formats[best] if marks[best] >= SURE else None
