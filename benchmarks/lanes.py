"""Lanes: many processes, so many of them side by side, each with a folder and logs of its own."""

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from gyrostat_agent.demo.child import Child

_LOOK_SECONDS = 0.2


class Job(Protocol):
    """A process to be started; its output goes to ``output.log`` and ``errors.log`` in ``folder``, which is there."""

    @property
    def command(self) -> Sequence[str]: ...

    @property
    def folder(self) -> Path: ...


J = TypeVar("J", bound=Job)
J_in = TypeVar("J_in", bound=Job, contravariant=True)


class Onlooker(Protocol[J_in]):
    """Who sees to what the jobs leave behind."""

    def look(self, job: J_in) -> None:
        """It is under way, or was broken off: take what it has so far."""

    def ended(self, job: J_in, child: Child) -> None:
        """It ended by itself; more jobs may be added now."""


def play(jobs: deque[J], at_once: int, onlooker: Onlooker[J]) -> None:
    """Start them in order and follow them until none is left.

    None outlives the call: where it is interrupted those under way are ended, with whatever they started, and looked
    at once more.
    """
    running: list[tuple[J, Child]] = []
    try:
        while jobs or running:
            while jobs and len(running) < at_once:
                job = jobs.popleft()
                running.append((job, Child(job.command, job.folder)))
            over = [one for one in running if one[1].status is not None]  # asked first: then the files are whole
            for job, _ in running:
                onlooker.look(job)
            for one in over:
                running.remove(one)
                onlooker.ended(*one)
            if running and not over:
                time.sleep(_LOOK_SECONDS)
    finally:
        for _, child in running:
            child.end()
        for job, _ in running:
            onlooker.look(job)
