"""prime-rl's console, of trainer and orchestrator, and its JSON lines: ``SUCCESS Step 12 | 31.20s | Loss 0.0021 | ..``.

Written from its own source, commit 559b4477 (trainer/rl/train, orchestrator, monitors/file). Two traps. The
orchestrator draws steps ahead of the trainer, and both may write into one log: its rows wait for the trainer's of the
same step. And the JSON lines leave out what is not finite: a gradient norm that is gone beside the learning rate, or
a loss beside an entropy, is the NaN, as is each name of a ``Dropping .. non-finite value(s)`` warning.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.logs.said import RESUMED, SAVED, Note, Said, Told

_HEAD = re.compile(r"\bStep (\d{1,12}) +\|(?=[ |])")
_FIELD = re.compile(
    r"\| *([A-Za-z][A-Za-z. /@-]{0,40})(?<=[A-Za-z.])(?:: *| +)([-+]?(?:\d[\d.,]{0,30}(?:[eE][-+]?\d{1,4})?|nan|inf)%?)"
    r"(?:/(\d[\d.]{0,30}))?(?=[\s|]|$)"
)
_TIME = re.compile(r"\| *(?:Time: *)?(?=\d)([\d.hms ]{1,40})(?=\||$)")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|[hms])(?![a-z])")
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DROPPED = re.compile(r"Dropping \d+ non-finite value\(s\) from (?:Prime monitor \w+ payload|[^:]{1,400}): (.{1,2000})")
_EMPTY = re.compile(r"\bStep (\d{1,12}): empty train batch .{0,200}\(consecutive empty batches: (\d{1,9})/")
_SAVED = re.compile(r"Saving (?:\w+ )?checkpoint at step (\d{1,12})")
_RESUMED = re.compile(r"Resuming .{0,60}?\bstep (\d{1,12})")
_AHEAD = 8  # steps that an orchestrator may be ahead; beyond, the log is its own alone
_LATER = (Told({}),)  # understood, told with another line
_COMPANIONS = {
    "optim/grad_norm": {"optim/grad_norm", "optim/lr"},
    "loss/mean": {"loss/mean", "entropy/all/mean", "entropy/mean", "mismatch_kl/all/mean", "mismatch_kl/mean"},
}


class PrimeReader:
    """The trainer's rows as they come; the orchestrator's beside them."""

    def __init__(self) -> None:
        self._trained = -1  # newest step of the trainer
        self._held: dict[int, dict[str, float]] = {}
        self._alone = False  # no trainer writes into this log
        self._seen: set[str] = set()  # of _COMPANIONS: told beside theirs

    def read(self, line: Line) -> Iterable[Said]:
        """One row a line, or two where processes wrote into one another."""
        text = line.text
        if text.startswith("{"):
            return self._json(text)
        if "Step " in text and (heads := list(_HEAD.finditer(text))):
            ends = [head.start() for head in heads[1:]] + [len(text)]
            return [said for head, end in zip(heads, ends, strict=True) for said in self._console(text, head, end)]
        return self._notes(text)

    def end(self) -> Iterable[Said]:
        """The orchestrator's rows that the trainer has not come to."""
        held, self._held = self._held, {}
        return [Told(values, max(step, self._trained)) for step, values in held.items()]

    def _console(self, text: str, head: re.Match[str], end: int) -> Iterable[Said]:
        values = _fields(text, head.end() - 1, end)
        if not values:
            return ()
        if "Loss" in values or "Grad. Norm" in values:
            return self._of_trainer(values, int(head[1]), None)
        return self._of_orchestrator(values, int(head[1]))

    def _json(self, text: str) -> Iterable[Said]:
        row = _parsed(text)
        step = row.pop("step", None)
        if not isinstance(step, float) or not 0 <= step < 1e15:  # rows of the wall clock have none
            return ()
        at, producer = row.pop("time", None), row.pop("producer", "trainer")
        values = {name: value for name, value in row.items() if isinstance(value, float)}
        if values.get("time/save_ckpt") == 0.0:  # nothing was saved
            del values["time/save_ckpt"]
        self._restore(values)
        if not values:
            return ()
        if producer != "trainer":
            return self._of_orchestrator(values, int(step))
        return self._of_trainer(values, int(step), at if isinstance(at, float) else None)

    def _restore(self, values: dict[str, float]) -> None:
        """NaN for what has always been told beside what is told here."""
        for name, companions in _COMPANIONS.items():
            if not companions.isdisjoint(values):
                if name in values:
                    self._seen.add(name)
                elif name in self._seen:
                    values[name] = math.nan

    def _of_trainer(self, values: dict[str, float], step: int, at: float | None) -> Iterable[Said]:
        self._trained, self._alone = step, False
        return (Told({**values, **{**self._held.pop(step, {}), **values}}, step, at=at),)

    def _of_orchestrator(self, values: dict[str, float], step: int) -> Iterable[Said]:
        if self._alone or step == self._trained:
            return (Told(values, step),)
        self._held.setdefault(step, {}).update(values)
        if len(self._held) <= _AHEAD:
            return _LATER
        if self._trained < 0:
            self._alone = True
            return self.end()
        return (Told(self._held.pop(next(iter(self._held))), self._trained),)

    def _notes(self, text: str) -> Iterable[Said]:
        if "non-finite value(s)" in text and (found := _DROPPED.search(text)):
            return self._dropped(found[1])
        if "checkpoint" in text and (found := _SAVED.search(text)):
            return (Note(SAVED, int(found[1])),)
        if "Resuming" in text and (found := _RESUMED.search(text)):
            return (Note(RESUMED, int(found[1])),)
        if "empty train batch" in text and (found := _EMPTY.search(text)):
            return self._of_orchestrator({"consecutive_empty_batches": float(found[2])}, int(found[1]))
        return ()

    def _dropped(self, text: str) -> Iterable[Said]:
        names = [name.strip().removeprefix("metrics.") for name in text.split(",")]
        values = {name: math.nan for name in names if re.fullmatch(r"[\w/.@-]{1,200}", name) and name.strip(".")}
        if not values:
            return ()
        if self._trained < 0 and self._held:
            self._held[next(reversed(self._held))].update(values)
            return _LATER
        return (Told(values, self._trained if self._trained >= 0 else None),)


