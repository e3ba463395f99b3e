"""``gyrostat rules explain NAME --run DIR``: what a rule saw of one run, and why it spoke or kept silent."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Run, one_line

from gyrostat_agent.journal import Journal
from gyrostat_agent.selftest.script import Script
from gyrostat_rules import engine
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.pack import RulePack

Journaled = Callable[..., str]
OWN = """pack: own
groups:
  - name: own
    rules:
      - alert: EntropyTiny
        detector: level
        with: {series: [entropy], below: 0.3, needed: 1, of: 1}
        severity: warning
        for: 3 of 5 steps
      - alert: EntropyTinyLater
        detector: level
        with: {series: [entropy], below: 0.3, needed: 1, of: 1}
        severity: warning
        when: [not warmup]
"""


def told(cli: Run, *words: str) -> Any:
    """The JSON document of ``rules explain``."""
    status, out, err = cli("rules", "explain", *words, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def collapsed() -> Script:
    """A reward of 0.8 that is gone from step 40 on and comes back at 50, with a gradient that jumps at 42."""
    script = Script(1)
    for step in range(90):
        script.tell(
            {"reward": 0.01 if 40 <= step < 50 else 0.8, "grad_norm": 90.0 if 42 <= step < 45 else 1.0 + step % 3}
        )
    return script


def test_the_thresholds_of_this_run(cli: Run, journaled: Journaled) -> None:
    """What was usual here, the limit that follows, the last value, and how near it came."""
    run = told(cli, "RewardCollapsed", "--run", journaled(collapsed().inputs))["run"]
    (gauge,), (nearest,) = run["gauges"], run["nearest"]
    assert gauge["value"] == pytest.approx(0.8) and gauge["limit"] == pytest.approx(0.28) and not gauge["beyond"]
    assert (gauge["side"], gauge["step"], gauge["series"]) == ("below", 89, "reward")
    assert nearest["beyond"] and 41 <= nearest["step"] < 50
    assert run["looked_at"] == {"trainer/0": ["reward"]} and not run["silent"]


def test_history_is_the_journals(cli: Run, journaled: Journaled) -> None:
    """When it fired and was over, at the steps of the journal's own entries, and the incident it joined."""
    path = journaled(collapsed().inputs)
    turns = told(cli, "RewardCollapsed", "--run", path)["run"]["history"]
    entries = Journal(f"{path}/agent/journal.db", readonly=True).entries(kinds=(EntryKind.ALERT,))
    wrote = [(e.step, e.state) for e in entries if e.subject.startswith("RewardCollapsed")]
    assert [(t["step"], t["word"]) for t in turns if t["word"] in ("pending", "firing", "resolved")] == wrote
    assert len(wrote) == 2 and any(t["word"] == "in incident" and t["by"] == "i0001" for t in turns)


def test_who_muted_it(cli: Run, journaled: Journaled) -> None:
    """A consequence is told as such, with what explains it."""
    path = journaled(collapsed().inputs)
    muted = [t for t in told(cli, "GradientSpike", "--run", path)["run"]["history"] if t["word"] == "muted"]
    assert muted and muted[0]["by"].startswith(("RewardCollapsed", "i0001"))
    assert "muted by" in cli("rules", "explain", "GradientSpike", "--run", path)[1]


def test_why_it_fired_at_a_step(cli: Run, journaled: Journaled) -> None:
    """The verdict of that moment, and the values around it beside their limits."""
    step = told(cli, "RewardCollapsed", "--run", journaled(collapsed().inputs), "--step", "45")["step"]
    (around,) = step["around"]
    assert step["verdict"] == "firing" and "usually 0.8" in step["because"][0]
    assert [p["step"] for p in around] == list(range(40, 51))
    assert [p["step"] for p in around if p["beyond"]] == list(range(41, 50))


def test_why_it_kept_silent_at_a_step(cli: Run, journaled: Journaled) -> None:
    """The value, the limit, and how far apart they were."""
    status, out, _ = cli("rules", "explain", "RewardCollapsed", "--run", journaled(collapsed().inputs), "--step", "30")
    words = " ".join(out.split())
    assert (
        status == 0
        and "silent: trainer/0 reward, mean of the last 3, or the last is 0.8; too much is below 0.28" in words
    )
    assert "> step 30: 0.8, limit below 0.28" in words


@pytest.mark.parametrize(("step", "verdict", "count"), [(30, "pending", 1), (31, "pending", 2), (32, "firing", 3)])
def test_how_often_of_how_many(cli: Run, journaled: Journaled, step: int, verdict: str, count: int) -> None:
    """A rule that wants 3 of 5 looks says how many there were."""
    script = Script(1)
    script.column("entropy", [1.0] * 30 + [0.1] * 10)
    found = told(cli, "EntropyTiny", "--run", journaled(script.inputs, OWN), "--step", str(step))["step"]
    assert found["verdict"] == verdict
    wanted = f"3 of 5 looks are needed: {count} were breached"
    assert (wanted in found["because"]) == (verdict == "pending")


