"""Surroundings: what is seen of a run besides its records and logs: its GPUs, its machine, its rollout engines, posts.

Each is asked for by an option and has a thread of its own, so that a driver or a server that hangs keeps nobody from
deciding. None of it is resumed by offset: what was not drained when the agent died is gone, and the next sample comes.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from gyrostat.wire import Record
from gyrostat_agent.sources import kubeflow, otlp
from gyrostat_agent.sources.gpu import GpuSource
from gyrostat_agent.sources.host import HostSource
from gyrostat_agent.sources.httpin import HttpIn
from gyrostat_agent.sources.logs.gathered import Gathered
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import Told
from gyrostat_agent.sources.metricspage import MetricsPage
from gyrostat_rules.inputs import Item


class Sampled(Protocol):
    """A source of samples."""

    def drain(self, now: float, step: int = -1, segment: int = 0) -> list[Item]:
        """What has come; ``step`` and ``segment`` are where the trainer is."""

    def close(self) -> None:
        """End its thread."""


class Posted(Protocol):
    """A route that keeps what was posted."""

    def drain(self) -> list[Told]:
        """The rows since the last call."""


class Surroundings:
    """All that was asked for. ``wake`` ends the loop's sleep; raises SetupError where an address cannot be used."""

    def __init__(
        self, wake: Callable[[], None], *, gpu: bool = False, host: bool = False, scrapes: Sequence[str] = (),
        receive: str = "", token_file: str = "", checkpoints: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._sampled: list[Sampled] = [MetricsPage(url, rank, wake=wake) for rank, url in enumerate(scrapes)]
        self._sampled += [GpuSource(wake)] if gpu else []
        self._host = HostSource(wake, checkpoints=checkpoints) if host else None
        self._sampled += [self._host] if self._host else []
        self._posted: list[tuple[Posted, Gathered]] = []
        self._server: HttpIn | None = None
        if receive:
            exported, called = otlp.OtlpIn(wake), kubeflow.KubeflowIn(wake)
            routes = {otlp.PATH: exported.take, kubeflow.PATH: called.take}
            self._server = HttpIn(receive, routes, token_file=token_file)
            self._posted = [(exported, Gathered(Names({}), "otlp")), (called, Gathered(Names({}), "kubeflow"))]

    @property
    def address(self) -> str:
        """Where posts are taken, '' for nowhere."""
        return self._server.address if self._server else ""

    def drain(self, now: float, step: int, segment: int) -> list[Item]:
        """What all of them have."""
        items = [item for source in self._sampled for item in source.drain(now, step, segment)]
        return [*items, *self._rows(now)]

    def set_root(self, path: str) -> None:
        """Where the trainer says its checkpoints lie."""
        if self._host is not None:
            self._host.set_root(path)

    def set_processes(self, pids: Sequence[int]) -> None:
        """Which processes of the run live: the machine is asked what they use."""
        if self._host is not None:
            self._host.set_processes(pids)

    def close(self) -> None:
        """End their threads."""
        for source in self._sampled:
            source.close()
        if self._server is not None:
            self._server.close()

    def _rows(self, now: float) -> Iterator[Record]:
        """Posted rows as records, told as of now: who posts may have another clock."""
        for route, gathered in self._posted:
            rows = [one for one in gathered.take(route.drain()) if isinstance(one, Record)]
            yield from (row._replace(time=now) for row in [*rows, *gathered.flush()])
