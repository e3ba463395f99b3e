"""What a test can say of a run beside its values: each reaches the rules as it would in a run."""

from pathlib import Path

import pytest

from gyrostat_agent.ruletest.play import Course, play
from gyrostat_agent.ruletest.testfile import load

SHIPPED = """\
pack: shipped
groups:
  - name: g
    rules:
      - {alert: High, detector: level, with: {series: [x], above: 1, needed: 1, of: 1}, severity: warning}
      - {alert: Stalled, detector: stall, severity: critical, incident: stall}
      - {alert: Died, detector: exit, severity: critical, incident: crash}
      - {alert: Said, detector: fault_line, with: {kinds: [oom]}, severity: warning}
      - {alert: Drifted, detector: knob_drift, severity: warning}
      - {alert: Uneven, detector: expert_balance, with: {rho_below: 0.5}, severity: critical, incident: experts}
      - alert: Poison
        detector: nonfinite
        with: {confirmed: true}
        severity: critical
        incident: nonfinite
        inhibits: [High]
playbooks:
  - {incident: stall, rungs: [{remedy: page}]}
  - {incident: crash, rungs: [{remedy: page}]}
  - {incident: nonfinite, rungs: [{remedy: rollback, irreversible: true}, {remedy: page}]}
  - {incident: experts, rungs: [{remedy: turn, horizon: 3, knobs: [{name: aux, times: 2}]}, {remedy: page}]}
"""
NEVER = "never: {alerts: Stalled}"


def played(folder: Path, test: str, file: str = "") -> Course:
    """The course of a test of this text."""
    path = folder / "t.yaml"
    path.write_text(f"{file}tests:\n  - {{name: a, {NEVER}, {test}}}\n", encoding="utf-8")
    tests = load(str(path), SHIPPED)
    return play(tests, tests.cases[0])


def seen(course: Course) -> list[tuple[str, int]]:
    """Each alert and the step at which it was seen to fire."""
    return [(raised.rule, raised.row.step) for raised in course.fired]


X = "series: [{name: x, values: 0x20}]"


@pytest.mark.parametrize(
    ("test", "alerts"),
    [
        ("series: [{name: x, values: 0x9 2 0x5}]", [("High", 10)]),
        ("first_step: 100, series: [{name: x, values: 0x9 2 0x5}]", [("High", 110)]),
        ("series: [{name: x, values: 0x9 _ 2 0x5}]", [("High", 11)]),
        ("series: [{name: x, values: 0x20}, {name: x, role: rollout, rank: 3, values: _x5 2 0x3}]", [("High", 5)]),
        (f"{X}, events: [{{after: 8, silence: 20m}}]", [("Stalled", 8)]),
        (f"{X}, events: [{{after: 8, silence: 10m}}]", []),
        (f"{X}, events: [{{after: 8, silence: 200 steps}}]", [("Stalled", 8)]),
        ("series: [{name: x, values: 0x8 _x100 0x8}]", [("Stalled", 99)]),
        (f"{X}, events: [{{after: 20, died: -9}}]", [("Died", 20)]),
        (f"{X}, events: [{{after: 20, died: 0}}, {{after: 20, silence: 20m}}]", []),
        (f"{X}, events: [{{after: 20, died: -15, asked: true}}, {{after: 20, silence: 20m}}]", []),
        (f"{X}, events: [{{after: 20, bye: true}}, {{after: 20, silence: 20m}}]", []),
        (f"{X}, events: [{{after: 8, log: oom}}]", [("Said", 8)]),
        (f"{X}, events: [{{after: 8, log: ecc}}]", []),
        (f"{X}, events: [{{after: 8, source: gone}}, {{after: 8, silence: 20m}}]", []),
        ("hello: {knobs: {x: 0}}, series: [{name: x, values: 0x9 0.5x5}]", [("Drifted", 10)]),
        ("experts: {count: 4, skew: [{top: 0.25x5 0.9x5}]}", [("Uneven", 8)]),
        ("experts: {count: 4, layers: 2, loops: 2, skew: [{layer: 1, loop: 1, dead: 0x5 2x5}]}", [("Uneven", 8)]),
        ("experts: {count: 4, skew: [{top: 0.25x5 0.9x5}, {dead: _x20}]}", []),
        ("series: [{name: x, values: 2x9}, {name: loss, values: 1x7 NaNx1}]", [("High", 0), ("Poison", 9)]),
    ],
    ids=["value", "first step", "gap", "another process", "silence", "short silence", "silence in steps", "gaps alone",
         "death", "end", "asked to end", "goodbye", "log", "another log line", "blind", "knob", "busiest expert",
         "dead experts", "no counts", "confirmed poison"],
)  # fmt: skip
def test_what_a_test_says_reaches_the_rules(tmp_path: Path, test: str, alerts: list[tuple[str, int]]) -> None:
    """At its step, and nothing else comes of it."""
    assert seen(played(tmp_path, test)) == alerts


