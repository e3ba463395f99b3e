"""train.log of a trainer of one's own: ``step=120 loss=0.41 grad_norm=nan``, or ``step: 120 | loss: 0.41``.

What ``grep -i "nan\\|inf" train.log`` finds is found here too, in pairs and in words ("grad norm is NaN at step 7").
A line counts where it says a step and a measure that is known, or two of those, or one that is not finite: start-up
dumps of settings, timestamps, paths, addresses and process numbers are no metrics.
"""

import math
import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Said, Told
from gyrostat_rules.series import POISON, meaning, measured

_VALUE = r"[-+]?(?:\d[\d,]{0,20}(?:\.\d*)?(?:[eE][-+]?\d{1,4})?|\.\d+|nan|inf(?:inity)?|null|none)(?:%|[KMB]\b)?"
_PAIR = re.compile(
    r"(?<![\w/.:@-])((?:(?:grad(?:ient)?|learning|step|policy) (?=norm|rate|time|loss|entropy))?[a-z_][\w./-]{0,80})"
    rf"[\"']?(?: ?= ?|: {{1,12}}|:(?=[-+]?\d+\.\d|[-+]?nan|[-+]?inf))[\"']?({_VALUE})(?![\w:/-]|\.\d)",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"(?<![\w./-])(?:(\w{1,20}) )?(?:global[_ ]?step|steps?|iteration|iter|update)[\"']?"
    r"(?: ?[=:#] {0,8}| {1,8})\[? {0,8}(\d{1,12})(?!\.?\d|\w)",
    re.IGNORECASE,
)
_NO_STEP = {"max", "total", "warmup", "every", "per", "save", "logging", "num", "last", "for", "of"}
_MEASURE = r"(loss|grad(?:ient)?[ _-]norm|gradients?|entropy|reward|kl)"
_SICK = (
    re.compile(
        rf"\b{_MEASURE}\b[^=:\d]{{0,20}}?\b(?:is|was|are|became|becomes|got|turned|hit|went)\b"
        r" (?:to )?([-+]?(?:nan|inf(?:inity)?))\b",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(nan|inf(?:inity)?)\b[ /\w]{{0,24}}?\b{_MEASURE}\b", re.IGNORECASE),
)
_UNSAID = re.compile(r"\b(?:no|not|never|if|skip\w*|check\w*|without|filter\w*|when|unless)\b", re.IGNORECASE)
_EVALUATION = re.compile(r"\b(?:eval|evaluation|evaluating|validation|val)\b", re.IGNORECASE)
_KNOWN = {"lr", "learning_rate", "step_time", "throughput", "clip_fraction", "tokens_per_second", "reward_std"}
_SETTINGS = {"pid", "port", "rank", "local_rank", "world_size", "seed", "line", "ip", "max_steps", "total_steps"}
_OTHER_STEPS = ("max ", "Max ", "total ", "Total ", "warmup ", "every ", "save ", "logging ", "num ")
_UNSET = {"none", "None", "null"}  # of a setting; in a row of metrics it is what JSON makes of a NaN
_STEPS = {"step", "steps", "global_step", "iteration", "iter", "update", "globalstep", "Step", "Iteration"}
_NO_METRICS = _SETTINGS | _STEPS


class TrainLogReader:
    """A row a line."""

    def read(self, line: Line) -> Iterable[Said]:
        """Numbers of the line, where it counts."""
        text = line.text
        step, values = _row(text)
        if not _counts(values, step):
            values = _in_words(text)
        if not values:
            return ()
        return (Told(values, step, EVAL if _is_evaluation(text, values) else TRAIN, max(line.rank, 0)),)

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()


def _row(text: str) -> tuple[int | None, dict[str, float]]:
    """The step that a line says, and its pairs."""
    pairs = _PAIR.findall(text) if "=" in text or ":" in text else []
    step = None if any(word in text for word in _OTHER_STEPS) else _told(pairs)
    step = _step(text) if step is None else step
    values: dict[str, float] = {}
    for name, spelled in pairs:
        if name not in values and name.lower() not in _NO_METRICS and (step is not None or spelled not in _UNSET):
            value = number(spelled)
            if value is not None:
                values[name] = value
    return step, values


def _told(pairs: list[tuple[str, str]]) -> int | None:
    """The step where it is a pair of its own, as it mostly is."""
    return next((int(v) for n, v in pairs if n in _STEPS and v.isdecimal() and len(v) < 13), None)


def _is_evaluation(text: str, values: dict[str, float]) -> bool:
    """True for a line that says so, where its names do not."""
    if "val" not in text.lower() or not _EVALUATION.search(text):
        return False
    return not any("val" in name.lower() for name in values)


def _counts(values: dict[str, float], step: int | None) -> bool:
    """True for a row of metrics; a line that says no step must say two measures, or a sick one."""
    if step is not None:
        return any(map(_is_known, values))
    measures = [value for name, value in values.items() if meaning(name) == POISON]
    return len(measures) > 1 or not all(map(math.isfinite, measures))


def _is_known(name: str) -> bool:
    return meaning(name) == POISON or measured(name) in _KNOWN


def _step(text: str) -> int | None:
    for before, step in _STEP.findall(text):
        if before.lower() not in _NO_STEP:
            return int(step)
    return None


def _in_words(text: str) -> dict[str, float]:
    """A sentence that says that a measure is not finite."""
    lower = text.lower()
    if ("nan" not in lower and "inf" not in lower) or _UNSAID.search(text):
        return {}
    if found := _SICK[0].search(text):
        name, spelled = found[1], found[2]
    elif found := _SICK[1].search(text):
        name, spelled = found[2], found[1]
    else:
        return {}
    name = "grad_norm" if name.lower().startswith("grad") else name.lower()
    value = number(spelled)
    return {} if value is None else {name: value}


def _sign(text: str) -> int:
    if "=" not in text and ":" not in text:
        return 0
    step, values = _row(text)
    return int(step is not None and any(map(_is_known, values)))


TRAIN_LOG = Format(
    "train-log", "train.log, key=value or key: value", _sign, TrainLogReader,
    {
        "grad norm": "grad_norm", "gradient norm": "grad_norm", "learning rate": "learning_rate",
        "step time": "step_time",
    },
    ("train.log", "train*.log"),
)  # fmt: skip
