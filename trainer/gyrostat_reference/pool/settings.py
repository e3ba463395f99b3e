"""Settings of a pool, and the faults that an experiment asks for."""

from pathlib import Path
from typing import Literal, NamedTuple


class Blow(NamedTuple):
    """A fault: the worker at place ``worker`` breaks at its ``round``-th round, after drawing the tokens.

    ``how``: ``kill`` is SIGKILL, ``stop`` SIGSTOP (no heartbeat any more), ``hang`` an environment that never answers
    while the heart beats on. Only the first ``incarnations`` at that place are hit.
    """

    worker: int
    round: int
    how: Literal["kill", "stop", "hang"]
    incarnations: int = 1


class Faults(NamedTuple):
    """What an experiment breaks on purpose; nothing by default.

    ``frozen_version``: the ``stale_workers`` (None: all) never load a newer policy than this one, as an inference
    engine that missed its weight sync; they say truthfully which they used.
    """

    frozen_version: int | None = None
    stale_workers: tuple[int, ...] | None = None
    blows: tuple[Blow, ...] = ()

    def newest_for(self, worker: int) -> int | None:
        """The newest version that the worker at this place may load; None where there is no limit."""
        stale = self.stale_workers is None or worker in self.stale_workers
        return self.frozen_version if stale else None

    def blow_for(self, worker: int, incarnation: int) -> Blow | None:
        """What hits this incarnation of the worker at this place."""
        return next((b for b in self.blows if b.worker == worker and incarnation <= b.incarnations), None)


class Settings(NamedTuple):
    """Times in seconds. Read by ``RolloutPool`` alone."""

    group: int = 8  # completions of a prompt
    heartbeat: float = 0.25  # between two heartbeats: a worker costs 4 messages a second
    silence: float = 5.0  # without a word a worker is dead: 20 heartbeats, more than a busy machine delays one
    round_deadline: float = 30.0  # for one round; it takes milliseconds, so this one hangs
    start_deadline: float = 120.0  # from start to ready: torch is read from a cold disk
    handovers: int = 3  # of one session; a session that four workers fail at will fail at a fifth
    restarts: int = 8  # workers replaced within one roll-out: a crash at start must not go on for ever
    poison_item: int | None = None  # as in ``gyrostat_reference.faults.verify``
    folder: Path | None = None  # policies are published below it; None: /dev/shm, or the temporary folder without one
    faults: Faults = Faults()
