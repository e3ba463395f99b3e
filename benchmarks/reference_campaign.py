"""Runs of the reference trainer for the gates: many at once, a process each, with all that they told."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

import torch

from gyrostat import Control, Telemetry
from gyrostat_reference.measures import UNITS
from gyrostat_reference.rollout import PolicyDestroyed
from gyrostat_reference.settings import Settings
from gyrostat_reference.trainer import Trainer


class Run(NamedTuple):
    """What one run told: ``rows``, a mapping of values for each step; ``shares``, each step's share of each expert.

    ``died``: the reason, or ''. ``cpu``: seconds of it a step.
    """

    name: str
    seed: int
    rows: list[dict[str, float]]
    shares: list[list[float]]
    died: str
    cpu: float

    def mean(self, name: str, last: int = 10) -> float:
        """Of a value over the last steps."""
        values = [row[name] for row in self.rows[-last:]]
        return sum(values) / len(values)

    def effective(self, last: int = 10) -> float:
        """rho_eff of the experts' load over the last steps: 1 is even, 1/E all on one."""
        return 1 / (len(self.shares[0]) * sum(share * share for share in self._shares(last)))

    def dead(self, last: int = 10) -> float:
        """Share of experts with less than a tenth of an even load over the last steps."""
        shares = self._shares(last)
        return sum(share < 0.1 / len(shares) for share in shares) / len(shares)

    def _shares(self, last: int) -> list[float]:
        rows = self.shares[-last:]
        return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


class Listener(Telemetry):
    """Telemetry that keeps what it is told instead of writing it."""

    def __init__(self) -> None:
        super().__init__("", units=UNITS)
        self.rows: list[dict[str, float]] = []
        self.shares: list[list[float]] = []

    def record(self, step: int, expert_load: object = None, **values: object) -> None:
        """Keep a step's values."""
        assert isinstance(expert_load, torch.Tensor)
        load = expert_load.sum((0, 1)).double()
        self.shares.append((load / load.sum()).tolist())
        self.rows.append({name: float(value) for name, value in values.items()})  # type: ignore[arg-type]


class Job(NamedTuple):
    """A run to be made."""

    name: str
    settings: Settings


def run(job: Job) -> Run:
    """Make one run, in this process."""
    torch.set_num_threads(1)
    listener = Listener()
    began, died = time.process_time(), ""
    trainer = Trainer(job.settings, listener, say=lambda line: None)
    try:
        trainer.run(Control(listener))
    except PolicyDestroyed as error:
        died = str(error)
    cpu = (time.process_time() - began) / max(1, len(listener.rows))
    return Run(job.name, job.settings.seed, listener.rows, listener.shares, died, cpu)


def runs(jobs: Sequence[Job], at_once: int) -> Iterator[Run]:
    """Make all of them, ``at_once`` processes at a time, in the order in which they end."""
    with contextlib.ExitStack() as stack:
        workers = stack.enter_context(ProcessPoolExecutor(at_once))
        for done in as_completed([workers.submit(run, job) for job in jobs]):
            yield done.result()
