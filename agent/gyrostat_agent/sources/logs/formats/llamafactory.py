"""LLaMA-Factory's trainer_log.jsonl: a JSON row every few steps, kept over a resume.

Written from hiyouga/LLaMA-Factory ff6d4d12 (train/callbacks.py). It tells no gradient norm, and a value of None is
left out. Its console is that of Hugging Face's Trainer.
"""

from collections.abc import Iterable

from gyrostat_agent.sources.logs.dictline import parted, values
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.formats.hffilter import LossFilter
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Said, Told

_PROGRESS = {"total_steps", "percentage", "epoch", "total_tokens", "throughput", "elapsed_time", "remaining_time"}


class LlamaFactoryReader:
    """A row a line, or two where processes wrote at once."""

    def __init__(self) -> None:
        self._filter = LossFilter()

    def read(self, line: Line) -> Iterable[Said]:
        """The rows that are told, without those that only say how far the run is."""
        if '": ' not in line.text:
            return ()
        return [told for part in parted(line.text, '{"') if (told := self._told(part, max(line.rank, 0)))]

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()

    def _told(self, text: str, rank: int) -> Told | None:
        row = values(text)
        step = row.pop("current_steps", -1.0)
        if row.keys() <= _PROGRESS or (step < 0 and "epoch" not in row):
            return None
        self._filter.undo(row)
        row.pop("total_steps", None)
        row.pop("percentage", None)
        phase = EVAL if any(n.startswith(("eval_", "predict_")) for n in row) else TRAIN
        return Told(row, int(step) if 0 <= step < 1e12 else None, phase, rank)


def _sign(text: str) -> int:
    return 3 if text.startswith('{"current_steps": ') and '"total_steps": ' in text else 0


LLAMAFACTORY = Format(
    "llamafactory", "LLaMA-Factory, trainer_log.jsonl", _sign, LlamaFactoryReader,
    {
        "loss": "loss", "lr": "learning_rate", "learning_rate": "learning_rate", "reward": "reward",
        "throughput": "throughput", "total_tokens": "", "epoch": "", "accuracy": "",
    },
    ("trainer_log.jsonl",),
)  # fmt: skip
