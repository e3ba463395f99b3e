"""``gyrostat selftest``: every detector speaks in the simulated run that has its fault, and in no quiet one."""

import json
from pathlib import Path

import pytest
from cli_runs import Run, calling, one_line

from gyrostat_agent.cli.options import builtin
from gyrostat_agent.selftest.trial import SIMULATIONS, trial, trials
from gyrostat_rules.detectors import DETECTORS, Detector, Reading
from gyrostat_rules.packfile import parse

PACK = parse(builtin())
LEVEL = """pack: own
groups:
  - name: own
    rules:
      - {alert: Own, detector: level, with: %s, severity: warning}
"""


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def own(tmp_path: Path) -> str:
    """A pack with one rule, of a jump."""
    pack = tmp_path / "spike.yaml"
    pack.write_text(LEVEL.replace("level", "spike") % "{series: [loss]}", encoding="utf-8")
    return str(pack)


def test_every_detector_has_a_simulated_run() -> None:
    """One that was added needs one here too: else nobody can try it where it is installed."""
    assert SIMULATIONS.keys() == DETECTORS.keys()


@pytest.mark.parametrize("rule", PACK.rules, ids=lambda rule: rule.alert)
def test_every_rule_that_ships_passes(rule) -> None:  # type: ignore[no-untyped-def]
    """With its own parameters, at the fault and not before, and not in the quiet run."""
    found = trial(rule)
    assert found.verdict == "pass", found
    assert found.fired >= found.fault - 1


def test_a_table_and_a_document(cli: Run, own: str) -> None:
    """Every detector stands in both; status 0 where all pass."""
    status, out, err = cli("selftest")
    assert (status, err) == (0, "") and all(name in out for name in DETECTORS) and "FAIL" not in out
    told = json.loads(cli("selftest", "--pack", own, "--json")[1])
    assert told["passed"] and {t["detector"] for t in told["trials"]} == DETECTORS.keys()
    assert next(t["rule"] for t in told["trials"] if t["detector"] == "spike") == "Own"


def test_detectors_without_a_rule_are_tried_too(tmp_path: Path) -> None:
    """With parameters of their own; the same each time."""
    first = list(trials(parse(LEVEL % "{series: [loss], above: 3}")))
    assert first == list(trials(parse(LEVEL % "{series: [loss], above: 3}")))
    assert {t.detector for t in first} == DETECTORS.keys() and all(t.verdict == "pass" for t in first), first


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda params, state, moment: (), "silent in the run with a fault"),
        (lambda params, state, moment: [Reading({"role": "trainer"}, 1.0, 0, "wolf")], "before the fault"),
        (lambda params, state, moment: 1 / 0, "it throws: ZeroDivisionError"),
    ],
    ids=["deaf", "cries wolf", "throws"],
)
def test_a_detector_that_fails(  # type: ignore[no-untyped-def]
    cli: Run, monkeypatch: pytest.MonkeyPatch, own: str, read, said: str
) -> None:
    """Is told with its rule and how it failed; status 1."""
    known = DETECTORS["spike"]
    monkeypatch.setitem(DETECTORS, "spike", Detector(read, known.params, by_record=True, series=known.series))
    status, out, _ = cli("selftest", "--pack", own)
    words = " ".join(out.split())
    assert status == 1 and "FAIL" in words and "Own:" in words and said in words


def test_a_detector_without_a_simulated_run(cli: Run, monkeypatch: pytest.MonkeyPatch, own: str) -> None:
    """Silence about it would read as well: it is named, and the status is 1."""
    monkeypatch.delitem(SIMULATIONS, "spike")  # type: ignore[arg-type]
    status, out, _ = cli("selftest", "--pack", own)
    assert status == 1 and "not simulated" in out and "Own: there is no simulated run" in " ".join(out.split())


def test_parameters_that_can_never_speak(cli: Run, tmp_path: Path) -> None:
    """A person's own pack is tried with its own numbers: a limit of an infinite size is found out."""
    pack = tmp_path / "own.yaml"
    pack.write_text(LEVEL.replace("level", "trend") % "{series: [loss], of: 5, z: 9}", encoding="utf-8")
    status, out, _ = cli("selftest", "--pack", str(pack))
    assert status == 1 and "Own: it was silent" in " ".join(out.split())


def test_a_rule_that_waits_too_long_is_not_tried(cli: Run, tmp_path: Path) -> None:
    """It ends all the same, and says why."""
    pack = tmp_path / "own.yaml"
    pack.write_text(LEVEL % "{series: [loss], above: 1, needed: 900000000}", encoding="utf-8")
    status, out, _ = cli("selftest", "--pack", str(pack))
    assert status == 1 and "more than 5000 steps" in " ".join(out.split())


def test_a_pack_that_is_none(cli: Run, tmp_path: Path) -> None:
    """One clear line and status 2."""
    status, _, err = cli("selftest", "--pack", str(tmp_path / "none.yaml"))
    assert status == 2
    one_line(err, "none.yaml", "No such file")
