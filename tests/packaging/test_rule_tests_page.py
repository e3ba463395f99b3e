"""docs/rule_tests.md: its example runs as it says, and its tables name every key."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from gyrostat_agent.cli.options import builtin
from gyrostat_agent.ruletest.draft import CaseDraft, EventDraft, ExpectDraft, ExpertsDraft, FileDraft, HelloDraft
from gyrostat_agent.ruletest.report import results
from gyrostat_agent.ruletest.testfile import load

PAGE = (Path(__file__).resolve().parents[2] / "docs/rule_tests.md").read_text(encoding="utf-8")
RULES, TESTS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def written(folder: Path, tests: str) -> str:
    """The page's two files, in a folder."""
    (folder / "my-rules.yaml").write_text(RULES, encoding="utf-8")
    (folder / "my-rules.test.yaml").write_text(tests, encoding="utf-8")
    return str(folder / "my-rules.test.yaml")


def test_the_example_holds(tmp_path: Path) -> None:
    """Whoever copies it begins with tests that pass."""
    found = list(results(load(written(tmp_path, TESTS), builtin())))
    assert len(found) == 3 and all(result.holds for result in found), [r.differences for r in found]


def test_the_failure_on_the_page_is_the_one_that_comes(tmp_path: Path) -> None:
    """Bad batches instead of one make the second test fail at the line, step and onset that the page shows."""
    tests = TESTS.replace("0.02~0.005x29 0.9 0.02", "0.02~0.005x29 0.9x2 0.02")
    (failed,) = [r for r in results(load(written(tmp_path, tests), builtin())) if not r.holds]
    told = failed.differences[0]
    said = f"FAILED my-rules.test.yaml:{failed.line}: {failed.case.name} ({failed.case.rule})"
    assert said in PAGE and f"step {told.row.step}, what must never come" in PAGE
    assert told.got[0].partition(", above")[0] in PAGE and told.expected[0] in PAGE


@pytest.mark.parametrize("shape", [FileDraft, CaseDraft, EventDraft, ExpectDraft, ExpertsDraft, HelloDraft])
def test_every_key_stands_on_the_page(shape: type[BaseModel]) -> None:
    """A key that no page names is found by nobody."""
    assert [name for name in shape.model_fields if f"`{name}`" not in PAGE and f"`{name}:" not in PAGE] == []
