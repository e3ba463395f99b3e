"""Megatron-LM's console, of pretraining, SFT and RL; also Megatron-Bridge, Megatron-DeepSpeed and other forks.

``iteration 250/ 9000 | consumed samples: 16000 | lm loss: 3.1E+00 | grad norm: 0.777 | number of nan iterations: 0 |``
Written from Megatron-LM's own source, commit d98e8a64 (training_log, rerun_state_machine, checkpointing). A loss is
printed only where it is not negative, so that a NaN is a key that is not there; and the counts of skipped and of NaN
iterations are those of the window since the line before. Each value is followed by a bar: one that is not, was cut.
"""

import math
import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.moments import moment
from gyrostat_agent.sources.logs.numerals import number, numbers
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, SKIPPED, Fault, Note, Said, Told

_HEAD = re.compile(r"iteration\s+(\d{1,15})/\s*\d{1,15}\s*\|")
_PAIR = re.compile(r"\|\s?([^|:]+):\s+([^\s|/]+)(?=[\s|/])")
_VALIDATION = re.compile(r"validation loss at (?:iteration\s+(\d{1,15}))?[^|]{0,120}(?=\|)")
_SAVED = re.compile(r"successfully saved checkpoint (?:from|at) iteration\s+(\d{1,15})")
_SAVE = re.compile(r"save-checkpoint ?\.{0,80}: (?:\([\d.]{1,20}, ([\d.]{1,20})\)|([\d.]{1,20})(?=$|[\s|]))")
_SCHEDULED = "scheduled an async checkpoint save"
_RESUMED = re.compile(r"successfully loaded checkpoint from ")
_AT = re.compile(r" at iteration\s+(\d{1,15})")
_UNEXPECTED = re.compile(r"Unexpected result (.{1,80}?) (?:on rank \d|\(message=)")
_MESSAGE = re.compile(r"\(message='([^']{0,200})")
_RANK = re.compile(r"\b[Rr]ank (\d{1,9})\b")
_ITERATION = re.compile(r"iteration #?(\d{1,15})")

_GRADIENT, _MILLISECONDS, _SECONDS = "grad norm", "elapsed time per iteration (ms)", "elapsed time per iteration (s)"
_TO_SAVE = "save-checkpoint (s)"  # of the slowest rank: the others wait for it
_SKIPPED, _NAN = "number of skipped iterations", "number of nan iterations"
_EXTRA = ("balancing_loss", "z_loss")  # beside the loss, not the loss
_MOST = 100  # losses of one log


