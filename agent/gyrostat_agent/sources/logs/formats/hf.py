"""The console of Hugging Face's Trainer and of TRL: a Python dict every few steps, amid progress bars.

Written from transformers 5.24 and 4 (trainer.py, trainer_callback.py) and TRL f2cd5771 (grpo_trainer.py). Version 5
prints strings (``'0.0132'``), 4 prints floats. The closing row with ``train_runtime`` is no step. Dead weights never
show in a row: the next completion cannot be drawn, and that line ends the run.
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from gyrostat_agent.sources.logs.dictline import parted, values
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.formats.hfbars import Bar, Steps, bar_of
from gyrostat_agent.sources.logs.formats.hffilter import LossFilter
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, TRAIN, Fault, Note, Said, Told
from gyrostat_rules.series import PARAMS_FINITE

_SAVED = re.compile(r"Saving model checkpoint to (?:\S*checkpoint-(\d{1,12}))?")
_RESUMED = re.compile(r"(?:Resuming training from checkpoint.{0,200}?|Continuing training from) global step (\d{1,12})")
_UNDRAWABLE = "probability tensor contains either `inf`, `nan`"
_ROW = {"loss", "epoch", "grad_norm", "eval_loss"}  # one of which every row has, or half of one
_MOST = 64  # rows held for a bar that never comes


class Row(NamedTuple):
    """What a dict told. ``half``: the end of one whose beginning came before."""

    values: dict[str, float]
    phase: str
    half: bool


class HfReader:
    """A row is held until the next bar, for that says which step the row is of.

    Whatever else comes before it is left to others: it may be the error that ended the run.
    """

    def __init__(self) -> None:
        self._steps = Steps()
        self._filter = LossFilter()
        self._held: list[Row] = []
        self._told = False

    def read(self, line: Line) -> Iterable[Said]:
        """Rows once their step is known, checkpoints, and draws that failed."""
        text, rank = line.text, max(line.rank, 0)
        bar = bar_of(text)
        rows = _rows(text, bar.end if bar else 0) if "': " in text else []
        if rows:
            return self._take(rows, bar, rank)
        said: list[Said] = self._release(bar, rank) if self._held and bar else []
        if bar:
            self._steps.see(bar)
        if "heckpoint" in text or "global step" in text:
            said += self._notes(text)
        if _UNDRAWABLE in text:
            said += self._release(None, rank) + self._undrawable(rank)
        return said

    def end(self) -> Iterable[Said]:
        """The last rows, where no bar came after them."""
        return self._release(None, 0)

    def _take(self, rows: list[Row], bar: Bar | None, rank: int) -> list[Said]:
        said: list[Said] = []
        if bar and self._held:
            said += self._release(bar, rank)
        for row in rows:
            if "train_runtime" in row.values:
                said += self._release(None, rank) + self._close(row.values, rank)
                continue
            self._filter.undo(row.values)
            if row.half:
                said += self._second_half(row, rank)
            elif bar and row.phase == TRAIN and not self._held:
                said.append(self._tell(row, self._steps.beside(bar), rank))
            elif not self._steps.seen:
                said.append(self._tell(row, None, rank))
            else:
                self._held.append(row)
        return said + (self._release(None, rank) if len(self._held) > _MOST else [])

    def _second_half(self, row: Row, rank: int) -> list[Said]:
        if not self._held:
            return [self._tell(row, self._steps.newest if self._steps.newest >= 0 else None, rank)]
        first = self._held[-1].values
        first.update({n: v for n, v in row.values.items() if math.isfinite(first.get(n, 0.0))})
        return []

    def _release(self, bar: Bar | None, rank: int) -> list[Said]:
        """The rows that are held, now that it is known what comes after them."""
        held, self._held = self._held, []
        many = sum(row.phase == TRAIN for row in held)
        steps = iter(self._steps.burst(many, bar) if many > 1 else [self._steps.before(bar)] if many else [])
        return [self._tell(r, next(steps) if r.phase == TRAIN else self._steps.evaluated(), rank) for r in held]

    def _tell(self, row: Row, step: int | None, rank: int) -> Told:
        self._told = True
        return Told(row.values, step, row.phase, rank)

    def _close(self, values: dict[str, float], rank: int) -> list[Said]:
        """The closing row is no step; but where no other was printed, it is all that shows a NaN."""
        loss = values.get("train_loss", 0.0)
        return [] if self._told or math.isfinite(loss) else [Told({"train_loss": loss}, rank=rank)]

    def _undrawable(self, rank: int) -> list[Said]:
        why = "the policy's probabilities are not finite: no completion can be drawn from it"
        fault = Fault("nan", why, rank)
        if not self._told:  # before the first step it may be the precision, or the model as it was loaded
            return [fault]
        return [Told({PARAMS_FINITE: 0.0}, self._steps.evaluated(), rank=rank), fault]

    def _notes(self, text: str) -> list[Said]:
        if found := _SAVED.search(text):
            return [Note(SAVED, int(found[1] or -1))]
        if found := _RESUMED.search(text):
            self._steps.resume(int(found[1]))
            return [Note(RESUMED, int(found[1]))]
        return []


def _rows(text: str, begin: int) -> list[Row]:
    """The Trainer's rows in a line: often one, two where processes wrote at once; other dicts are none."""
    if text.startswith("{'", begin) and text.find("{'", begin + 1) < 0:
        row = _row(text, begin)
        return [row] if row else []
    found = [row for part in parted(text[begin:], "{'") if (row := _row(part, 0))]
    if len(found) == 2 and {row.phase for row in found} == {TRAIN} and not any(row.half for row in found):
        first, second = found[0].values, found[1].values  # of one step: what is not finite stays
        return [Row({**first, **{n: v for n, v in second.items() if math.isfinite(first.get(n, 0.0))}}, TRAIN, False)]
    return found


def _row(text: str, begin: int) -> Row | None:
    told = values(text, begin)
    half = not text.startswith("{'", begin)
    if not told or told.keys().isdisjoint(_ROW) or (half and "epoch" not in told):
        return None
    return Row(told, EVAL if any(n.startswith("eval_") for n in told) else TRAIN, half)


def _sign(text: str) -> int:
    if "{'" not in text or "'global_step/max_steps'" in text:  # the latter is ms-swift's
        return 0
    if "'loss': " not in text and "'eval_loss': " not in text and "'train_runtime': " not in text:
        return 0
    return 3 if "'epoch': " in text else 1


ALIASES = {
    "loss": "loss", "train_loss": "loss", "loss/policy_avg": "loss", "grad_norm": "grad_norm",
    "learning_rate": "learning_rate", "lr": "learning_rate", "entropy": "entropy", "entropy/mean": "entropy",
    "policy/entropy_avg": "entropy", "kl": "kl", "objective/kl": "kl", "policy/approxkl_avg": "ppo_kl",
    "reward": "reward", "objective/scores": "reward", "objective/rlhf_reward": "", "reward_std": "reward_std",
    "rewards/*": "",  # of one function each, or of a pair's better half
    "frac_reward_zero_std": "zero_advantage_fraction", "completions/mean_length": "response_length",
    "completion_length": "response_length", "completions/clipped_ratio": "truncated_fraction",
    "clip_ratio/region_mean": "clip_fraction", "clip_ratio": "clip_fraction",
    "policy/clipfrac_avg": "clip_fraction", "sampling/sampling_logp_difference/mean": "mismatch_diff",
    "aux_loss": "balance_loss", "load_balancing_loss": "balance_loss", "step_time": "step_time",
}  # fmt: skip

HF = Format("hf", "Hugging Face Trainer or TRL, console", _sign, HfReader, ALIASES)
