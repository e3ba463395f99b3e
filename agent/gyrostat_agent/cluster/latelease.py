"""LateLease: a lease in a store that may not be reachable yet: a pod may begin before its service account is there.

Until it can be made, each question is answered as of a store that cannot be asked: the agent watches its own ranks,
says why it is cut off, and decides nothing.
"""

from collections.abc import Callable

from gyrostat_agent.cluster.lease import Holding, Lease, LeaseError, Wish
from gyrostat_agent.errors import AgentError


class LateLease:
    """``make`` makes the lease, or raises AgentError; it is called in the election's thread until it succeeds."""

    def __init__(self, make: Callable[[], Lease]) -> None:
        self._make = make
        self._made: Lease | None = None

    def who(self) -> Holding:
        """What it says now."""
        return self._lease().who()

    def preferred(self) -> Wish:
        """Who would rather have it."""
        return self._lease().preferred()

    def try_take(self, seen: Holding, node: str, address: str, least: int = 0) -> Holding | None:
        """Take it in a new term, beyond ``least``, where it still says ``seen``; None where another was faster."""
        return self._lease().try_take(seen, node, address, least)

    def renew(self, held: Holding) -> Holding | None:
        """Show life: the same with the next beat. None where it is not ours any more."""
        return self._lease().renew(held)

    def release(self, held: Holding, promised: str = "") -> None:
        """Give it back, where it still is ours."""
        self._lease().release(held, promised)

    def prefer(self, wish: Wish) -> None:
        """Say that this node would rather have it."""
        self._lease().prefer(wish)

    def _lease(self) -> Lease:
        if self._made is None:
            try:
                self._made = self._make()
            except AgentError as error:
                raise LeaseError(str(error)) from None
        return self._made
