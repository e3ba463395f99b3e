"""verl's console and its JSON lines: ``step:12 - actor/entropy:0.41 - actor/grad_norm:np.float64(0.19)``.

Written from verl's own source, commit b178a3cd (aggregate_logger, tracking, metric_utils). The JSON lines are by
orjson, so that NaN and infinity are ``null`` there.
"""

import json
import math
import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import number, numbers
from gyrostat_agent.sources.logs.said import RESUMED, SAVED, SKIPPED, Note, Said, Told

_HEAD = re.compile(r"step:(\d{1,15}) - (?=\S+?:)")
_MOST_STEPS = 10**15
_PAIR = re.compile(r"([^\s:]+):(?:np\.\w+\()?([^\s()]+)\)?")
_WARN = re.compile(r"WARN: (?:rank (?P<rank>\d{1,6}) )?grad_norm is not finite: (?P<value>\S+)")
_SAVED = re.compile(r"local_global_step_folder: \S*global_step_(\d{1,15})")
_RESUMED = re.compile(r"Setting global step to (\d{1,15})")


class VerlReader:
    """Console lines and JSON lines may come mixed."""

    def read(self, line: Line) -> Iterable[Said]:
        """One row a line."""
        text = line.text
        if text.startswith("{"):
            return _row(text)
        head = _HEAD.search(text) if "step:" in text else None
        if head is not None:
            return _pairs(int(head[1]), text[head.end() :], max(line.rank, 0))
        return _notes(text, max(line.rank, 0))

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()


def _pairs(step: int, text: str, rank: int) -> Iterable[Said]:
    if (cut := text.find(" step:")) >= 0 and _HEAD.match(text, cut + 1):  # another rank's line in the same one
        return (*_pairs(step, text[:cut], rank), *VerlReader().read(Line(text[cut + 1 :], rank)))
    values = numbers(_PAIR.findall(text))
    return (Told(values, step, rank=rank),) if values else ()


def _row(text: str) -> Iterable[Said]:
    try:
        row = json.loads(text)
        step, data = row["step"], row["data"]
        read = {name: math.nan if value is None else value for name, value in data.items()}
        values = {name: float(value) for name, value in read.items() if isinstance(value, (int, float))}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return ()
    if not isinstance(step, int) or not 0 <= step < _MOST_STEPS:
        return ()
    return (Told(values, step),) if values else ()


def _notes(text: str, rank: int) -> Iterable[Said]:
    if found := _WARN.search(text):
        value = number(found["value"].rstrip(",."))
        return (
            Told({"actor/grad_norm": math.nan if value is None else value}, rank=int(found["rank"] or rank)),
            Note(SKIPPED, text=text),
        )
    if found := _SAVED.search(text):
        return (Note(SAVED, int(found[1])),)
    if found := _RESUMED.search(text):
        return (Note(RESUMED, int(found[1])),)
    return ()


def _sign(text: str) -> int:
    if _HEAD.match(text):
        return 3
    return 3 if text.startswith('{"step":') and '"data":{' in text.replace(" ", "")[:60] else 0


VERL = Format(
    "verl", "verl, console or file logger", _sign, VerlReader,
    {
        "actor/pg_loss": "loss", "actor/grad_norm": "grad_norm", "actor/entropy": "entropy",
        "actor/entropy_loss": "entropy", "actor/kl_loss": "kl", "actor/ppo_kl": "ppo_kl",
        "critic/rewards/mean": "reward", "critic/score/mean": "reward", "actor/lr": "learning_rate",
        "actor/pg_clipfrac": "clip_fraction", "response_length/mean": "response_length",
        "response_length/clip_ratio": "truncated_fraction", "perf/throughput": "throughput",
        "perf/time_per_step": "step_time", "timing_s/save_checkpoint": "checkpoint_seconds",
        "training/rollout_probs_diff_mean": "mismatch_diff",
        "rollout_corr/kl": "mismatch_kl",
        "critic/grad_norm": "", "critic/kl": "kl", "training/global_step": "",
    },
    ("*.jsonl",),
)  # fmt: skip
