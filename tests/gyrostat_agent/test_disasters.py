"""Disasters that others have had, replayed with an agent's own files: a stale mark, and a monitor without a memory."""

import os
import shutil
from pathlib import Path

import pytest
from agent_runs import NAN, Bench

from gyrostat_agent import failpoints, ledgerfile

CYCLES = 12


class Dead(BaseException):
    """The agent's process ends here."""


def pod(bench: Bench, folder: Path, number: int) -> Bench:
    """The next pod: a run directory of its own beside the same checkpoints, and a trainer that goes on from them."""
    place = folder / f"pod-{number}"
    place.mkdir()
    new = Bench(place, lambda: bench.now + 1800.0, bench.root)
    new.verdicts.known = bench.verdicts.known
    new.verdicts.new = list(bench.verdicts.known.values())
    return new


@pytest.mark.parametrize("point", ["turn.committed", "ledger.written", "directive.linked"])
def test_a_mark_of_what_was_begun_survives_and_nothing_is_done_by_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """A rollback is decided and the agent dies on it, and the pod with it, again and again.

    No pod carries out what an earlier one had begun, and the budget counts each of them: in the end nothing is begun.
    """
    bench.verdicts.tell("/c/2", 2)
    sent, begun = 0, 0
    for cycle in range(CYCLES):
        control = bench.control()
        agent = bench.agent()
        bench.tell(13)
        agent.once()
        for _ in range(2):  # half a minute, in which what the ledger does not hold is seen again
            bench.now += 40.0
            bench.tell(14)
            agent.once()
        assert not control.apply(14), "what an earlier pod had begun was carried out"
        committed = len(agent.engine.state.deeds)

        def die(passed: str, agent=agent, committed=committed) -> None:  # type: ignore[no-untyped-def]
            if passed == point and len(agent.engine.state.deeds) > committed:
                raise Dead(passed)

        monkeypatch.setattr(failpoints, "strike", die)
        bench.tell(15, NAN)
        try:
            agent.once()
        except Dead:
            begun += 1
        monkeypatch.setattr(failpoints, "strike", None)
        sent += len(bench.directives())
        last, bench = bench, pod(bench, tmp_path, cycle)
        last.close()
        shutil.rmtree(last.run.path)
    if point == "turn.committed":  # the ledger had not heard of it: as good as never decided, and nothing was sent
        assert begun and sent == 0
    else:
        assert 1 <= begun <= 3 and sent <= 3
    bench.close()


@pytest.mark.parametrize("lost", ["journal", "ledger", "both", "the run directory and the ledger"])
def test_a_monitor_that_has_lost_its_memory_does_nothing(bench: Bench, tmp_path: Path, lost: str) -> None:
    """With one of journal and ledger it goes on with what it knew; with neither it only observes, and says so."""
    control = bench.control()
    agent = bench.agent()
    bench.skip_twice(1)
    agent.once()
    assert len(control.apply(3)) == 1
    for step in range(3, 20):
        bench.tell(step)
    agent.once()
    agent.close()
    if lost in ("journal", "both"):
        for name in os.listdir(bench.run.agent):
            if name.startswith("journal"):
                os.unlink(os.path.join(bench.run.agent, name))
    if lost != "journal":
        os.unlink(ledgerfile.path_of(bench.root))
    new = bench
    if lost == "the run directory and the ledger":
        new = pod(bench, tmp_path, 1)
        new.telemetry.introduce((), ("skip_data",), 1, 0)  # its checkpoint says that it has obeyed directive 1
        new.telemetry.say()
    after = new.agent()
    for _ in range(3):
        new.now += 40.0
        new.tell(20)
        after.once()
    before = len(new.directives())
    new.skip_twice(21)
    after.once()
    state = after.engine.state
    if lost in ("journal", "ledger"):
        assert (state.settings.distrust, len(state.deeds), state.next_directive) == ("", 2, 3)
    else:
        assert "has a history" in state.settings.distrust and len(new.directives()) == before
    if new is not bench:
        new.close()
