"""Disasters that others have had, each replayed against the engine: none of them can happen here.

A restart loop of 44 identical cycles; a job killed every 30 minutes for ever; a coefficient that reported success and
did nothing; a breaker that blocked healing as well (among the guards' tests); 192 interventions in 1,000 healthy steps.
Those that need files are among the agent's tests.
"""

import json
from typing import Any

import pytest
from number_run import noise
from run_story import NAN, PROCEDURES, Story, healthy_run

from gyrostat.wire import ExpertLoad, KnobState
from gyrostat_rules.ledger import facts

CYCLES = 44
RESTARTS = """\
pack: restarts
groups:
  - name: g
    rules:
      - {alert: TrainerDied, detector: exit, severity: critical, incident: crash}
playbooks:
  - incident: crash
    cooldown: 0
    MORE
    rungs:
      - {remedy: restart, horizon: 5, irreversible: true}
      - {remedy: page}
"""


def moved(story: Story, pack: str, life: str) -> Story:
    """Another pod: nothing is left but what the ledger says."""
    written: dict[str, Any] = json.loads(json.dumps(facts(story.engine.state), allow_nan=False))
    after = Story(pack=pack)
    after.at, after.segment = story.at + 1800.0, story.engine.state.segment
    after.command("ledger", **written)
    after.begin(life=life, last=max(0, written["next_directive"] - 1)).supervisor()
    for step in (10, 15):
        after.checkpoint(step)
    after.tick(60.0)
    return after


@pytest.mark.parametrize("more", ["", "budget: {actions: 40, steps: 200}"], ids=["as it comes", "a wide budget"])
@pytest.mark.parametrize("pods", [False, True], ids=["one pod", "a pod lost in each cycle"])
def test_a_restart_loop_of_44_identical_cycles(more: str, pods: bool) -> None:
    """It dies at the same step after each restart: three at most, then nobody restarts it and a person is asked."""
    pack = RESTARTS.replace("MORE", more)
    story = healthy_run(pack=pack).supervisor()
    restarts, ends = 0, []
    for cycle in range(CYCLES):
        story.died()
        story.tick(2.0)  # its last words would have come by now
        restarts += story.sent().count("restart")
        if story.incident.state == "acting":
            story.restarted(f"restarted-{cycle}")
            story.steps(16, 20)
            story.died()
        ends.append((story.incident.state, [a.remedy for a in story.incident.actions]))
        story.entries.clear()
        if pods:
            story = moved(story, pack, f"pod-{cycle}")
        else:
            story.at += 1800.0
            story.begin(life=f"life-{cycle}")
        story.segment = story.engine.state.segment
        story.steps(16, 20)
        story.entries.clear()
    assert 1 <= restarts <= 3
    assert ends[-1][0] in ("stopped", "held") and len(ends) == CYCLES
    assert not any(i.state == "acting" for i in story.incidents)


def test_a_job_that_is_killed_every_half_hour_is_not_killed_by_us() -> None:
    """A restart is decided, and everything dies before it is begun, again and again: the old mark kills nobody."""
    pack = RESTARTS.replace("MORE", "")
    story = healthy_run(pack=pack).supervisor()
    story.died()
    story.tick(2.0)
    assert story.sent() == ["restart"]
    orders = []
    for cycle in range(CYCLES):
        story = moved(story, pack, f"pod-{cycle}")
        story.segment = story.engine.state.segment
        story.steps(16, 30).tick(1800.0)
        orders += story.sent()
    assert orders == []
    assert not any(i.state == "acting" for i in story.incidents)


def test_a_coefficient_that_reports_success_and_does_nothing() -> None:
    """Computed under no_grad: the knob is turned, read back and acknowledged, and the loss never feels it.

    It is found inert within its horizon, the knob goes back, and the next rung follows. Nothing is called mended.
    """
    knobs = (KnobState("alpha_max", 0.01, 0.0, 1.0), KnobState("token_entropy_flow_control", 0.0, 0.0, 1.0))
    story = Story().begin(knobs=knobs, procedures=PROCEDURES)
    values = {"entropy_floor": 0.4, "entropy_average": 0.9, "alpha": 0.0, "opefo_lambda": 0.0, "entropy_bonus": 0.0}
    for step in range(1, 80):
        story.step(step, entropy=0.9, reward=0.5, **values)
    for step in range(80, 140):
        story.step(step, entropy=max(0.05, 0.9 - 0.05 * (step - 79)), reward=0.5, **{**values, "entropy_average": 0.05})
        if story.incidents and story.incident.state == "acting":
            story.ack(step=step, values={c.name: c.value for c in story.action.knobs})
    first = next(a for i in story.incidents for a in i.actions if a.number)
    assert (first.remedy, first.outcome) == ("turn", "ineffective")
    assert "undo" in story.sent() and len([r for r in story.sent() if r != "undo"]) > 1
    assert not any(i.state == "resolved" for i in story.incidents)


@pytest.mark.parametrize(("kind", "seed"), [("normal", 0), ("ar", 1)])
def test_a_thousand_healthy_steps_and_no_intervention(kind: str, seed: int) -> None:
    """All packs, noise of a healthy run in everything they read: nothing is sent and nobody is woken."""
    story = Story().begin().supervisor()
    reward, grad, entropy, share = (noise(kind, 10 * seed + n, 1000) for n in range(4))
    for step in range(1000):
        load = ExpertLoad(2, 2, 8, tuple(100 + int(5 * share[(step + n) % 1000]) % 30 for n in range(32)))
        told = {
            "reward": 0.5 + 0.05 * reward[step], "grad_norm": 1.0 * 1.1 ** grad[step], "kl": 0.01 * 1.1 ** share[step],
            "entropy": 0.8 + 0.02 * entropy[step], "loss": 1.0 + 0.02 * share[step], "mismatch_kl": 1e-3,
        }  # fmt: skip
        story.at += 1.0
        story.batch(story.record(step, load=load, **told))
        if step % 100 == 50:
            story.checkpoint(step)
    assert story.sent() == [] and [i.why for i in story.incidents] == []


def test_a_thousand_healthy_steps_with_bad_rows_that_the_trainer_skips() -> None:
    """One bad row in twenty, each skipped by the trainer's own guard: warnings, and no intervention at all."""
    story = healthy_run()
    for step in range(21, 1021):
        if step % 20:
            story.step(step)
        else:
            story.step(step, loss=NAN, step_applied=0.0)
    assert story.sent() == [] and story.incidents == []
