"""When an agent that dies is begun again, and when not; the time is virtual, the processes are real."""

import os
import signal
import sys

import pytest

from gyrostat_agent.agentprocess import AgentProcess

SLEEPER = [sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"]


def agent(argv: list[str] | None, said: list[str]) -> AgentProcess:
    return AgentProcess(argv, os.environ, frozenset(), said.append)


def die(agent: AgentProcess, now: float) -> None:
    pid = agent.pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    agent.ended(-signal.SIGKILL, now)


def test_pauses_grow_and_start_anew() -> None:
    """1 s, doubled at each death up to a minute; an agent that lived for a minute begins with 1 s again."""
    said: list[str] = []
    kept, now = agent(SLEEPER, said), 0.0
    pauses: list[int] = []
    for _ in range(8):
        kept.tend(now)
        die(kept, now)
        pauses.append(0)
        while not kept.pid:
            pauses[-1] += 1
            kept.tend(now + pauses[-1])
        now += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    die(kept, now + 61.0)
    assert said[-1].endswith("in 1 s, the trainer goes on") and len(said) == 9


@pytest.mark.parametrize("status, hopeless", [(2, True), (3, False), (4, True)], ids=["setup", "held", "distrust"])
def test_what_would_end_the_same_way_is_not_begun_again(status: int, hopeless: bool) -> None:
    """It is said once; where another agent has the run, there is still one that answers."""
    said: list[str] = []
    kept = agent([sys.executable, "-I", "-S", "-c", f"import sys; sys.exit({status})"], said)
    kept.tend(0.0)
    os.waitpid(kept.pid, 0)
    kept.ended(status, 1.0)
    kept.tend(1000.0)
    assert (kept.pid, kept.hopeless, len(said)) == (0, hopeless, 1)


def test_an_agent_that_cannot_be_started() -> None:
    """A program that is not there is said once, and nobody waits for it."""
    said: list[str] = []
    kept = agent(["/no/such/agent"], said)
    kept.tend(0.0)
    kept.tend(1000.0)
    assert (kept.pid, kept.hopeless, len(said)) == (0, True, 1)
    assert "/no/such/agent" in said[0]


def test_an_agent_elsewhere_is_taken_to_be_there() -> None:
    """In a container of its own it is not ours to start, nor a reason not to wait."""
    said: list[str] = []
    kept = agent(None, said)
    kept.tend(0.0)
    kept.dismiss(signal.SIGTERM)
    assert (kept.pid, kept.hopeless, said) == (0, False, [])


def test_a_dismissed_agent_stays_away() -> None:
    """Once the run is over, its end is as wished: nothing is said and nothing begun again."""
    said: list[str] = []
    kept = agent(SLEEPER, said)
    kept.tend(0.0)
    pid = kept.pid
    kept.dismiss(signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    kept.ended(-signal.SIGTERM, 1.0)
    kept.tend(1000.0)
    assert (kept.pid, said) == (0, [])
