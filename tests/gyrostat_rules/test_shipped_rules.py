"""The shipped rules by the tests in ``packs/``, written as users write theirs: what each says, and what it does not."""

from functools import lru_cache
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from run_story import CORE

from gyrostat_agent.ruletest.draft import ANY, CaseDraft
from gyrostat_agent.ruletest.play import play
from gyrostat_agent.ruletest.report import Result, show
from gyrostat_agent.ruletest.testfile import RuleTests, load
from gyrostat_agent.ruletest.verdict import differences
from gyrostat_rules.packfile import parse

FILES = sorted((Path(__file__).parent / "packs").glob("*.yaml"))
RULES = [rule.alert for rule in parse(CORE).rules]
_SILENT = 2  # runs that look like the fault and are none, for each rule


@lru_cache(maxsize=32)
def cases_in(path: Path) -> RuleTests:
    """The tests of a file."""
    return load(str(path), CORE)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_shipped_rules_do_what_their_tests_say(path: Path) -> None:
    """Each fires on its fault, and on what looks like it each is silent."""
    tests, said = cases_in(path), StringIO()
    found = [
        Result(path.name, line, case, tuple(differences(case, play(tests, case))))
        for case, line in zip(tests.cases, tests.lines, strict=True)
    ]
    show(Console(file=said, width=200), found)
    assert all(result.holds for result in found), said.getvalue()


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_tested_both_ways(rule: str) -> None:
    """A rule that nobody has seen fire may never; one that nobody has seen silent may never be."""
    cases = [case for path in FILES for case in cases_in(path).cases if case.rule == rule]
    firing, silent = sum(map(fires, cases)), sum(map(is_silent, cases))
    assert firing >= 1, f"no test in packs/*.yaml with `rule: {rule}` expects it to fire"
    assert silent >= _SILENT, f"{silent} tests in packs/*.yaml with `rule: {rule}` say `never: {{alerts: {rule}}}`"


def fires(case: CaseDraft) -> bool:
    """Whether a test expects its rule to fire."""
    return any(alert.rule == case.rule for expected in case.expect for alert in expected.alerts or ())


def is_silent(case: CaseDraft) -> bool:
    """Whether a test says that its rule never fires."""
    return not {case.rule, ANY}.isdisjoint(case.never.alerts)
