"""Named points at which a test may end this process, to prove that no moment is a bad one to die in.

``GYROSTAT_FAILPOINT="directive.linked:2"`` sends SIGKILL to this process the second time it passes the point;
in virtual time a test sets ``strike`` instead. Unarmed, a point costs one comparison. The variable can do
nothing to others: whoever may set it could as well send the signal.
"""

import os
import signal
from collections.abc import Callable

POINTS = (
    "batch.drained", "batch.decided", "turn.committed", "ledger.written", "resume.written", "directive.linked",
    "bell.rung", "records.deleted", "snapshot.saved", "settled",
)  # fmt: skip
# Inside a bite of the journal's retention; apart, for a run must be old before it passes them.
RETENTION_POINTS = ("letgo.stated", "letgo.dropped", "letgo.shrunk")

strike: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """Pass a named point."""
    if strike is not None:
        strike(point)


def _arm(order: str) -> Callable[[str], None]:
    wanted, _, count = order.partition(":")
    left = int(count or 1)

    def kill(point: str) -> None:
        nonlocal left
        if point == wanted:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return kill


if _order := os.environ.get("GYROSTAT_FAILPOINT"):
    strike = _arm(_order)
