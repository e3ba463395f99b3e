"""Report: how tests went, as lines for people and as one document for machines."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from gyrostat.wire.fields import clean
from gyrostat_agent.ruletest.draft import CaseDraft
from gyrostat_agent.ruletest.play import play
from gyrostat_agent.ruletest.testfile import RuleTests
from gyrostat_agent.ruletest.verdict import Difference, differences


class Result(NamedTuple):
    """One test, the line that it begins in, and what did not hold."""

    path: str
    line: int
    case: CaseDraft
    differences: tuple[Difference, ...]

    @property
    def holds(self) -> bool:
        """True where all is as expected."""
        return not self.differences


def results(tests: RuleTests) -> Iterator[Result]:
    """Run all tests of a file, in its order."""
    for case, line in zip(tests.cases, tests.lines, strict=True):
        yield Result(tests.path, line, case, tuple(differences(case, play(tests, case))))


def show(console: Console, found: Sequence[Result]) -> None:
    """Each file in a line, and each test that failed with its differences."""
    for path in dict.fromkeys(result.path for result in found):
        own = [result for result in found if result.path == path]
        failed = [result for result in own if not result.holds]
        said = f"{len(failed)} of {len(own)} tests failed" if failed else f"{len(own)} tests, all hold"
        _line(console, Text.assemble((clean(path), "bold"), ": ", (said, "red" if failed else "green")))
        for result in failed:
            _show(console, result)


def as_json(found: Sequence[Result], errors: Sequence[str]) -> dict[str, Any]:
    """``errors``: what is wrong with files that could not be used."""
    failed = sum(not result.holds for result in found)
    return {
        "passed": len(found) - failed, "failed": failed, "errors": list(errors),
        "tests": [_facts(result) for result in found],
    }  # fmt: skip


def _show(console: Console, result: Result) -> None:
    about = f" ({result.case.rule})" if result.case.rule else ""
    head = clean(f"{result.path}:{result.line}: {result.case.name}{about}")
    _line(console, Text.assemble(("FAILED ", "bold red"), head))
    for difference in result.differences:
        _line(console, Text(f"  {_where(difference)}"))
        for sign, style, lines in (
            ("- expected  ", "red", difference.expected),
            ("+ got       ", "green", difference.got),
            ("  beside    ", "dim", difference.beside),
        ):
            for line in lines:
                _line(console, Text(f"    {sign}{clean(line)}", style))


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)


def _where(difference: Difference) -> str:
    row = difference.row
    again = f" of segment {row.segment}" if row.segment else ""
    return f"step {row.step}{again}, {'what must never come' if difference.about == 'never' else difference.about}:"


def _facts(result: Result) -> dict[str, Any]:
    return {
        "file": result.path, "line": result.line, "name": result.case.name, "rule": result.case.rule,
        "holds": result.holds,
        "differences": [
            {
                "step": d.row.step, "segment": d.row.segment, "about": d.about, "expected": list(d.expected),
                "got": list(d.got), "beside": list(d.beside),
            }
            for d in result.differences
        ],
    }  # fmt: skip
