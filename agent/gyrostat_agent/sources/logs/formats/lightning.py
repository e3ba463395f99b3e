"""Lightning: metrics.csv of its CSVLogger, and the numbers that its progress bars show.

A row of the table fills only the columns that were told at that step; a header may come again, when a run is appended
or a new column appears. A bar of rich is wrapped at the terminal's width, so that its numbers may follow in lines of
their own; one of tqdm holds them in its brackets.
"""

import csv
import re
from collections.abc import Iterable, Sequence

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import numbers
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Said, Told

_RICH = re.compile(r"Epoch (\d{1,9})/-?\d{1,9} {1,8}\S{0,400} {0,8}(\d{1,9})/(\d{1,9}) \d+:\d\d:\d\d")
_TQDM = re.compile(r"Epoch (\d{1,9}): {1,8}\d{1,3}%\|[^|]{0,400}\| {0,8}(\d{1,9})/(\d{1,9}) \[([^\]]{0,4000})\]")
_SHOWN = re.compile(r"(?<![\w./-])([A-Za-z][\w./-]{0,80}): +([-+]?[\d.][\d.eE+-]*|-?nan|-?inf)(?=\s|$)")
_POSTFIX = re.compile(r", ([A-Za-z][\w./-]{0,80})=([^,\s\]]+)")
_CELL = re.compile(r"[A-Za-z_][\w ,./@()-]{0,120}")
_MOST = 4096  # columns; and characters of a bar that goes on and on
_APART = ("val", "test", "eval")


class LightningReader:
    """Table and console may come mixed. A bar of rich is held until something else begins."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._shown = ""  # what a bar of rich has shown so far
        self._step = 0

    def read(self, line: Line) -> Iterable[Said]:
        """Rows of the table; numbers of bars, of the step that the bar has come to."""
        text = line.text
        if self._shown and text.startswith("      ") and len(self._shown) < _MOST:
            self._shown += " " + text.strip()
            return ()
        said = list(self.end())
        if "Epoch " in text and not text.startswith("epoch,"):
            return said + self._bar(text)
        return said + self._row(text) if "," in text else said

    def end(self) -> Iterable[Said]:
        """The bar that was held."""
        shown, self._shown = self._shown, ""
        values = numbers(_SHOWN.findall(shown)) if shown else {}
        values.pop("v_num", None)
        return (Told(values, self._step),) if values else ()

    def _bar(self, text: str) -> list[Said]:
        if found := _RICH.search(text):
            self._step = _step(found[1], found[2], found[3])
            self._shown = text[found.end() : found.end() + _MOST]
        elif found := _TQDM.search(text):
            values = numbers(_POSTFIX.findall(found[4]))
            values.pop("v_num", None)
            return [Told(values, _step(found[1], found[2], found[3]))] if values else []
        return []

    def _row(self, text: str) -> list[Said]:
        cells = _cells(text)
        if _is_header(cells):
            self._columns = cells
            return []
        if len(cells) > len(self._columns):  # a row of another table
            return []
        values = numbers([(n, c) for n, c in zip(self._columns, cells, strict=False) if c and n])
        step = values.pop("step", -1.0)
        told = values.keys() - {"epoch"}
        if not told:
            return []
        phase = EVAL if all(n.lower().startswith(_APART) for n in told) else TRAIN
        return [Told(values, int(step) if 0 <= step < 1e12 else None, phase)]


def _step(epoch: str, done: str, total: str) -> int:
    return int(epoch) * int(total) + int(done)


def _cells(text: str) -> list[str]:
    if '"' not in text:
        return text.strip().split(",")
    try:
        return next(csv.reader([text.strip()]), [])
    except csv.Error:
        return []


def _is_header(cells: Sequence[str]) -> bool:
    return "step" in cells and len(cells) <= _MOST and all(map(_CELL.fullmatch, cells))


def _sign(text: str) -> int:
    if text.startswith(("epoch,", "step,")) or ",step" in text:
        cells = text.strip().split(",")
        return (3 if "epoch" in cells else 1) if _is_header(cells) else 0
    if "Epoch " in text:
        return 3 if _RICH.search(text) or ("v_num=" in text and _TQDM.search(text)) else 0
    return 0


LIGHTNING = Format(
    "lightning", "Lightning, metrics.csv or console", _sign, LightningReader,
    {
        "train_loss_step": "loss", "loss_step": "loss", "train/loss_step": "loss", "train_loss_epoch": "",
        "loss_epoch": "", "train/loss_epoch": "", "lr-*": "learning_rate", "grad_2.0_norm_total": "grad_norm",
        "grad_2.0_norm/*": "", "epoch": "",
    },
    ("metrics.csv",),
)  # fmt: skip
