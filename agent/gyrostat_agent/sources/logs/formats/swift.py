"""ms-swift's logging.jsonl, the same rows on its console as Python dicts, and those of Megatron-swift.

Written from modelscope/ms-swift 3602360a (trainers/patcher.py, megatron/callbacks/print.py). The step stands in
``"global_step/max_steps": "7/900"``, in Megatron-swift in ``"iteration": "12/500"``. The closing row holds paths.
"""

import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.dictline import parted, values
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.formats.hf import ALIASES
from gyrostat_agent.sources.logs.formats.hffilter import LossFilter
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, TRAIN, Note, Said, Told

_STEP = re.compile(r"""["'](?:global_step/max_steps|iteration)["']: ?["'](\d{1,12})/\d{1,12}["']""")
_SAVED = re.compile(r"Saving model checkpoint to \S*checkpoint-(\d{1,12})")
_RESUMED = re.compile(r"(?:Continuing training from|Resuming training from checkpoint.{0,200}?) global step (\d{1,12})")
_PROGRESS = {"elapsed_time", "remaining_time", "percentage", "epoch", "global_step", "iteration"}


class SwiftReader:
    """A row a line; behind a bar on the console."""

    def __init__(self) -> None:
        self._filter = LossFilter()

    def read(self, line: Line) -> Iterable[Said]:
        """Rows that say their step, and checkpoints."""
        text, rank = line.text, max(line.rank, 0)
        opening = next((one for one in ('{"', "{'") if one in text), None)
        if opening is not None:
            return [told for part in parted(text, opening) if (told := self._told(part, values(part), rank))]
        return _notes(text) if "heckpoint" in text or "global step" in text else ()

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()

    def _told(self, text: str, row: dict[str, float], rank: int) -> Told | None:
        found = _STEP.search(text)
        step = float(found[1]) if found else row.get("global_step", -1.0)
        if "train_runtime" in row or row.keys() <= _PROGRESS or not (0 <= step < 1e12 or "loss" in row):
            return None
        self._filter.undo(row)
        for name in _PROGRESS & row.keys() - {"epoch"}:
            del row[name]
        phase = EVAL if any(n.startswith("eval_") for n in row) else TRAIN
        return Told(row, int(step) if 0 <= step < 1e12 else None, phase, rank)


def _notes(text: str) -> Iterable[Said]:
    if found := _SAVED.search(text):
        return (Note(SAVED, int(found[1])),)
    if found := _RESUMED.search(text):
        return (Note(RESUMED, int(found[1])),)
    return ()


def _sign(text: str) -> int:
    if "global_step/max_steps" in text and _STEP.search(text):
        return 3
    return 3 if "train_speed(" in text and _STEP.search(text) else 0


SWIFT = Format(
    "swift", "ms-swift or Megatron-swift, logging.jsonl or console", _sign, SwiftReader,
    {
        **ALIASES, "train_speed(s/it)": "step_time", "train_speed(iter/s)": "", "memory(GiB)": "",
        "rollout_correction/kl": "mismatch_kl", "z_loss": "z_loss",
    },
    ("logging.jsonl",),
)  # fmt: skip
