"""ROLL's console and its log files: a prefix of brackets, then JSON of a step, then ``pipeline step 12 finished``.

Written from its own source, commit 8eb27cc2 (utils/logging, pipeline). The step is ``system/step``, or that of the
line that follows. JSON by Python's own writer, with a bare NaN; the fine-tuning pipeline prints a dict after a word.
"""

import json
import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.dictline import values
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.said import SKIPPED, Note, Said, Step, Told

_PREFIX = re.compile(
    r"\[[\d: -]{19}\] \[[\w.]{1,80} \(\d{1,6}\)\] \[[A-Z]{1,10}\] \[[\w-]{1,80} \d{1,6} / \d{1,6}\]\[PID \d{1,9}\] "
)
_FINISHED = re.compile(r"pipeline step (\d{1,12}) finished")
_NO_STEP = re.compile(r"final_response_mask\.sum\(\) == 0! Current step will be skipped")
_STEP = "system/step"


class RollReader:
    """One row a line; what has no step of its own takes that of the line which ends it."""

    def read(self, line: Line) -> Iterable[Said]:
        """One row a line, or two where processes wrote into one another."""
        text = line.text
        if "[PID " not in text and not text.startswith(("{", "metrics: {")):
            return _word(text)
        said: list[Said] = []
        begin = 0
        for head in _PREFIX.finditer(text):
            said += _message(text, begin, head.start())
            begin = head.end()
        return said + _message(text, begin, len(text))

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()


def _message(text: str, begin: int, end: int) -> list[Said]:
    if text.startswith("metrics: {", begin, end):
        begin += len("metrics: ")
    if not text.startswith(("{", '"{'), begin, end):
        return [*_word(text[begin:end])]
    told = _json(text[begin:end])
    step = told.pop(_STEP, None)
    return [Told(told, int(step) if step is not None and 0 <= step < 1e15 else None)] if told else []


def _json(text: str) -> dict[str, float]:
    try:
        row = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return values(text)  # cut, or Python's own spelling
    return {n: v for n, v in row.items() if isinstance(v, float)} if isinstance(row, dict) else {}


def _word(text: str) -> Iterable[Said]:
    if found := _FINISHED.search(text) if "pipeline step " in text else None:
        return (Step(int(found[1]), ends=True),)
    return (Note(SKIPPED, text=text),) if "Current step will be" in text and _NO_STEP.search(text) else ()


def _sign(text: str) -> int:
    return 3 if "[PID " in text[:200] and _PREFIX.match(text) else 1 if _FINISHED.search(text) else 0


ROLL = Format(
    "roll", "ROLL, console or log file", _sign, RollReader,
    {
        "actor/total_loss": "loss", "actor/pg_loss": "loss", "sft_train/loss": "loss", "sft_train/loss@sum": "loss",
        "actor_train/grad_norm": "grad_norm", "sft_train/grad_norm": "grad_norm", "actor/grad_norm": "grad_norm",
        "critic/entropy/mean": "entropy", "actor/entropy": "entropy", "actor/entropy_loss": "entropy",
        "actor/kl_loss": "kl", "critic/kl": "kl", "actor/approxkl": "ppo_kl", "actor/ppo_kl": "ppo_kl",
        "critic/score/mean": "reward", "critic/rewards/mean": "reward", "actor/lr": "learning_rate",
        "actor/clipfrac": "clip_fraction", "tokens/response_length/mean": "response_length",
        "system/tps": "throughput", "time/step_total": "step_time",
        "critic_train/*": "", "critic/lr": "", "critic/loss": "", "critic/vf*": "", "val_correct/*": "",
    },
    ("log_rank_*.log",),
)  # fmt: skip
