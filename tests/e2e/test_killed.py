"""Real SIGKILLs, of the agent at every named point and of the trainer: the run ends well and nothing happens twice."""

import os
import signal
import sys
from collections.abc import Callable

from histories import check_chain_and_replay, check_nothing_lost, check_nothing_twice, entries, states
from processes import DEADLINE, Place, ended, gyrostat, killed, until

from gyrostat_agent.failpoints import POINTS

Places = Callable[..., Place]


def test_agent_killed_at_every_point_of_its_pass(place: Places) -> None:
    """Nine agents die one after the other where it hurts, and the trainer once; each poison is passed over, once.

    Each agent begins while the trainer waits at a poisoned item: its first batch holds what decides, so the counts
    hit the directive. ``resume.written`` is reached by a restart alone: see below.
    """
    run, dead, begun = place(), set[str](), 1
    options = ("--items", "60", "--poison", "10,20,30,40,50")
    trainer = run.trainer(*options)
    for order in (
        "batch.drained:1",
        "batch.decided:3",  # behind the pack's and the configuration's turns: with the directive, not written down yet
        "turn.committed:3",  # written down, not laid: the next one finds an intent without an outcome
        "settled:1",
        "directive.linked:2",  # laid, not rung; the first is the one before, looked at again
        "bell.rung:1",
        "records.deleted:1",
        "ledger.written:1",
    ):
        run.parked(begun)
        if order == "records.deleted:1":  # its predecessor's file goes once it is read to its end
            trainer.kill()
            killed(trainer, "the trainer")
            trainer, begun = run.trainer(*options), 2
            run.parked(begun)
        killed(run.agent(dies_at=order), order)
        dead.add(order.partition(":")[0])
    leaving = run.agent(dies_at="snapshot.saved:1")
    assert trainer.wait(DEADLINE) == 0
    until(lambda: run.status().get("step", 0) >= last_step(run), "the agent never read the last step")
    leaving.send_signal(signal.SIGTERM)
    killed(leaving, "snapshot.saved:1")
    assert dead == set(POINTS) - {"snapshot.saved", "resume.written"}
    assert [line.split()[1] for line in run.done("order ")] == ["10", "20", "30", "40", "50"]
    end_well(run)


def last_step(run: Place) -> int:
    return int(run.done("record ")[-1].split()[2])


def end_well(run: Place) -> None:
    """One more agent that nobody kills: everything settled, the history whole, each record there."""
    agent = run.agent()
    until(lambda: set(states(run.journal, "incident").values()) == {"resolved"}, "an incident is not resolved")
    run.watched(agent)
    assert ended(agent) == 0
    check_chain_and_replay(run.journal)
    check_nothing_twice(run.journal)
    told = {life: [int(s) for _, i, s, _ in map(str.split, run.done("record ")) if i == life] for life in lives(run)}
    assert check_nothing_lost(run.journal) == told
    assert gyrostat("replay", "--quiet", str(run.run)).returncode == 0
    assert gyrostat("journal", "verify", str(run.run)).returncode == 0


def lives(run: Place) -> list[str]:
    return [line.split()[1] for line in run.done("began ")]


def test_agent_killed_while_it_orders_a_restart(place: Places) -> None:
    """``gyrostat run`` begins the agent anew, which completes the restart that the dead one had written down.

    The first restart passes the point once, the second kills; the agent behind passes it once, settling.
    """
    restart = "{remedy: restart, horizon: 10, irreversible: true}"
    run = place(f"[{restart}, {restart}]")
    trainer = run.trainer_argv("--items", "40", "--poison", "21,23", "--gates", "20", "--no-guard")
    options = ["--mode", "act", "--no-approvals", "--listen", "", "--rules", str(run.pack), "--run-dir", str(run.run)]
    whole = run.start(
        [sys.executable, "-m", "gyrostat_agent", "run", *options, "--", *trainer], GYROSTAT_FAILPOINT="resume.written:2"
    )
    until(lambda: len(entries(run.journal, "checkpoint")) >= 3, "the checkpoints were never verified")
    run.open_gate(20)
    assert whole.wait(DEADLINE) == 0, run.said.read_text()
    said = run.said.read_text()
    assert said.count("signal 9 (SIGKILL); it is started again") == 1
    assert said.count("restarted by the agent") == 2
    assert len(run.done("order ")) == 2
    end_well(run)


def test_reference_trainer_killed_in_the_middle(place: Places) -> None:
    """The real trainer dies behind a directive, in a checkpoint and behind a step, the agent beside it once.

    Nobody carries over what dies with a trainer: the item that was passed over is met again, and mended again.
    """
    # A rollback dies with its trainer, if no checkpoint follows it.
    again = ", {remedy: rollback, horizon: 3, irreversible: true}" * 4
    run = place(f"[{{remedy: skip_data, horizon: 3, irreversible: true}}{again}]")
    argv = [sys.executable, "-m", "gyrostat_reference", "--steps", "20", "--poison-at-step", "8", "--guard"]
    argv += ["--checkpoint-every", "2", "--checkpoints", str(run.root), "--run-dir", str(run.run), "--patience", "2"]

    def life(dies_at: str = "") -> int:
        armed = {"GYROSTAT_REFERENCE_DIE_AT": dies_at} if dies_at else {}
        return run.start(argv, **armed).wait(3 * DEADLINE)

    first = run.agent(dies_at="bell.rung:1")
    assert life("apply.after:10") == -signal.SIGKILL  # the boundary at which the item is passed over
    killed(first, "the first agent")
    agent = run.agent()
    assert life("checkpoint.files:2") == -signal.SIGKILL
    assert life("step.recorded:3") == -signal.SIGKILL
    assert life() == 0
    until(lambda: run.status().get("step", 0) >= 20, "the agent never read the last step")
    until(lambda: set(states(run.journal, "incident").values()) == {"resolved"}, "an incident is not resolved")
    assert ended(agent) == 0
    check_chain_and_replay(run.journal)
    check_nothing_twice(run.journal)
    steps = check_nothing_lost(run.journal)
    assert len(steps) == 4 and max(map(max, steps.values())) == 20


def test_a_trainer_that_is_killed_is_begun_anew(place: Places) -> None:
    """By the rules that ship: no cause is known, so it goes on from a certified checkpoint, and is proved."""
    run = place()
    trainer = run.trainer_argv("--items", "80", "--gates", "30")
    options = ["--mode", "act", "--no-approvals", "--listen", "", "--run-dir", str(run.run)]
    whole = run.start([sys.executable, "-m", "gyrostat_agent", "run", *options, "--", *trainer])
    until(lambda: run.done("gate 30"), "the trainer never came to its gate")
    until(lambda: "verified" in states(run.journal, "checkpoint").values(), "no checkpoint was verified")
    until(lambda: run.status().get("step", 0) >= last_step(run), "the agent never read the last step")
    os.kill(pid_of(run), signal.SIGKILL)
    run.open_gate(30)
    assert whole.wait(DEADLINE) == 0, run.said.read_text()
    assert len(lives(run)) == 2 and len(run.done("order ")) == 1
    assert set(states(run.journal, "incident").values()) == {"resolved"}
    check_chain_and_replay(run.journal)
    check_nothing_twice(run.journal)


def pid_of(run: Place) -> int:
    """The trainer's, as its Hello says it."""
    (began,) = [e for e in entries(run.journal, "run") if e.subject == "trainer/0" and e.state == "began"]
    return int(str(began.data["pid"]))
