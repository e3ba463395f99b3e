"""An action carried out on a cluster in memory, through as many lives as it takes."""

from typing import Any

from clusters import Cluster, DeathError

from gyrostat_agent.kubernetes.course import Over
from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.progress import RESTART, Order
from gyrostat_agent.kubernetes.refusals import AwayError, ConflictError
from gyrostat_agent.kubernetes.request import Ref
from gyrostat_agent.kubernetes.turn import Turns

UNTIL = 2000.0


def order(number: int = 1, what: str = RESTART, **more: Any) -> Order:
    """An order to restart, as the rules give it."""
    return Order("run", number, f"i0001.{number}", what, UNTIL, **more)


class Life:
    """Lives of whoever acts: each begins with nothing but what stands on the job. Time passes with each turn."""

    def __init__(self, cluster: Cluster, kind: JobKind, ref: Ref) -> None:
        self.cluster, self.kind, self.ref = cluster, kind, ref
        self.now = 100.0
        self.deaths = 0
        self._begin()

    def _begin(self) -> None:
        self.turns = Turns(self.cluster, self.kind, self.ref, lambda: self.now, lambda: self.now)

    def carry_out(self, wanted: Order | None, most: int = 80) -> Over | None:
        """Turn after turn, beginning anew after each death; ``wanted`` None: only what has been begun is finished."""
        for _ in range(most):
            try:
                move = self.turns.take(wanted)
                if isinstance(move, Over):
                    return move
            except DeathError:
                self.deaths += 1
                self._begin()
            except (AwayError, ConflictError):
                pass
            self.cluster.settle()
            self.now += 3.0
        return None
