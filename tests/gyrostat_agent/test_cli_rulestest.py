"""``gyrostat rules test``: what is printed, for people and for machines, and what it leaves with."""

import json
from pathlib import Path

import pytest
from cli_runs import Run, calling

HOLDS = """\
tests:
  - {name: quiet, rule: GradientSpike, series: [{name: grad_norm, values: 1~0.1x60}], never: {alerts: any}}
"""
FAILS = """\
tests:
  - {name: quiet, rule: GradientSpike, series: [{name: grad_norm, values: 1~0.1x60}], never: {alerts: any}}
  - {name: "loud \\u001b[31m", series: [{name: grad_norm, values: 1~0.1x40 90}], never: {alerts: GradientSpike}}
"""
BROKEN = "tests:\n  - {name: a, rule: GradientSpik, series: [{name: x, values: 1x}], never: {alerts: any}}\n"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


def written(folder: Path, **texts: str) -> list[str]:
    """The paths of files of these names and texts."""
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return [str(folder / f"{name}.yaml") for name in texts]


def test_tests_that_hold_are_one_line_a_file(cli: Run, tmp_path: Path) -> None:
    """And status 0."""
    (path,) = written(tmp_path, good=HOLDS)
    assert cli("rules", "test", path) == (0, f"{path}: 1 tests, all hold\n", "")


def test_a_test_that_fails_is_shown_with_both_sides(cli: Run, tmp_path: Path) -> None:
    """Where it stands, at which step, what was expected, what came and why; status 1, and no colour in a pipe."""
    (path,) = written(tmp_path, bad=FAILS)
    status, out, err = cli("rules", "test", path)
    assert (status, err) == (1, "") and "\x1b" not in out
    head, failed, step, expected, got = out.splitlines()
    assert head == f"{path}: 1 of 2 tests failed" and failed.startswith(f"FAILED {path}:3: loud")
    assert step == "  step 41, what must never come:" and expected == "    - expected  no GradientSpike, at any step"
    assert got.startswith(
        "    + got       GradientSpike{rank=0, role=trainer, series=grad_norm}, onset 41: grad_norm is 90"
    )


def test_a_file_that_cannot_be_used_keeps_no_other_from_being_run(cli: Run, tmp_path: Path) -> None:
    """All its mistakes are told, whatever else there is, and status 2 says that not everything was tested."""
    broken, bad = written(tmp_path, broken=BROKEN, bad=FAILS)
    status, out, err = cli("rules", "test", broken, str(tmp_path / "none.yaml"), bad)
    assert status == 2 and "1 of 2 tests failed" in out
    lines = err.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        f"{broken}:2:21",
        f"{broken}:2:62",
        str(tmp_path / "none.yaml"),
    ]


def test_one_document_for_machines(cli: Run, tmp_path: Path) -> None:
    """With the same facts, whether tests fail or files are broken."""
    broken, bad = written(tmp_path, broken=BROKEN, bad=FAILS)
    status, out, err = cli("rules", "test", "--json", broken, bad)
    told = json.loads(out)
    assert (status, err, told["passed"], told["failed"], len(told["errors"])) == (2, "", 1, 1, 2)
    assert [(t["line"], t["name"][:5], t["rule"], t["holds"]) for t in told["tests"]] == [
        (2, "quiet", "GradientSpike", True),
        (3, "loud ", None, False),
    ]
    (difference,) = told["tests"][1]["differences"]
    assert (difference["step"], difference["segment"], difference["about"]) == (41, 0, "never")


def test_help_shows_a_file(cli: Run) -> None:
    """Nobody writes the first one from a table of keys."""
    status, out, _ = cli("rules", "test", "--help")
    assert status == 0 and "expect: [{step: 40, alerts: [{rule: GradientSpike, onset: 40}]}]" in out
