"""trainer_state.json of Hugging Face's Trainer: all rows so far, each with its step, in every checkpoint.

One JSON document over many lines, or in one; NaN is bare. It is scanned, not loaded: it grows with the run, and a
checkpoint that was cut short still tells the rows that are whole.
"""

import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.formats.hf import ALIASES
from gyrostat_agent.sources.logs.formats.hffilter import LossFilter
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Said, Told

_TOKEN = re.compile(r'"([^"]*)"\s{0,4}(:)?(?:\s{0,4}([-\w.+]+))?|([{}\[\]])')
_OPENING = re.compile(r'"log_history"\s{0,4}:\s{0,4}\[')
_TOP = ('"best_metric":', '"best_model_checkpoint":', '"best_global_step":')


class HfStateReader:
    """``_depth``: brackets open since ``log_history`` opened; 0 outside it, 2 within a row."""

    def __init__(self) -> None:
        self._depth = 0
        self._row: dict[str, float] = {}
        self._filter = LossFilter()

    def read(self, line: Line) -> Iterable[Said]:
        """The rows that end in this line."""
        text, begin = line.text, 0
        said: list[Said] = []
        while begin >= 0:
            if self._depth == 0:
                found = _OPENING.search(text, begin)
                if found is None:
                    break
                self._depth, self._row, begin = 1, {}, found.end()
            begin = self._scan(text, begin, said)
        return said

    def end(self) -> Iterable[Said]:
        """A row that is cut short has lost its step, or the half of it: nothing is held."""
        return ()

    def _scan(self, text: str, begin: int, said: list[Said]) -> int:
        """Read on within the history; where it ends, or -1 where the line ends first."""
        for found in _TOKEN.finditer(text, begin):
            name, colon, value, bracket = found.groups()
            if colon:
                if value and self._depth == 2 and (read := number(value)) is not None:
                    self._row[name] = read
            elif bracket in ("{", "["):
                self._depth += 1
            elif bracket:
                self._depth -= 1
                if self._depth == 1:
                    said += self._told()
                elif self._depth == 0:
                    return found.end()
        return -1

    def _told(self) -> list[Said]:
        values, self._row = self._row, {}
        step = values.pop("step", -1.0)
        if not values or "train_runtime" in values or not 0 <= step < 1e12:
            return []
        self._filter.undo(values)
        return [Told(values, int(step), EVAL if any(n.startswith("eval_") for n in values) else TRAIN)]


def _sign(text: str) -> int:
    if _OPENING.search(text):
        return 3
    return 1 if text.lstrip().startswith(_TOP) else 0


HF_STATE = Format(
    "hf-state", "Hugging Face Trainer, trainer_state.json", _sign, HfStateReader, ALIASES, ("trainer_state*.json",)
)