def test_a_phase_in_which_it_does_not_speak(cli: Run, journaled: Journaled) -> None:
    """Its value was beyond the limit, and it says why it was silent all the same."""
    script = Script(1)
    script.column("entropy", [0.1] * 40)
    path = journaled(script.inputs, OWN)
    early, late = (told(cli, "EntropyTinyLater", "--run", path, "--step", s)["step"] for s in ("5", "30"))
    assert early["verdict"] == "silent" and "not warmup" in early["because"][0] and "beyond it" in early["because"][0]
    assert late["verdict"] == "firing"


def test_nothing_to_look_at(cli: Run, journaled: Journaled) -> None:
    """Silent because nobody tells it: what it wants, and what was told instead; no name commands the terminal."""
    script = Script(1)
    script.column("loss\x1b[31m", [1.0] * 30)
    path = journaled(script.inputs)
    status, out, _ = cli("rules", "explain", "GpuLost", "--run", path)
    assert status == 0 and "nobody tells gpu_lost; told were: loss" in " ".join(out.split()) and "\x1b" not in out
    run = told(cli, "GpuLost", "--run", path, "--step", "3")
    assert run["run"]["silent"] and run["run"]["asked"] == 0 and run["step"]["verdict"] == "not asked"


def test_a_step_between_two_values(cli: Run, journaled: Journaled) -> None:
    """Answered by the look before it, and it says so."""
    script = Script(1)
    for _ in range(20):
        script.tell({"reward": 0.5}, stride=10)
    found = told(cli, "RewardCollapsed", "--run", journaled(script.inputs), "--step", "157")["step"]
    assert found["looked_at"] == 150 and "step 157 told nothing" in found["because"][0]


def test_another_pack_in_place_of_the_runs_own(cli: Run, journaled: Journaled, tmp_path: Path) -> None:
    """What its rules would have said; the journal is read and not touched."""
    script = Script(1)
    script.column("entropy", [1.0] * 30 + [0.4] * 10)
    path, own = journaled(script.inputs, OWN), tmp_path / "own.yaml"
    own.write_text(OWN.replace("below: 0.3", "below: 0.5"), encoding="utf-8")
    before = Path(path, "agent", "journal.db").read_bytes()
    assert not told(cli, "EntropyTiny", "--run", path)["run"]["history"]
    with_own = told(cli, "EntropyTiny", "--run", path, "--pack", str(own))["run"]
    assert [t["word"] for t in with_own["history"]] == ["pending", "firing"]
    assert told(cli, "EntropyLow", "--run", path, "--pack", "builtin")["run"]["asked"] > 0
    assert Path(path, "agent", "journal.db").read_bytes() == before


def test_other_rules_code_wrote_the_journal(cli: Run, journaled: Journaled) -> None:
    """The first turn that is decided otherwise now is named."""
    path = journaled(collapsed().inputs, forget=True)
    assert told(cli, "RewardCollapsed", "--run", path)["run"]["differs_from_turn"] == 1
    assert "other rules code" in cli("rules", "explain", "RewardCollapsed", "--run", path)[1]


def test_a_step_the_run_does_not_have(cli: Run, journaled: Journaled) -> None:
    """Status 2, with the steps that it has."""
    status, _, err = cli("rules", "explain", "GradientSpike", "--run", journaled(collapsed().inputs), "--step", "900")
    assert status == 2
    one_line(err, "--step 900", "0 to 89")


def test_a_name_that_the_runs_pack_does_not_have(cli: Run, journaled: Journaled) -> None:
    """The nearest of that pack's own."""
    script = Script(1)
    script.column("entropy", [1.0] * 5)
    status, _, err = cli("rules", "explain", "EntropyTin", "--run", journaled(script.inputs, OWN))
    assert status == 2
    one_line(err, "the run's pack own", "EntropyTiny")


def test_no_run_and_no_journal(cli: Run, tmp_path: Path) -> None:
    """In the words of the other commands: status 2 where there is none, 4 where it cannot be read."""
    status, _, err = cli("rules", "explain", "GradientSpike", "--run", str(tmp_path))
    assert status == 2
    one_line(err, "holds no agent/journal.db")
    Path(tmp_path, "agent").mkdir(mode=0o700)
    Path(tmp_path, "agent", "journal.db").write_bytes(b"this is no database at all, whatever it says" * 100)
    status, _, err = cli("rules", "explain", "GradientSpike", "--run", str(tmp_path))
    assert status == 4
    one_line(err, "journal")


def test_a_pack_of_another_version(cli: Run, journaled: Journaled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cannot be asked, and it says how to ask today's rules instead."""
    path, parsed = journaled(collapsed().inputs, OWN), engine._parsed

    def refuse(text: str) -> RulePack:
        return parsed("pack: 1\n" if text == OWN else text)

    monkeypatch.setattr(engine, "_parsed", refuse)
    status, _, err = cli("rules", "explain", "EntropyTiny", "--run", path)
    assert status == 4
    one_line(err, "another version", "--pack builtin")
    assert told(cli, "RewardCollapsed", "--run", path, "--pack", "builtin")["run"]["history"]
