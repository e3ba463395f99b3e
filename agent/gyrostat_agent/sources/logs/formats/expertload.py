"""expert_load.log: which expert was chosen, third in a line, as ``awk '{print $3}' | sort | uniq -c`` counts it.

A line is one routed assignment, or where a whole number follows, so many: ``step layer expert [count]``. Fields may
bear their names (``step=120 layer=3 expert=17``). Where the first field is no step, but a time, the lines are counted
in stretches. What is told are the series that the engine makes of expert counts (``gyrostat_rules.experts``).
"""

import re
from collections.abc import Iterable

from gyrostat.wire import ExpertLoad
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.said import Said, Told
from gyrostat_rules import experts

_NAMED = re.compile(r"(?:(?:global_)?(step|layer|expert)(?:_?id)?[=:_]?|[leLE])?(\d{1,12})[,;]?", re.IGNORECASE)
_COUNT = re.compile(r"(?:(?:count|tokens|load|n)[=:])?(\d{1,15})[,;]?", re.IGNORECASE)
_LAYERS, _EXPERTS = 256, 1024  # ids above are no ids
_STRETCH = 4096  # lines that make a step, where none says it
_EARLIER = 4  # steps whose counts are added to those of a step with too few


class ExpertLoadReader:
    """Counts of the step that is being told, by layer and expert, and the number of experts of the whole log."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._counts: dict[tuple[int, int], int] = {}
        self._lines = 0
        self._layers = self._experts = 0
        self._earlier: list[ExpertLoad | None] = []

    def read(self, line: Line) -> Iterable[Said]:
        """The step before, once a line of another begins."""
        found = _assignment(line.text)
        if found is None:
            return ()
        step, layer, expert, count = found
        ends = self._lines and (step != self._step or (step is None and self._lines >= _STRETCH))
        said = self.end() if ends else ()
        self._step = step
        self._lines += 1
        self._counts[layer, expert] = self._counts.get((layer, expert), 0) + count
        self._layers, self._experts = max(self._layers, layer + 1), max(self._experts, expert + 1)
        return said

    def end(self) -> Iterable[Said]:
        """The step that was being told."""
        load, step = self.load(), self._step
        self._counts, self._lines = {}, 0
        if load is None:
            return ()
        values = experts.series_of(load, self._earlier)
        self._earlier = [*self._earlier[1 - _EARLIER :], experts.thin(load)]
        return (Told(values, step),) if values else ()

    def load(self) -> ExpertLoad | None:
        """The counts so far of the step that is being told; none where they are too few for that many experts."""
        size = self._layers * self._experts
        if not self._lines or size > 64 * (self._lines + 64):
            return None
        counts = [0] * size
        for (layer, expert), count in self._counts.items():
            counts[layer * self._experts + expert] = count
        return ExpertLoad(self._layers, 1, self._experts, tuple(counts))


def _assignment(text: str) -> tuple[int | None, int, int, int] | None:
    """Step (None where none is said), layer, expert and count of a line."""
    fields = text.replace(",", " ").split(None, 4)
    if len(fields) < 3:
        return None
    if len(fields) == 3 and text.isascii() and all(map(str.isdigit, fields)) and len(text) < 24:  # most lines by far
        layer, expert = int(fields[1]), int(fields[2])
        return (int(fields[0]), layer if layer < _LAYERS else 0, expert, 1) if expert < _EXPERTS else None
    first, second, third = (_NAMED.fullmatch(f) for f in fields[:3])
    if third is None or (third[1] or "expert").lower() != "expert" or int(third[2]) >= _EXPERTS:
        return None
    if first is None and not fields[0][:1].isdigit() and fields[0][:1] != "[":  # words, not a time
        return None
    layer = int(second[2]) if second and first and int(second[2]) < _LAYERS else 0
    count = _COUNT.fullmatch(fields[3]) if len(fields) > 3 else None
    return int(first[2]) if first else None, layer, int(third[2]), int(count[1]) if count else 1


def _sign(text: str) -> int:
    """Sure where experts are named; else whole numbers alone, three or four."""
    fields = text.replace(",", " ").split(None, 4)
    if len(fields) < 3 or _assignment(text) is None:
        return 0
    if fields[2][:6].lower() == "expert":
        return 3
    return int(len(fields) < 5 and "," not in text and all(f.isdigit() for f in fields[:3]))


EXPERT_LOAD = Format(
    "expert-load", "expert_load.log, expert third", _sign, ExpertLoadReader, {"expert_*": ""},
    ("expert_load*", "expert*.log"),
)  # fmt: skip
