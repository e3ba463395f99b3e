"""The rollout pool: sessions drawn by worker processes, none of them lost when a worker is.

It stands, in small, for the inference nodes and environment nodes of a large RL job: policies that arrive by
version, heartbeats, sessions in rounds, time-outs, retry budgets, engines that are left behind. The trainer
owns the pool; its workers are child processes on the same machine that die with it.

What it does not do: several machines, several sessions in one forward, a key-value cache, partial rollouts that
outlive a step, or telling telemetry anything (``RolloutPool.measures`` is for the trainer to tell).

Read in this order: ``settings``, ``session`` (what a round is), ``environment``, ``weights`` (policies on disk),
``wire``, ``worker`` (the child), ``process`` (the trainer's view of it), ``docket`` (who has which session), ``pool``.

Errors:

    PoolError
      SessionLost     one session was handed over too often
      WorkersLost     workers do not start, or die faster than they may be replaced
    gyrostat_reference.rollout.PolicyDestroyed      the published weights are not finite
"""

from gyrostat_reference.pool.errors import PoolError, SessionLost, WorkersLost
from gyrostat_reference.pool.pool import PoolRollouts, RolloutPool
from gyrostat_reference.pool.settings import Blow, Faults, Settings

__all__ = ["Blow", "Faults", "PoolError", "PoolRollouts", "RolloutPool", "SessionLost", "Settings", "WorkersLost"]
