"""TestFile: a file of rule tests, read and checked; or every mistake in it with line, column and the fix.

It is read as a pack file is, by the same parts. Called by the command and by whoever runs tests of rules in their own.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from gyrostat_agent.errors import SetupError
from gyrostat_agent.ruletest.draft import BUILTIN, CaseDraft, FileDraft, keys_at
from gyrostat_agent.ruletest.rows import row_of, rows
from gyrostat_rules.packchecks import Finding, findings
from gyrostat_rules.packerrors import Mistake, PackError
from gyrostat_rules.packfile import parse
from gyrostat_rules.packmerge import join
from gyrostat_rules.packtree import REFUSED, Tree, read

_parsed = lru_cache(maxsize=8)(parse)  # the packs that come with Gyrostat take a while, and most files name no other


class RuleTests(NamedTuple):
    """The tests of one file, the line of each, and the text of the pack that they test."""

    path: str
    pack: str
    step_seconds: float
    cases: tuple[CaseDraft, ...]
    lines: tuple[int, ...]


def load(path: str, builtin: str) -> RuleTests:
    """The tests in a file; ``builtin`` is the text of the packs that come with Gyrostat.

    Raises SetupError where it, or a pack that it names, cannot be read; PackError with all mistakes of either.
    """
    text = _text(path, path)
    if not text.strip():
        raise PackError(path, [Mistake(1, 1, "the file is empty", "start with 'tests:'")])
    tree = read(text)
    pack = _pack(path, tree.value, builtin)
    if tree.value is REFUSED:
        raise PackError(path, tree.mistakes)
    found = list(_look(tree.value, {rule.alert: None for rule in _parsed(pack).rules}))
    if mistakes := [*tree.mistakes, *(_placed(finding, tree) for finding in found)]:
        raise PackError(path, mistakes)
    draft = FileDraft.model_validate(tree.value)
    lines = tuple(tree.place(("tests", place)).line for place in range(len(draft.tests)))
    return RuleTests(path, pack, draft.step_seconds, draft.tests, lines)


def _look(value: Any, alerts: dict[str, None]) -> Iterator[Finding]:
    try:
        FileDraft.model_validate(value, context=alerts)
    except ValidationError as error:
        yield from findings(error, (), keys_at)
    tests = value.get("tests", ()) if isinstance(value, dict) else ()
    for place, test in enumerate(tests if isinstance(tests, tuple) else ()):
        try:
            yield from _steps_exist(CaseDraft.model_validate(test), ("tests", place))
        except ValidationError:
            continue  # told above


def _steps_exist(case: CaseDraft, path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Every step that is spoken of is told; a word on one that is not would hold whatever happened."""
    told = rows(case)
    if not told:
        yield Finding(path, "this test tells no step", "add series: [{name: loss, values: 1x20}]")
        return
    fix = f"its steps are {case.first_step} to {max(row.step for row in told)}"
    for place, expected in enumerate(case.expect):
        if row_of(told, expected.step, expected.segment) is None:
            yield Finding((*path, "expect", place, "step"), f"the test has no {_words(expected)}", fix)
    happens = [event for row in told for event in row.events]
    for place, event in enumerate(case.events):
        if event not in happens:
            yield Finding((*path, "events", place, "after"), f"the test has no step {event.after}", fix)


def _words(expected: Any) -> str:
    where = "" if expected.segment is None else f" in segment {expected.segment}"
    return f"step {expected.step}{where}"


def _placed(finding: Finding, tree: Tree) -> Mistake:
    what = finding.what if finding.path else finding.what.replace("the pack", "the file")
    return Mistake(*tree.place(finding.path, key=finding.at_key), what, finding.fix)


# -- the pack -----------------------------------------------------------------------------------------


def _pack(path: str, value: Any, builtin: str) -> str:
    """The text of the pack that a file of tests names, which parses."""
    named = value.get("pack", BUILTIN) if isinstance(value, dict) else BUILTIN
    listed = named if isinstance(named, tuple) else (named,)
    names = [name for name in listed if isinstance(name, str)]  # what is no text is told by the file's shape
    files = [name if name == BUILTIN else str(Path(path).parent / name) for name in names or [BUILTIN]]
    texts = [builtin if file == BUILTIN else _text(file, path) for file in files]
    try:
        _parsed(text := join(texts))
    except PackError as error:
        raise _of_their_own(files, texts, error.mistakes) from None
    return text


def _of_their_own(files: Sequence[str], texts: Sequence[str], mistakes: Sequence[Mistake]) -> SetupError:
    """The mistakes of packs read as one, each at the line of the file that it stands in."""
    told = []
    for mistake in mistakes:
        line, place = mistake.line, 0
        while place < len(texts) - 1 and line > (size := texts[place].rstrip("\n").count("\n") + 2):
            line, place = line - size, place + 1
        told.append(f"{files[place]}:{line}:{mistake.column}: {mistake.what}; {mistake.fix}")
    return SetupError("\n".join(told))


def _text(file: str, asked_by: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        where = file if file == asked_by else f"{asked_by}: pack {file}"
        raise SetupError(f"{where}: {getattr(error, 'strerror', None) or error}") from None
