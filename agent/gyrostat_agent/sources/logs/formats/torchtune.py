"""torchtune's metric loggers, of disk and console: ``Step 12 | loss:1.2345 lr:1e-05 grad_norm:0.31``; and its bar.

Written from torchtune 0.6.1 (training/metric_logging and the recipes). On the console a row is written piece by piece,
so that the bar may stand before it and behind it; a value may be ``tensor(1.2345, device='cuda:0')``.
"""

import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import numbers
from gyrostat_agent.sources.logs.said import SAVED, Note, Said, Told

_HEAD = re.compile(r"(?<![\w-])Step (\d{1,15}) \| (?=[A-Za-z_][^\s:]{0,200}:\S)")
_PAIR = re.compile(r"(?<!\S)([A-Za-z_][^\s:]*):(tensor\([^)]{0,80}\)|\S+)")
_BAR = re.compile(r"(?<!\d)\d{1,9}\|(\d{1,15})\|Loss: ([^\s:]{1,40})")
_SAVED = (" checkpoint of size ", "Checkpoint saved in ")
_SECONDS = re.compile(r"Saving checkpoint took (\d{1,9}(?:\.\d{1,9})?) secs")


class TorchtuneReader:
    """Remembers the newest step, for the notes."""

    def __init__(self) -> None:
        self._step = self._saved = -1

    def read(self, line: Line) -> Iterable[Said]:
        """One row a line, and one for a bar; several where they share one."""
        text, rank = line.text, max(line.rank, 0)
        said: list[Said] = []
        heads = list(_HEAD.finditer(text)) if "Step " in text else []
        for found in _BAR.finditer(text, 0, heads[0].start() if heads else len(text)):
            said += self._told(int(found[1]), [("Loss", found[2])], rank)
        ends = [head.start() for head in heads[1:]] + [len(text)]
        for head, end in zip(heads, ends, strict=False):
            said += self._told(int(head[1]), _PAIR.findall(text, head.end(), end), rank)
        if not said and any(words in text for words in _SAVED) and self._saved != self._step:
            self._saved = self._step  # a checkpoint has many files
            return (Note(SAVED, self._step),)
        if not said and self._step >= 0 and (took := _SECONDS.search(text)) is not None:
            return (Told({"seconds to save": float(took[1])}, self._step, rank=rank),)
        return said

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()

    def _told(self, step: int, pairs: list[tuple[str, str]], rank: int) -> Iterable[Said]:
        values = numbers(pairs)
        if not values:
            return ()
        self._step = step
        return (Told(values, step, rank=rank),)


def _sign(text: str) -> int:
    return 3 if _HEAD.match(text) is not None or _BAR.search(text) is not None else 0


TORCHTUNE = Format(
    "torchtune", "torchtune, log file or console", _sign, TorchtuneReader,
    {
        "loss": "loss", "Loss": "loss", "lr": "learning_rate", "grad_norm": "grad_norm", "rewards": "reward",
        "kl_loss": "kl", "approx_policy_kl": "ppo_kl", "approx_policy_kls": "ppo_kl", "clipfrac": "clip_fraction",
        "response_lengths": "response_length", "tokens_per_second_per_gpu": "throughput",
        "policy_loss": "", "value_loss": "", "ratios": "", "successes": "", "seconds to save": "checkpoint_seconds",
    },
    ("log_*.txt",),
)  # fmt: skip