def _parsed(text: str) -> dict[str, Any]:
    try:
        row = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _fields(text: str, begin: int, end: int) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, value, whole in _FIELD.findall(text, begin, end):
        amount = number(value)
        if amount is not None and name not in values:
            values[name] = amount / (number(whole) or 1.0) if name == "Trainable" and whole else amount
    if values and (found := _TIME.search(text, begin, end)) and (seconds := _duration(found[1])):
        values["Time"] = seconds
    return values


def _duration(text: str) -> float:
    return sum((float(amount) * _SECONDS[unit] for amount, unit in _DURATION.findall(text)), 0.0)


def _sign(text: str) -> int:
    if text.startswith('{"step": ') and '"time": ' in text[:60]:
        return 3
    found = _HEAD.search(text) if "Step " in text else None
    return 3 if found and re.match(r" +(?:Time:? *)?\d", text[found.end() :]) else 0


PRIME_RL = Format(
    "prime_rl", "prime-rl, console or metrics.jsonl", _sign, PrimeReader,
    {
        "Loss": "loss", "loss/mean": "loss", "Grad. Norm": "grad_norm", "optim/grad_norm": "grad_norm",
        "Entropy": "entropy", "entropy/all/mean": "entropy", "entropy/mean": "entropy",
        "Mismatch KL": "mismatch_kl", "mismatch_kl/all/mean": "mismatch_kl", "mismatch_kl/mean": "mismatch_kl",
        "Reward": "reward", "reward/all/mean": "reward", "reward/mean": "reward",
        "LR": "learning_rate", "optim/lr": "learning_rate",
        "Throughput": "throughput", "perf/throughput": "throughput",
        "Time": "step_time", "time/step": "step_time", "time/save_ckpt": "checkpoint_seconds",
        "Max Vio": "expert_violation", "max_vio/mean": "expert_violation",
        "Truncation": "truncated_fraction", "is_truncated/all/mean": "truncated_fraction",
        "Seq. Length": "response_length", "decode_len/all/mean": "response_length",
        "seq_len/all/mean": "response_length", "loss/*": "", "entropy/*": "", "mismatch_kl/*": "", "reward/*": "",
        "perf/*": "", "time/*": "", "seq_len/*": "",
    },
    ("metrics.jsonl",),
)  # fmt: skip
