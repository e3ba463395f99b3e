"""Any other trainer: ``key=value``, ``key: value``, or a JSON object or dict on a line; where no format is recognised.

The rule that keeps start-up dumps, paths, addresses and times of day out. A line counts where it says a step and a
number beside it, or, without a step, two known measures (``loss`` and ``grad_norm``; a learning rate is a setting and
no measure). Where nobody knows the number's name, the step must label the line. Lines that bear a dump's mark
(``Namespace(``, ``config``) never count. A number needs a name before it that is no path, host, process or clock;
without ``=`` or ``:`` between them, the name must be a known measure. Lines of one known measure each count under a
line that is a step and nothing else. A bar of an epoch tells the step within it.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gyrostat_agent.sources.logs.dictline import pairs
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Said, Step, Told

_STEPS = ("global_step", "step", "iteration", "iter", "update", "epoch")  # the first that is said is the step
_SURE = ("global_step", "step")
_STEP = re.compile(
    r"(?<![\w/.?&%@-])(global[_ ]step|step|iteration|iter|update|epoch)[\s:=#\[('\"]{0,8}(\d{1,12})"
    r"(?![\w%]|[.,:-]\d)(?:\s?/\s?\d{1,12})?",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"[\W_]*(?:global[_ ])?(?:step|iteration|iter|update|epoch)\W{1,12}(\d{1,12})(?:\s?/\s?\d{1,12})?[\W_]*",
    re.IGNORECASE,
)
_BAR = re.compile(r"\d%\|[^|]{0,200}\|\s{0,4}(\d{1,9})/(\d{1,9}) \[")
_NUMBER = re.compile(  # found first, for words are many and numbers few; then the name before it
    r"([=:]\s{0,8}|\s)['\"]?(?:np\.\w{1,20}\(|tensor\()?"
    r"([-+]?(?:\d(?:[\d.,]{0,30}[\d.])?(?:[eE][-+]?\d{1,4})?|nan|inf(?:inity)?|none|null)(?:%|[KMGTB]i?B?|ms|s)?)"
    r"(?=[\s,;|)\]}'\"]|$)",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?:^|[^\w/.?&%@:-])([A-Za-z](?:[\w/.@-]{0,60}[\w)])?(?: (?:[A-Za-z][\w/.-]{0,30}|\([\w/%]{1,20}\))){0,3})"
    r"['\"]?\s{0,8}$"
)
_POINTED = re.compile(r"\d\.\d|\de|nan|inf", re.IGNORECASE)
_WINDOW = 80  # characters before a number in which its name stands
_DUMPS = ("config", "namespace(", "args(", "arguments(", "options(", "params(", "settings(", "hyperparam")
_FLAG = re.compile(r"(?:^|\s)--\w")
_WORDS = ("loss", "step", "reward", "iter", "update", "epoch", "entropy", "norm", "score", "kl", "clip", "length")
_LEVELS = re.compile(r"(?:(?:INFO|DEBUG|TRACE|WARNING|WARN|ERROR|CRITICAL|SUCCESS) )+")
_IGNORED = re.compile(
    r"(?:^|[/_. -])(?:time_?stamp|ts|time|datetime|date|asctime|runtime|wall_?time|elapsed|eta|remaining|pid|ppid|tid|"
    r"thread|port|host|node|rank|local_rank|world_?size|seed|version|line|lineno|uuid|hash|commit|sha|id)$"
    r"|\.(?:py|cc|cpp|cu|cuh|c|h|go|rs|ts|js|java)$|^(?:https?|ftp|s3|gs|file|tcp)$",
    re.IGNORECASE,
)
_APART = re.compile(
    r"(?<![\w/.-])(?:eval|evaluation|evaluating|validate|validation|valid|val|test|testing)(?![\w/.-])", re.IGNORECASE
)
_SETTINGS = {"learning_rate", "loss_scale", "throughput", "step_time"}  # no evidence that a step was made
_EPOCHS = 10**6
_MOST = 4096  # names
_PLAIN = 1 << 14  # characters of a line that is no object: rows of numbers are shorter


class _Word(NamedTuple):
    """What a name is: of a step, of nothing that is measured, of a known measure ('' unknown), of evaluation."""

    name: str
    step: bool = False
    ignored: bool = False
    measure: str = ""
    known: bool = False


_NO_WORD = _Word("", ignored=True)


class GenericReader:
    """What no format knows. Names are looked up once; those of numbers are remembered, for ``null`` is NaN in them."""

    def __init__(self) -> None:
        self._names = Names({})
        self._words: dict[str, _Word] = {}
        self._windows: dict[str, _Word] = {}  # what stands before a number, and the name in it
        self._finite: set[str] = set()
        self._block = False  # the line above was a step and nothing else, or a number of it

    def read(self, line: Line) -> Iterable[Said]:
        """The numbers of a line that counts."""
        text = line.text
        lower = text[:_PLAIN].lower()
        if not any(word in lower for word in _WORDS) or any(mark in lower for mark in _DUMPS):
            return ()
        if "--" in lower and _FLAG.search(lower):
            return ()
        if (begin := text.find("{")) >= 0 and (row := self._object(text, begin)) is not None:
            return row
        if len(text) < 200 and (bare := _BARE.fullmatch(text)):
            self._block = True
            return (Step(int(bare[1])),)
        return self._plain(text[:_PLAIN], max(line.rank, 0))

    def end(self) -> Iterable[Said]:
        """Each line has said what it had to."""
        return ()

    def _object(self, text: str, begin: int) -> Iterable[Said] | None:
        """A JSON object or a dict; None where the line has none with numbers."""
        told = dict(_flat(_json(text[begin:]))) or dict(pairs(text, begin))
        if not told:
            return None
        words = {name: self._word(name) for name in told}
        steps = {_step_word(name): told[name] for name, word in words.items() if word.step}
        step = next((n for name in _STEPS if (n := _whole(steps.get(name))) is not None), None)
        if step is None and (found := _STEP.search(text, 0, begin)):
            step = int(found[2])
        rows = [(words[name], value) for name, value in told.items() if not words[name].step]
        return self._judged(rows, step, text[:begin], 0)

    def _plain(self, text: str, rank: int) -> Iterable[Said]:
        rows: list[tuple[_Word, object]] = []
        steps: dict[str, int] = {}
        first = end = 0
        for found in _NUMBER.finditer(text):
            at = found.start()
            word = self._before(text[max(end, at - _WINDOW) : at])
            end = found.end()
            between, told = found.groups()
            if word.step and told.isdigit():
                steps.setdefault(_step_word(word.name), int(told))
            elif not word.ignored and (word.known or "=" in between or _is_told(between, told)):
                first = first or at
                rows.append((word, told))
        if not rows:
            self._block = False
            return ()
        if steps.keys().isdisjoint(_SURE):
            steps.update((_step_word(name), int(step)) for name, step in reversed(_STEP.findall(text)))
        step = next((steps[name] for name in _STEPS if name in steps), None)
        if steps.keys() == {"epoch"} and "%|" in text and (bar := _BAR.search(text)):
            step = min(steps["epoch"], _EPOCHS) * int(bar[2]) + int(bar[1])
        if step is not None and not any(word.known for word, _ in rows) and not _labelled(text, first):
            return ()
        return self._judged(rows, step, text[:first].rpartition(rows[0][0].name)[0], rank)

    def _judged(self, rows: list[tuple[_Word, object]], step: int | None, before: str, rank: int) -> Iterable[Said]:
        values: dict[str, float] = {}
        for word, told in rows:
            if not word.ignored and word.name not in values and (value := self._number(word.name, told)) is not None:
                values[word.name] = value
        measures = {word.measure for word, _ in rows if word.measure and word.name in values} - _SETTINGS
        alone = self._block and len(measures) == len(values) == 1
        if not values or (step is None and len(measures) < 2 and not alone):
            return ()
        self._block = self._block and step is None
        return (Told(values, step, EVAL if _APART.search(before) else TRAIN, rank),)

    def _number(self, name: str, told: object) -> float | None:
        if told is None or (isinstance(told, str) and told.lower() in ("none", "null")):
            return math.nan if name in self._finite else None  # not measured, unless it was before
        value = number(told) if isinstance(told, str) else told if isinstance(told, float) else None
        if value is not None and name not in self._finite and math.isfinite(value) and len(self._finite) < _MOST:
            self._finite.add(name)
        return value

    def _before(self, window: str) -> _Word:
        word = self._windows.get(window)
        if word is None:
            found = _NAME.search(window)
            word = self._word(_LEVELS.sub("", found[1])) if found else _NO_WORD
            if len(self._windows) < _MOST:
                self._windows[window] = word
        return word

    def _word(self, name: str) -> _Word:
        word = self._words.get(name)
        if word is None:
            if len(self._words) >= _MOST:
                self._words, self._names = {}, Names({})
            known = self._names.of(name)
            step = _step_word(name) in _STEPS
            ignored = _IGNORED.search(name) is not None
            word = _Word(name, step, ignored, known.canonical, known.canonical != "" or known.phase == EVAL)
            self._words[name] = word
        return word


def _step_word(name: str) -> str:
    return name.rpartition("/")[2].replace(" ", "_").lower().lstrip("_")


def _labelled(text: str, first: int) -> bool:
    """True where the step labels the line: before its first number, or as a pair; ``lost: 2 at step 21`` does not."""
    found = _STEP.search(text)
    return found is not None and (found.start() < first or "=" in found[0] or ":" in found[0])


def _is_told(between: str, value: str) -> bool:
    """True where a colon tells a number of a name that is not known; ``name:12`` may be a port or a line."""
    return between[0] == ":" and (len(between) > 1 or _POINTED.search(value) is not None)


def _json(text: str) -> object:
    try:
        return json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return None


def _flat(row: object, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Names and values, of dicts in it too; lists and truth values are no numbers of a step."""
    if not isinstance(row, dict):
        return
    for name, value in row.items():
        if isinstance(value, (float, str)) or value is None:
            yield prefix + name, value
        elif depth < 2:
            yield from _flat(value, f"{prefix}{name}/", depth + 1)


def _whole(told: object) -> int | None:
    """A step: ``12``, ``12.0`` or ``7/900``; an epoch of 0.04 is none."""
    if isinstance(told, float):
        return int(told) if 0 <= told < 1e15 and told == int(told) else None
    found = re.fullmatch(r"(\d{1,12})(?:\.0{0,6})?(?:/\d{1,12})?", told.strip()) if isinstance(told, str) else None
    return int(found[1]) if found else None


def _sign(text: str) -> int:
    """None of its own: it is asked where no other is sure."""
    return 0


GENERIC = Format(
    "generic", "any key=value, key: value or JSON lines", _sign, GenericReader,
    dict.fromkeys(("time/save_checkpoint", "timing/save_checkpoint", "timing/save_checkpoints"), "checkpoint_seconds"),
)  # fmt: skip
