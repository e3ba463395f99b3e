"""An agent that passes again and again and takes words over HTTP, and somebody who asks as nobody should."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_runs import NAN, Bench
from http_posts import Said, post
from supervised_runs import DEADLINE, until

from gyrostat_agent.access.wordserver import LIMITS, Limits, WordServer
from gyrostat_agent.journal import Journal
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import Lock
from gyrostat_rules.entries import Entry


class Speaking:
    """A server with an agent behind it. ``said`` are the lines for its operator, ``passes`` its agent's passes."""

    def __init__(self, bench: Bench, server: WordServer, said: list[str]) -> None:
        self.bench, self.server, self.said, self.passes = bench, server, said, 0

    @property
    def token(self) -> str:
        """What is right now."""
        return Path(self.server.token_file).read_text().strip()

    def ask(
        self, path: str, body: bytes = b"{}", method: str = "POST", token: str | None = None, **headers: str
    ) -> Said:
        """One request; with the right token unless another is given, or '' for none."""
        shown = self.token if token is None else token
        sent = {"Authorization": f"Bearer {shown}" if shown else "", **headers}
        kind = sent.pop("Content_Type", "application/json")
        return post(self.server.address, path, body, kind, method, **sent)

    def entries(self) -> list[Entry]:
        """All that the agent has written, as another process reads it."""
        journal = Journal(os.path.join(self.bench.run.agent, "journal.db"), readonly=True)
        with contextlib.closing(journal):
            return list(journal.entries())

    def words(self) -> list[Entry]:
        """What the agent heard of people."""
        return [e for e in self.entries() if e.kind == "command" and e.subject != "configure"]

    def lying(self) -> list[str]:
        """Words that nobody has read."""
        return os.listdir(os.path.join(self.bench.run.agent, "commands"))


@contextlib.contextmanager
def listening(bench: Bench, limits: Limits = LIMITS, **given: object) -> Iterator[Speaking]:
    """A server in front of a run that no agent watches."""
    said: list[str] = []
    server = WordServer("127.0.0.1:0", bench.run, said.append, limits=limits, **given)  # type: ignore[arg-type]
    try:
        yield Speaking(bench, server, said)
    finally:
        server.close()


@contextlib.contextmanager
def speaking(bench: Bench, limits: Limits = LIMITS, **given: object) -> Iterator[Speaking]:
    """The same with an agent in mode act, whose service hands answers on as the real one does."""
    with listening(bench, limits, **given) as spoken, passing(spoken):
        yield spoken


@contextlib.contextmanager
def passing(spoken: Speaking) -> Iterator[None]:
    """The agent behind it."""

    def handed_on(agent: Agent) -> None:
        spoken.server.heard(agent.entries)
        agent.entries = []
        spoken.passes += 1

    with watched(spoken.bench, handed_on, approvals=True):
        yield


@contextlib.contextmanager
def watched(bench: Bench, after: Callable[[Agent], None] = lambda _: None, **settings: object) -> Iterator[None]:
    """An agent that passes again and again, as its service does, and holds the run; ``after`` each pass."""
    lock, up, ending = Lock(bench.run), threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def passes() -> None:
        try:
            agent = bench.agent(**settings)
            up.set()
            while not ending.wait(0.002):
                agent.once()
                after(agent)
            bench.agents.remove(agent)
            agent.close()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=passes)
    thread.start()
    try:
        assert up.wait(DEADLINE)
        yield
    finally:
        ending.set()
        thread.join()
        lock.release()
    assert not failed


def held_action(spoken: Speaking) -> str:
    """Bring the run to an action that waits for a person; its id."""
    bench = spoken.bench
    bench.control()
    for step in range(1, 15):
        bench.tell(step)
    bench.verdicts.tell("/c/2", 2)
    until(lambda: [e for e in spoken.entries() if e.kind == "checkpoint"])
    bench.tell(15, NAN)
    until(lambda: [e for e in spoken.entries() if e.kind == "action" and e.state == "hold"])
    return next(e.subject for e in spoken.entries() if e.kind == "action" and e.state == "hold")
