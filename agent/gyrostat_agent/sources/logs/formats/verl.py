"""verl's console and its JSON lines: ``step:12 - actor/entropy:0.41 - actor/grad_norm:np.float64(0.19)``.

Written from verl's own source, commit b178a3cd (aggregate_logger, tracking, metric_utils). The JSON lines are by
orjson, so that NaN and infinity are ``null`` there. A warning of a gradient says no step: each rank and each mini-batch
may say it before the row of its step, and where Ray passes workers' lines on late, behind it.
"""

import json
import math
import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import number, numbers
from gyrostat_agent.sources.logs.said import RESUMED, SAVED, SKIPPED, Note, Said, Told

_HEAD = re.compile(r"step:(?<![A-Za-z_/.-]step:)(\d{1,15}) - (?=\S{1,300}?:)")  # what is sought fast comes first
_MOST_STEPS = 10**15
_GRADIENT = "actor/grad_norm"
_PAIR = re.compile(r"(?<!\S)([^\s:]{1,300}):(?:np\.\w{1,20}\()?([^\s()]+)")
_TENSOR = re.compile(r"\btensor\(([^\s(),]{1,40})[^()]{0,80}\)")
_WARN = re.compile(r"WARN: (?:rank (?P<rank>\d{1,6}) )?grad_norm is not finite: (?P<value>\S+)")
_SAVED = re.compile(r"local_global_step_folder: \S*global_step_(\d{1,15})")
_RESUMED = re.compile(r"Setting global step to (\d{1,15})")


class VerlReader:
    """Console lines and JSON lines may come mixed. Remembers which step a warning is of."""

    def __init__(self) -> None:
        self._step = -1  # of the newest row, or of the checkpoint that was taken up
        self._warned = False  # since that row
        self._late = False  # that row's gradient was not finite, and no warning had said so
        self._early: Told | None = None  # a warning before any row

    def read(self, line: Line) -> Iterable[Said]:
        """One row a line, or two where ranks wrote into one another."""
        text, rank = line.text, max(line.rank, 0)
        if text.startswith("{"):
            return self._seen(_row(text))
        head = _HEAD.match(text)
        if head is not None and _is_alone(text, head.end()):  # nearly every line
            return self._seen(_pairs(int(head[1]), text[head.end() :], rank))
        heads = list(_HEAD.finditer(text)) if "step:" in text else []
        if not heads:
            return self._warning(found, text, rank) if (found := _WARN.search(text)) else self._notes(text)
        if len(heads) == 1:
            return self._seen(_pairs(int(heads[0][1]), text[heads[0].end() :], rank))
        ends = [head.start() for head in heads[1:]] + [len(text)]
        rows = [(int(head[1]), _whole(text, head.end(), end)) for head, end in zip(heads, ends, strict=True)]
        return [said for step, part in rows for said in self._seen(_pairs(step, part, rank))]

    def end(self) -> Iterable[Said]:
        """A warning that no row came after."""
        early, self._early = self._early, None
        return (early, Note(SKIPPED)) if early else ()

    def _seen(self, told: Told | None) -> Iterable[Said]:
        if told is None or told.step is None:
            return ()
        early, self._early = self._early, None
        gradient = told.values.get(_GRADIENT, 0.0)
        self._late = not math.isfinite(gradient) and not self._warned
        self._step, self._warned = told.step, False
        if early is None:
            return (told,)
        return (told._replace(values={**told.values, **early.values}), Note(SKIPPED, told.step))

    def _warning(self, found: re.Match[str], text: str, rank: int) -> Iterable[Said]:
        value = number(found["value"].rstrip(",."))
        told = Told({_GRADIENT: math.nan if value is None else value}, rank=int(found["rank"] or rank))
        self._warned = self._warned or not self._late
        if self._step < 0:
            self._early = told
            return (Told({}),)  # understood, told with the first row
        step = self._step if self._late else self._step + 1
        return (told._replace(step=step), Note(SKIPPED, step, text))

    def _notes(self, text: str) -> Iterable[Said]:
        if found := _SAVED.search(text):
            return (Note(SAVED, int(found[1])),)
        if found := _RESUMED.search(text):
            self._step, self._warned, self._late = int(found[1]), False, False
            return (Note(RESUMED, self._step),)
        return ()


def _is_alone(text: str, begin: int) -> bool:
    """True where no other row can begin behind ``begin``: every ``step:`` there is the end of a name."""
    while (begin := text.find("step:", begin)) >= 0:
        if not (text[begin - 1].isalpha() or text[begin - 1] in "_/.-"):
            return False
        begin += len("step:")
    return True


def _whole(text: str, begin: int, end: int) -> str:
    """A part of a line, without the value at its end where another rank's row may have cut it."""
    if end == len(text) or text[end - 1].isspace():
        return text[begin:end]
    return text[begin : max(begin, text.rfind(" - ", begin, end))]


def _pairs(step: int, text: str, rank: int) -> Told | None:
    values = numbers(_PAIR.findall(_TENSOR.sub(r"\1", text) if "tensor(" in text else text))
    return Told(values, step, rank=rank) if values else None


def _row(text: str) -> Told | None:
    try:
        row = json.loads(text)
        step, data = row["step"], row["data"]
        read = {name: math.nan if value is None else value for name, value in data.items()}
        values = {name: float(value) for name, value in read.items() if isinstance(value, (int, float))}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    if not isinstance(step, int) or not 0 <= step < _MOST_STEPS:
        return None
    return Told(values, step) if values else None


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
