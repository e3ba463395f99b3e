"""Mistake and PackError: what is wrong with a pack, where, and the fix; all of it at once.

    ValueError
    └── PackError       every mistake of one pack file, in the order of the file

Also the words for what pydantic finds: its own speak of "input" and Python types, and whoever edits a pack at
night has neither in front of them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

_SHOWN = 60  # characters of a value in a message; a pack may hold a page of text where a number belongs
_COMPARED, _LISTED = 200, 20  # names looked at, and told, for each unknown one: thousands of both would take minutes


class Mistake(NamedTuple):
    """What is wrong at a line and column (both count from 1), and what to write instead."""

    line: int
    column: int
    what: str
    fix: str


class PackError(ValueError):
    """A pack that cannot be used; ``mistakes`` is never empty. As text: ``name:line:column: what; fix``, one a line."""

    def __init__(self, name: str, mistakes: Iterable[Mistake]) -> None:
        self.name = name
        self.mistakes = sorted(set(mistakes))
        super().__init__("\n".join(f"{name}:{m.line}:{m.column}: {m.what}; {m.fix}" for m in self.mistakes))


_WANTED = {
    "string_type": ("text", "put it into quotes"),
    "int_type": ("a whole number", "write digits alone, such as 10: no quotes, no decimal point"),
    "float_type": ("a number", "write a number such as 0.5, without quotes"),
    "bool_type": ("true or false", "write true or false, without quotes"),
    "tuple_type": ("a list", "write [a, b], or one item a line after '- '"),
    "dict_type": ("a mapping", "write {key: value}, or one 'key: value' a line"),
    "model_type": ("a mapping", "write {key: value}, or one 'key: value' a line"),
}
_TOO_SMALL = {"greater_than_equal": "ge", "greater_than": "gt"}
_TOO_LARGE = {"less_than_equal": "le", "less_than": "lt"}


def explain(error: Mapping[str, Any], known: Sequence[str]) -> tuple[str, str]:
    """What is wrong and the fix, for one of pydantic's errors. ``known``: the keys of the mapping it lies in."""
    kind, given, facts = error["type"], error["input"], error.get("ctx", {})
    key = subject(error["loc"])
    if "fix" in facts:  # raised by a validator of ours, in our words
        return facts["what"], facts["fix"]
    if kind == "extra_forbidden":
        return f"unknown key {key}", suggest(str(error["loc"][-1]), known)
    if kind == "missing":
        return f"{key} is missing here", f"add {key.strip(chr(39))}: ..."
    if kind in ("too_short", "string_too_short"):
        return f"{key} is empty", "write at least one"
    if kind == "finite_number":
        return f"{key} is {show(given)}", "write a finite number"
    if kind in _TOO_SMALL:
        bound = facts[_TOO_SMALL[kind]]
        wanted = f"{bound:g} or more" if kind == "greater_than_equal" else f"more than {bound:g}"
        return f"{key} is {show(given)}, too small", f"write {wanted}"
    if kind in _TOO_LARGE:
        bound = facts[_TOO_LARGE[kind]]
        wanted = f"{bound:g} or less" if kind == "less_than_equal" else f"less than {bound:g}"
        return f"{key} is {show(given)}, too large", f"write {wanted}"
    if kind == "literal_error":
        return f"{key} cannot be {show(given)}", f"write {facts['expected']}"
    wanted, fix = _WANTED.get(kind, ("", ""))
    return (f"{key} must be {wanted}, not {show(given)}", fix) if wanted else (f"{key}: {error['msg']}", "correct it")


def subject(path: Sequence[str | int]) -> str:
    """A place in the pack, in words: the last key of its path, and which item where it is in a list."""
    names = [p for p in path if isinstance(p, str)]
    if not names:
        return "the pack"
    return show(names[-1]) if path[-1] == names[-1] else f"item {int(path[-1]) + 1} of {show(names[-1])}"


def suggest(word: str, known: Iterable[str]) -> str:
    """The fix for a name nobody knows: the nearest that exist, or all of them."""
    names = list(known)
    near = get_close_matches(word, names[:_COMPARED], 1) or [
        n for n in names if word and (n.startswith(word) or word.startswith(f"{n}_"))
    ]
    if near:
        return f"did you mean {near[0]!r}?"
    if not names:
        return "nothing may stand here: remove it"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"known are {', '.join(names[:_LISTED])}{more}"


def show(value: object) -> str:
    """A value as the file spells it, cut where it is long."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value}"
    if isinstance(value, (dict, tuple)):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
