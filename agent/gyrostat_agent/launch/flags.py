"""Flags: how a command that knows nothing of us is told to resume from one checkpoint. A table, and never a guess.

A launcher is recognised by words of the command; what stands before them (torchrun, accelerate, srun, python) is left
as it is. A command that no row knows gets no changed flag. The command that a person gave is the one that each restart
begins from; what else is changed in it, by ``turns``, is made anew each time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gyrostat.wire.fields import clean
from gyrostat_agent.errors import SetupError

FLAGS, OVERRIDES = "flags", "overrides"  # --name value or --name=value; name=value, as hydra takes them
_KEYS = {"name": str, "title": str, "command": list, "checkpoint": str, "style": str, "resume": dict, "knobs": dict}
_MOST = 1 << 20  # bytes of a table


class Launcher(NamedTuple):
    """``command``: patterns of words in a row, any of which names it. ``checkpoint``: the pattern of a path that it can
    resume from, whose groups stand in ``resume``: the value of each flag. ``knobs``: the flag of each knob that
    it reads anew when it resumes. ``source`` is the table it is from."""

    name: str
    title: str
    command: tuple[tuple[re.Pattern[str], ...], ...]
    checkpoint: re.Pattern[str]
    style: str
    resume: Mapping[str, str]
    source: str
    knobs: Mapping[str, str] = {}


class Changed(NamedTuple):
    """A command with its flags changed; ``said`` names each flag, what it was and what it is."""

    command: tuple[str, ...]
    said: tuple[str, ...]


def table(path: str = "") -> tuple[Launcher, ...]:
    """The rows of a person's own table, then those that come with Gyrostat; SetupError says all that is wrong."""
    shipped = (resources.files("gyrostat_agent.launch") / "launchers.yaml").read_text(encoding="utf-8")
    return (*(_read(_text(path), path) if path else ()), *_read(shipped, "builtin"))


def recognise(command: Sequence[str], rows: Sequence[Launcher]) -> Launcher | None:
    """The first row that knows the command, or None."""
    return next((row for row in rows if _place(command, row) >= 0), None)


def resumed(command: Sequence[str], launcher: Launcher, checkpoint: str) -> Changed | None:
    """The command, resuming from a checkpoint; None where the path is none that this launcher can be given."""
    found = launcher.checkpoint.fullmatch(checkpoint)
    if found is None:
        return None
    words, said, start = list(command), [], _place(command, launcher)
    for name, form in launcher.resume.items():
        value = form.format(**found.groupdict(default=""))
        before = _set(words, start, name, value, launcher.style)
        was = "was not given" if before is None else f"was {before}"
        said.append(f"{name} {value} ({was})")
    return Changed(tuple(words), tuple(said))


def given(command: Sequence[str], launcher: Launcher, name: str) -> list[str]:
    """The values of a flag at each place where the command bears it, '' where it stands alone."""
    return [value for _, value in _found(command, max(0, _place(command, launcher)), name, launcher.style)]


def put(words: list[str], launcher: Launcher, name: str, value: str) -> str | None:
    """Set a flag of a command, and return what it was; None where it was not given."""
    return _set(words, max(0, _place(words, launcher)), name, value, launcher.style)


def _place(command: Sequence[str], launcher: Launcher) -> int:
    """Where the launcher's words begin; -1 where they are not there."""
    for pattern in launcher.command:
        for at in range(len(command) - len(pattern) + 1):
            if all(one.fullmatch(word) for one, word in zip(pattern, command[at:], strict=False)):
                return at
    return -1


def _set(words: list[str], start: int, name: str, value: str, style: str) -> str | None:
    """Set a flag behind ``start`` to a value, at each place where it stands, else at the end; what it was."""
    joined = _joined(name, style)
    value = _quoted(value) if style == OVERRIDES else value
    before, at = None, start
    while at < len(words):
        if found := joined.fullmatch(words[at]):
            before = found[1]
            words[at] = words[at][: found.start(1)] + value
        elif style == FLAGS and words[at] == name:
            bare = at + 1 == len(words) or words[at + 1].startswith("--")
            before = "given alone" if bare else words[at + 1]
            words[at + 1 : at + 1 if bare else at + 2] = [value]
        at += 1
    if before is None:
        words += [f"{name}={value}"] if style == OVERRIDES else [name, value]
    return before


