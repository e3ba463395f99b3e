"""OpenRLHF's console: ``✨ Global step 40: {'policy_loss': -0.01, 'actor_grad_norm': 0.31}`` and its progress bars.

Written from its own source, commit 3c3be623 (ppo_trainer, ppo_trainer_async, logging_utils). The bar of the training
epoch tells micro-batches of the step that the next ``Global step`` line sums up: it counts where no such line comes
(old releases had none, and a run may die first) and, at once, where a value in it is not finite.
"""

import math
import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.dictline import values
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import numbers
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, Note, Said, Told

_HEAD = re.compile(r"Global step (\d{1,12})(?: \[[^\]]{0,60}\])?: \{(?=')")
_EVAL = re.compile(r"Evaluation completed in [\d:.]{1,20}, global_step (\d{1,12}), eval_metrics: \{")
_BAR = re.compile(r"Train epoch \[\d{1,6}/\d{1,6}\]: *\d{1,3}%\|[^|]{0,200}\| *(\d{1,9})/\d{1,9} \[[^,\]]{0,60}, ")
_BAR_PAIR = re.compile(r"([A-Za-z_]\w{0,40})=([-+\w.]{1,30})(?=, |\])")
_SAVED = re.compile(r"Saved (?:best )?checkpoint\b")
_RESUMED = re.compile(r"Load(?:ed|ing) the checkpoint: ")


class OpenRlhfReader:
    """``Global step`` lines as they come; the newest bar is held until it is known whether one sums it up."""

    def __init__(self) -> None:
        self._step = -1
        self._bar: dict[str, float] = {}
        self._at = 0  # micro-batches that the bar has seen

    def read(self, line: Line) -> Iterable[Said]:
        """One row a line."""
        text = line.text
        if "Global step " in text and (heads := list(_HEAD.finditer(text))):
            ends = [head.start() for head in heads[1:]] + [len(text)]
            return [told for head, end in zip(heads, ends, strict=True) for told in self._row(text, head, end)]
        if "Train epoch [" in text:
            return self._train_bar(text)
        if "global_step " in text and (found := _EVAL.search(text)):
            told = values(text, found.end())
            return (Told(told, int(found[1]), EVAL),) if told else ()
        return self._notes(text) if "checkpoint" in text else ()

    def end(self) -> Iterable[Said]:
        """The bar of a step that nothing sums up: the last that a dying run has said."""
        return self._release()

    def _row(self, text: str, head: re.Match[str], end: int) -> Iterable[Said]:
        told = values(text, head.end(), end)
        if not told:
            return ()
        self._step, self._bar, self._at = int(head[1]), {}, 0
        return (Told(told, self._step),)

    def _train_bar(self, text: str) -> Iterable[Said]:
        found = _BAR.search(text)
        if found is None:
            return ()
        told = numbers(_BAR_PAIR.findall(text, found.end()))
        given = self._release() if int(found[1]) < self._at and self._step < 0 else ()
        self._bar, self._at = told, int(found[1])
        sick = {name: value for name, value in told.items() if self._step >= 0 and not math.isfinite(value)}
        return (*given, Told(sick, self._next()))  # empty, and so only understood, where all are finite

    def _release(self) -> Iterable[Said]:
        bar, self._bar = self._bar, {}
        return (Told(bar, self._next()),) if bar else ()

    def _next(self) -> int | None:
        return self._step + 1 if self._step >= 0 else None

    def _notes(self, text: str) -> Iterable[Said]:
        if _SAVED.search(text):
            return (Note(SAVED, self._step, text),)
        return (Note(RESUMED, text=text),) if _RESUMED.search(text) else ()


def _sign(text: str) -> int:
    if "Global step " in text and _HEAD.search(text):
        return 3
    return 1 if "Train epoch [" in text and _BAR.search(text) else 0


OPENRLHF = Format(
    "openrlhf", "OpenRLHF, console", _sign, OpenRlhfReader,
    {
        "policy_loss": "loss", "act_loss": "loss", "pg": "loss", "actor_grad_norm": "grad_norm",
        "entropy_loss": "entropy", "kl": "kl", "ppo_kl": "ppo_kl", "vllm_kl": "mismatch_kl",
        "logprobs_diff": "mismatch_diff", "reward": "reward", "rm": "reward", "rollout/reward_mean": "reward",
        "rollout/reward_std": "reward_std", "actor_lr": "learning_rate", "act_lr": "learning_rate",
        "ppo_clip_ratio": "clip_fraction", "response_length": "response_length", "gen_len": "response_length",
        "glen": "response_length", "rollout/response_length_mean": "response_length",
        "rollout/truncated_rate": "truncated_fraction", "truncated_rate": "truncated_fraction",
        "timing/step_total": "step_time", "aux_loss": "balance_loss",
        "return": "", "ret": "", "critic_*": "", "cri*": "", "ptx*": "", "timing/*": "",
    },
)  # fmt: skip
