"""slime's console: ``model.py:918 - step 96: {'train/loss': 0.002}``, and rollouts under ids of their own.

Written from its own source, commit 624b824a (observability, megatron_utils/model). A rollout serves one or several
steps, so that its id is no step: what it says is told with the first step trained on it. Where a log has rollouts
alone, as that of the rollout process, their ids are the steps.
"""

import math
import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.dictline import values
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.said import EVAL, SKIPPED, Note, Said, Told

_KINDS = "critic-step|step|rollout|perf|eval|multi_turn|passrate"
_HEAD = re.compile(rf"(?:(?P<file>\w{{1,60}}\.py):\d{{1,6}} - |^|\) )(?P<kind>{_KINDS}) (?P<id>\d{{1,12}})$")
_WINDOW = 100  # characters before a dict in which its heading stands
_MOST = 2  # rollouts that may wait for their steps: an asynchronous trainer draws one ahead
_LATER = (Told({}),)  # understood, told with another line
_GUARDED = "model.py"  # this backend leaves the step out where the gradient is not finite; the other applies it


class SlimeReader:
    """Steps as they come; rollouts wait for theirs."""

    def __init__(self) -> None:
        self._step = -1
        self._taken = -1  # newest rollout whose steps have begun
        self._waiting: dict[int, dict[str, float]] = {}

    def read(self, line: Line) -> Iterable[Said]:
        """Most often one row a line; two where ranks wrote into one another."""
        text = line.text
        heads = _heads(text)
        if not heads:
            return ()
        ends = [head.start() for head in heads[1:]] + [len(text)]
        return [said for head, end in zip(heads, ends, strict=True) for said in self._row(text, head, end)]

    def end(self) -> Iterable[Said]:
        """Rollouts that no step was trained on."""
        return [said for number in list(self._waiting) for said in self._release(number)]

    def _row(self, text: str, head: re.Match[str], end: int) -> Iterable[Said]:
        told = values(text, head.end() + 2, end)
        told.pop("train/step", None)
        number, kind = int(head["id"]), head["kind"]
        if not told:
            return ()
        if kind == "step":
            return self._trained(told, number, head["file"] == _GUARDED)
        if kind == "critic-step":
            return (Told(told, number),)
        if kind == "eval":
            return (Told(told, self._step if self._step >= 0 else number, EVAL),)
        return self._rollout(told, number)

    def _trained(self, told: dict[str, float], step: int, guarded: bool) -> Iterable[Said]:
        self._step = step
        if self._waiting:
            self._taken = next(iter(self._waiting))
            told = {**self._waiting.pop(self._taken), **told}
            told = {**{n: v for n, v in told.items() if n.startswith("train/")}, **told}  # its own names come first
        skipped = guarded and not math.isfinite(told.get("train/grad_norm", 0.0))
        return (Told(told, step), Note(SKIPPED, step)) if skipped else (Told(told, step),)

    def _rollout(self, told: dict[str, float], number: int) -> Iterable[Said]:
        if number == self._taken and self._step >= 0:  # how long its steps took is told after them
            return (Told(told, self._step),)
        self._waiting.setdefault(number, {}).update(told)
        return self._release(next(iter(self._waiting))) if len(self._waiting) > _MOST else _LATER

    def _release(self, number: int) -> Iterable[Said]:
        return (Told(self._waiting.pop(number), self._step if self._step >= 0 else number),)


def _heads(text: str) -> list[re.Match[str]]:
    heads, at = [], text.find(": {'")
    while at >= 0:
        if found := _HEAD.search(text, max(0, at - _WINDOW), at):
            heads.append(found)
        at = text.find(": {'", at + 1)
    return heads


def _sign(text: str) -> int:
    return 3 if _heads(text) else 0


SLIME = Format(
    "slime", "slime, console", _sign, SlimeReader,
    {
        "train/loss": "loss", "train/pg_loss": "", "train/grad_norm": "grad_norm", "train/entropy_loss": "entropy",
        "train/kl_loss": "kl", "train/ppo_kl": "ppo_kl", "train/pg_clipfrac": "clip_fraction",
        "train/lr-pg_0": "learning_rate", "train/train_rollout_logprob_abs_diff": "mismatch_diff",
        "train/critic-*": "", "train/lr-*": "", "train/value_*": "",
        "rollout/raw_reward": "reward", "rollout/rewards": "", "rollout/reward_std": "reward_std",
        "rollout/response_lengths": "response_length", "rollout/response_len/mean": "response_length",
        "rollout/truncated_ratio": "truncated_fraction", "rollout/truncated": "truncated_fraction",
        "perf/tokens_per_gpu_per_sec": "throughput", "perf/step_time": "step_time",
        "perf/save_model_time": "checkpoint_seconds", "perf/*": "", "rollout/step": "",
    },
)  # fmt: skip