def _found(words: Sequence[str], start: int, name: str, style: str) -> Iterator[tuple[int, str]]:
    """Where a flag stands behind ``start``, and its value there."""
    joined = _joined(name, style)
    for at in range(start, len(words)):
        if found := joined.fullmatch(words[at]):
            yield at, found[1]
        elif style == FLAGS and words[at] == name:
            bare = at + 1 == len(words) or words[at + 1].startswith("--")
            yield at, "" if bare else words[at + 1]


def _joined(name: str, style: str) -> re.Pattern[str]:
    plus = "[+]{0,2}" if style == OVERRIDES else ""
    return re.compile(rf"{plus}{re.escape(name)}=(.*)", re.DOTALL)


def _quoted(value: str) -> str:
    """A value as hydra's grammar takes it: one with other than plain letters in quotes."""
    if re.fullmatch(r"[\w./:@-]*", value, re.ASCII):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


# -- a table's text -----------------------------------------------------------------------------------


def _text(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.read(_MOST)
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"--flags {clean(path)}: {getattr(error, 'strerror', None) or error}") from None


def _read(text: str, source: str) -> tuple[Launcher, ...]:
    try:
        given = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SetupError(f"--flags {clean(source)}: no YAML: {clean(' '.join(str(error).split()))}") from None
    rows = given.get("launchers") if isinstance(given, dict) else None
    if not isinstance(rows, list):
        raise SetupError(f"--flags {clean(source)}: write `launchers:` and a list of rows below it")
    found, wrong = [], []
    for number, row in enumerate(rows, 1):
        try:
            found.append(_launcher(row, source))
        except (ValueError, KeyError, IndexError) as error:
            wrong.append(f"row {number}: {error}")
    if wrong:
        raise SetupError(f"--flags {clean(source)}: {clean('; '.join(wrong))}")
    return tuple(found)


def _launcher(row: Any, source: str) -> Launcher:
    """A row of a table; raises ValueError saying what is wrong with it."""
    if not isinstance(row, dict):
        raise ValueError("it is no mapping of keys")
    row = {"title": row.get("name"), "knobs": {}, **row}
    if odd := sorted(str(key) for key in row.keys() ^ _KEYS.keys()):
        raise ValueError(f"there are the keys {', '.join(_KEYS)}; look at {', '.join(odd)}")
    for key, kind in _KEYS.items():
        if not isinstance(row[key], kind) or not (row[key] or key == "knobs"):
            raise ValueError(f"{key} must be a {kind.__name__} with something in it")
    if row["style"] not in (FLAGS, OVERRIDES):
        raise ValueError(f"style is {FLAGS} (--name value) or {OVERRIDES} (name=value), not {row['style']}")
    checkpoint = _pattern(str(row["checkpoint"]), "checkpoint")
    resume = {str(name): str(form) for name, form in row["resume"].items()}
    for name, form in resume.items():
        if used := {*re.findall(r"\{(.*?)\}", form)} - checkpoint.groupindex.keys():
            raise ValueError(f"{name} uses {{{sorted(used)[0]}}}, which is no group of checkpoint")
        try:
            form.format(**dict.fromkeys(checkpoint.groupindex, ""))
        except ValueError as error:
            raise ValueError(f"{name} {form!r}: {error}") from None
    command = tuple(tuple(_pattern(word, "command") for word in str(words).split(" ")) for words in row["command"])
    if odd := [name for name, flag in row["knobs"].items() if not (isinstance(name, str) and isinstance(flag, str))]:
        raise ValueError(f"knobs: write KNOB: FLAG, both as words; look at {odd[0]}")
    knobs = {name: str(flag) for name, flag in row["knobs"].items()}
    return Launcher(row["name"], row["title"], command, checkpoint, row["style"], resume, source, knobs)


def _pattern(text: str, key: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"{key} {text!r} is no regular expression: {error}") from None
