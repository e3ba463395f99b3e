"""OLMo-core's console: a head ``[step=12/5000,epoch=1,eta=3h]``, then a metric a line, indented: ``train/CE loss=3.1``.

Written from OLMo-core's own source, commit fa6c5014 (console_logger, utils). Numbers are for people: 12,345 and 1.2B.
The only trainer that shows the imbalance of every layer; the worst of them stands for all, lest a mean hide it.
"""

import math
import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.moments import moment
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.logs.said import RESUMED, SAVED, SKIPPED, Note, Said, Step, Told

_HEAD = re.compile(r"\[step=(\d{1,15})/(?:\d{1,15}|\?\?\?),epoch=\d")
_BLOCK = re.compile(r"train/block \d{1,6}/load imbalance")
_SAVED = re.compile(r"Checkpoint for step (\d{1,15}) saved successfully")
_SAVING = re.compile(r"Saving checkpoint for step (\d{1,15}) to ")
_LOADING = re.compile(r"Loading checkpoint from '([^']{1,1000})'")
_FOLDER = re.compile(r"/step(\d{1,15})\b")
_WORST = "load imbalance of the worst block, above 1"
_LONGEST = 200  # characters of a metric's line


class OlmoReader:
    """Remembers the head that the indented lines belong to."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._at: float | None = None
        self._worst = -math.inf
        self._saving: tuple[int, float | None] = (-1, None)  # a step, and when its checkpoint was begun

    def read(self, line: Line) -> Iterable[Said]:
        """A head announces its step, each indented line has one number of it."""
        text = line.text
        if text.startswith("  ") and self._step is not None and len(text) <= _LONGEST:
            return self._metric(text, max(line.rank, 0))
        if (found := _HEAD.search(text)) is not None:
            worst = self.end()
            self._step, self._at = int(found[1]), moment(text)
            return (*worst, Step(self._step))
        if (found := _SAVED.search(text)) is not None:
            return (Note(SAVED, int(found[1])), *self._took(int(found[1]), moment(text)))
        if (found := _SAVING.search(text)) is not None:
            self._saving = (int(found[1]), moment(text))
            return ()
        if (found := _LOADING.search(text)) is not None:
            folder = _FOLDER.search(found[1])
            return (Note(RESUMED, int(folder[1]) if folder else -1),)
        return ()

    def end(self) -> Iterable[Said]:
        """The worst of the blocks, where more might have come."""
        worst, self._worst = self._worst, -math.inf
        return () if worst == -math.inf else (Told({_WORST: worst}, self._step, at=self._at),)

    def _took(self, saved: int, at: float | None) -> Iterable[Said]:
        """How long a save took, as of the step that was told last: training goes on meanwhile."""
        step, begun = self._saving
        if saved != step or at is None or begun is None or self._step is None or at < begun:
            return ()
        return (*self.end(), Told({"seconds to save": at - begun}, self._step, at=self._at))

    def _metric(self, text: str, rank: int) -> Iterable[Said]:
        name, equals, written = text.strip().partition("=")
        value = number(written) if equals and "/" in name else None
        if value is None:
            return ()
        told = Told({name: value}, self._step, rank=rank, at=self._at)
        if _BLOCK.fullmatch(name) is not None:
            if not self._worst >= value - 1.0 and not math.isnan(self._worst):
                self._worst = value - 1.0
            return (told,)
        if name == "optim/step skipped" and value > 0 and self._step is not None:
            return (*self.end(), told, Note(SKIPPED, self._step))
        return (*self.end(), told)


def _sign(text: str) -> int:
    if _HEAD.search(text) is None:
        return int(text.startswith("    ") and text.lstrip().startswith(("train/CE loss=", "optim/total grad norm=")))
    return 3


OLMO = Format(
    "olmo", "OLMo-core console", _sign, OlmoReader,
    {
        "train/CE loss": "loss", "optim/total grad norm": "grad_norm", "optim/LR*": "learning_rate",
        "train/load balancing loss": "balance_loss", "train/router Z loss": "z_loss", "train/Z loss": "",
        _WORST: "expert_violation", "train/block*": "", "throughput/device/TPS": "throughput",
        "optim/step skipped": "", "train/PPL": "", "seconds to save": "checkpoint_seconds",
    },
)  # fmt: skip
