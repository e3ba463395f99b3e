"""A pod's agent and its job on a cluster in memory: the agent's loop and its thread, real files, and a finisher."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from agent_runs import Bench
from clusters import NAMESPACE, Cluster

from gyrostat_agent.kubernetes import finisher as finishers
from gyrostat_agent.kubernetes import process as processes
from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.owner import Pod
from gyrostat_agent.kubernetes.request import Ref, Server
from gyrostat_agent.loop import Agent

DEADLINE = 20.0


class Locked:
    """One request at a time, as one API server: pods, finisher and controllers are threads here."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.lock = cluster, threading.Lock()

    def ask(self, request: object) -> object:
        with self.lock:
            return self.cluster.ask(request)  # type: ignore[arg-type]

    def settle(self) -> None:
        with self.lock:
            self.cluster.settle()


class PodLife:
    """One pod: a run directory of its own beside shared checkpoints, an agent with its thread."""

    def __init__(
        self,
        folder: Path,
        root: Path,
        server: Locked,
        kind: JobKind,
        name: str,
        connect: Callable[[], Server] | None = None,
    ) -> None:
        folder.mkdir()
        self.server, self.kind = server, kind
        self.bench = Bench(folder, time.time, str(root))
        self.lines: list[str] = []
        self.job = processes.JobProcess(
            self.bench.run, "run", lambda: (self._server(connect), self.pod()), self.lines.append
        )
        self.name = name

    def _server(self, connect: Callable[[], Server] | None) -> Server:
        return connect() if connect is not None else self.server

    def pod(self) -> Pod:
        found = [p for p in self.server.cluster.pods() if not self.name or p["metadata"]["name"] == self.name]
        meta = found[0]["metadata"]
        return Pod(meta["name"], NAMESPACE, meta["uid"], found[0]["spec"]["nodeName"])

    def agent(self, **changed: object) -> Agent:
        """A new agent of this pod, whose thread has begun."""
        self.job.start()
        found = self.bench.agent(job=self.job, **changed)
        return found

    def once(self) -> None:
        """One pass of the agent, a second after the last."""
        self.bench.now += 1.0
        self.bench.agents[-1].once()

    def close(self) -> None:
        self.job.close()
        self.bench.close()


def wait_for(
    true: Callable[[], object], meanwhile: Callable[[], object] = lambda: None, why: Callable[[], object] = str
) -> None:
    """Until it is so; fails after a deadline."""
    end = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < end, f"it did not come in time: {why()}"
        meanwhile()
        time.sleep(0.01)


def certify(bench: Bench, step: int) -> str:
    """A checkpoint of that step, as a folder beside the ledger."""
    path = os.path.join(bench.root, f"step-{step}")
    os.makedirs(path, exist_ok=True)
    bench.verdicts.tell(path, step)
    return path


def finisher(server: Locked) -> finishers.Finisher:
    """One that looks when it is told to."""
    return finishers.Finisher(server, NAMESPACE, "finisher-1", lambda said: None)


def job(kind: JobKind) -> Ref:
    """The job of these tests."""
    return kind.ref("run1", NAMESPACE)