class MegatronReader:
    """Remembers which losses this log has, and the counts so far."""

    def __init__(self) -> None:
        self._step = -1
        self._whole: tuple[str, ...] = ()  # the names of a row that lacks no loss
        self._losses: dict[str, None] = {}  # in their order
        self._staged = False  # what is being saved is in memory only: what a timer says then is no save's time
        self._signed = False  # a policy's loss may be negative, and is then left out
        self._skipped = self._nan = 0.0
        self._again = (0.0, 0.0)  # of iteration 1, which is told on its own and once more with its window

    def read(self, line: Line) -> Iterable[Said]:
        """One row a line; two where two ranks wrote into one."""
        text, rank = line.text, max(line.rank, 0)
        if "iteration" not in text and "checkpoint" not in text and "validation" not in text:
            return ()
        heads = list(_HEAD.finditer(text))
        if not heads:
            return (*_said(text, rank), *self._saved(text, rank))
        at = moment(text)
        if len(heads) == 1:
            return self._row(int(heads[0][1]), text[heads[0].end() :], rank, at)
        ends = [head.start() for head in heads[1:]] + [len(text)]
        parts = [(int(head[1]), text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]
        return [said for step, part in parts for said in self._row(step, part, rank, at)]

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()

    def _saved(self, text: str, rank: int) -> Iterable[Said]:
        """How long a save took, where a timer says it: milliseconds, of the step that was told last."""
        if _SCHEDULED in text:
            self._staged = True
            return ()
        found = _SAVE.search(text) if self._step >= 0 and "save-checkpoint" in text else None
        value = number(found[1] or found[2]) if found else None
        staged, self._staged = self._staged, self._staged and value is None
        return () if value is None or staged else (Told({_TO_SAVE: value / 1000.0}, self._step, rank=rank),)

    def _row(self, step: int, text: str, rank: int, at: float | None) -> list[Said]:
        values = _values(text)
        if not values:
            return []
        if _MILLISECONDS in values:
            values[_SECONDS] = values[_MILLISECONDS] / 1000.0
        idle = False
        if _SKIPPED in values or _GRADIENT in values:  # they come after the losses: a line cut before has none missing
            idle = self._is_idle(step, values)
            self._complete(values, idle)
        self._count(step, values)
        self._step = step
        told = Told(values, step, rank=rank, at=at)
        return [told, Note(SKIPPED, step)] if idle else [told]

    def _is_idle(self, step: int, values: dict[str, float]) -> bool:
        """True where every iteration of the window was skipped: fp16 seeks its scale so, and there is no loss then."""
        skipped = values.get(_SKIPPED, 0.0)
        if not skipped > 0:
            return False
        if 0 <= self._step < step:
            return skipped >= step - self._step
        return not any(values.get(name) for name in values if _is_loss(name))

    def _complete(self, values: dict[str, float], idle: bool) -> None:
        """Puts NaN where a loss is missing that must have been NaN; takes a 0 away that is the mean over nothing."""
        names = tuple(values)
        if names == self._whole and not idle:
            return
        present = [name for name in values if _is_loss(name)]
        if len(self._losses) < _MOST:
            self._losses.update(dict.fromkeys(present))
            self._whole = names if len(present) == len(self._losses) else ()
        self._signed = self._signed or any(name.startswith("rl/") for name in values)
        if idle:
            for name in present:
                if values[name] == 0.0:
                    del values[name]
        elif values.get(_NAN, 0.0) > 0 or not math.isfinite(values.get(_GRADIENT, 0.0)):
            for name in self._losses or ("lm loss",):
                values.setdefault(name, math.nan)
        elif not self._signed and len(present) < len(self._losses):
            for name in self._losses:
                if not name.endswith(_EXTRA):
                    values.setdefault(name, math.nan)

    def _count(self, step: int, values: dict[str, float]) -> None:
        """Makes the windows' counts ones since the beginning, as all formats tell them."""
        skipped, nan = values.get(_SKIPPED, 0.0), values.get(_NAN, 0.0)
        if step < self._step:  # begun again from a checkpoint
            self._skipped = self._nan = 0.0
        elif self._step == 1 and step > 2:
            self._skipped -= self._again[0]
            self._nan -= self._again[1]
        self._again = (skipped, nan)
        self._skipped += skipped
        self._nan += nan
        if _SKIPPED in values:
            values[_SKIPPED] = self._skipped
        if _NAN in values:
            values[_NAN] = self._nan


def _values(text: str) -> dict[str, float]:
    """The numbers between the bars; at once where the row is whole and has nothing else."""
    try:
        if text.endswith(" |") and "|  " not in text:
            return {name: float(value) for name, value in [part.split(": ", 1) for part in text[1:-2].split(" | ")]}
    except ValueError:
        pass
    return numbers([(name.strip(), value) for name, value in _PAIR.findall("|" + text)])


def _is_loss(name: str) -> bool:
    return name.endswith("loss")


def _said(text: str, rank: int) -> Iterable[Said]:
    """What a line says that is no row."""
    if (found := _VALIDATION.search(text)) is not None:
        values = numbers(_PAIR.findall(text, found.end()))
        step = int(found[1]) if found[1] else None
        return (Told(values, step, EVAL, rank, moment(text)),) if values else ()
    if (found := _SAVED.search(text)) is not None:
        return (Note(SAVED, int(found[1])),)
    if (found := _RESUMED.search(text)) is not None:
        at = _AT.search(text, found.end())
        return (Note(RESUMED, int(at[1]) if at else -1),)
    return _guard(text, rank) if "Unexpected result " in text else ()


def _guard(text: str, rank: int) -> Iterable[Said]:
    """What Megatron's own check of results found, on one rank: NaN, infinity or a loss that jumps."""
    result, message = _UNEXPECTED.search(text), _MESSAGE.search(text)
    if result is None:
        return ()
    value = number(result[1])
    why = message[1] if message else "unexpected result"
    finite = value is not None and math.isfinite(value)
    if finite and not re.search(r"\b(?:nan|inf)\b", why, re.IGNORECASE):
        return ()
    whose, when = _RANK.search(text), _ITERATION.search(text)
    where = f" at iteration {when[1]}" if when else ""
    return (Fault("nan", f"Megatron's check of results: {why}{where}", int(whose[1]) if whose else rank),)


def _sign(text: str) -> int:
    if "iteration" not in text:
        return 0
    if _HEAD.search(text) is not None:
        return 3 if "consumed samples:" in text or "elapsed time per iteration" in text else 1
    return int(" lm loss value: " in text)


MEGATRON = Format(
    "megatron", "Megatron-LM console", _sign, MegatronReader,
    {
        "lm loss": "loss", "loss": "loss", "grad norm": "grad_norm", "learning rate": "learning_rate",
        "rl/entropy_term": "entropy", "rl/kl_term": "kl", "rl/truncated_from_above": "clip_fraction",
        "load_balancing_loss": "balance_loss", "seq_load_balancing_loss": "balance_loss",
        "global_load_balancing_loss": "balance_loss", "z_loss": "z_loss", "loss scale": "loss_scale",
        _SKIPPED: "skipped_steps", _NAN: "nan_steps", _SECONDS: "step_time", _MILLISECONDS: "",
        _TO_SAVE: "checkpoint_seconds",
        "throughput per GPU (TFLOP/s/GPU)": "throughput", "rl/pi_over_pi_old": "", "params norm": "", "num zeros": "",
    },
)  # fmt: skip