def test_a_step_takes_as_long_as_the_file_says(tmp_path: Path) -> None:
    """Rules that count seconds are tested by it."""
    test = "series: [{name: x, values: 0x8 _x11 0x8}]"
    assert seen(played(tmp_path, test)) == [] and seen(played(tmp_path, test, "step_seconds: 120\n")) != []


def test_steps_come_again_after_a_step_back(tmp_path: Path) -> None:
    """Values go on, their steps begin at the one gone back to; a segment tells the two apart."""
    course = played(tmp_path, "series: [{name: x, values: 0x9 0x3 2 0x3}], events: [{after: 9, back_to: 5}]")
    assert [(row.segment, row.step) for row in course.rows][8:12] == [(0, 8), (0, 9), (1, 5), (1, 6)]
    assert [(raised.row.segment, raised.row.step) for raised in course.fired] == [(1, 9)]


def test_a_new_life_is_another_incarnation(tmp_path: Path) -> None:
    """What the dead process left is over when the next one speaks."""
    test = "hello: {supervisor: true}, series: [{name: x, values: 0x30}], events: [{after: 9, died: 1}, "
    course = played(tmp_path, test + "{after: 9, back_to: 5, new_life: true}]")
    assert [raised.rule for raised in course.looks[9]] == []
    assert course.rows[10][1:4] == (1, 5, 1) and [o.kind for o in course.opened] == ["crash"]


def test_ranks_of_a_trainer_wait_for_each_other(tmp_path: Path) -> None:
    """A rank that has not told a step keeps it open, as in a run of several."""
    both = "series: [{name: x, values: 0x3 2 0x9}, {name: x, rank: 1, values: 0x20}]"
    assert seen(played(tmp_path, both)) == [("High", 4)]
    late = "series: [{name: x, values: 0x3 2x1}, {name: x, rank: 1, values: 0x3 _ 0}]"
    assert seen(played(tmp_path, late)) == [("High", 5)]


def test_knobs_are_turned_and_read_back(tmp_path: Path) -> None:
    """The trainer obeys, so that the ladder goes on: what does not help is taken back, and a person asked."""
    test = "hello: {knobs: {aux: 0.01}}, experts: {count: 4, skew: [{top: 0.25x5 0.9x30}]}"
    done = [(d.remedy, dict(d.knobs)) for d in played(tmp_path, test).done]
    assert done == [("turn", {"aux": 0.02}), ("undo", {"aux": 0.01}), ("page", {})]


def test_a_rollback_goes_to_a_checkpoint_that_was_found(tmp_path: Path) -> None:
    """By Hello's list or by an event; without one, or with one that is unfit, a person is asked."""
    test = "series: [{name: loss, values: 1x20 NaN 1x5}, {name: step_applied, values: 1x30}]"
    offers = "hello: {procedures: [rollback]"
    for said, remedy in (
        (f"{offers}, checkpoints: [10]}}", "rollback"),
        (f"{offers}}}, events: [{{after: 12, checkpoint: 12}}]", "rollback"),
        (f"{offers}}}, events: [{{after: 12, checkpoint: 12, fit: unfit, says: broken}}]", "page"),
        (f"{offers}}}", "page"),
    ):
        assert [d.remedy for d in played(tmp_path, f"{test}, {said}").done] == [remedy], said


def test_a_muted_alert_is_told_so(tmp_path: Path) -> None:
    """The consequence of a graver one."""
    course = played(tmp_path, "series: [{name: x, values: 0x9 2x5}, {name: loss, values: 1x8 NaNx5}]")
    assert {raised.rule: raised.muted for raised in course.looks[12]} == {"High": True, "Poison": False}


def test_the_same_test_gives_the_same_course(tmp_path: Path) -> None:
    """Noise and all: a test that holds today holds tomorrow."""
    test = "series: [{name: x, values: 0.9~0.1x200}]"
    assert played(tmp_path, test) == played(tmp_path, test)
