"""Lease: who decides for a run, as it stands where all agents can read it. Called by ``candidate``.

A store needs one thing: that a change can be made on the condition that nothing was changed meanwhile. Each time
somebody takes the lease its ``term`` grows, and no term is ever held by two; a term is therefore what tells an old
leader's order from the new one's. No time stands in a lease: the clocks of two machines are never compared.

Not promised: that a holder still lives. Whoever looks judges that by how long the lease has not changed (``election``).
"""

from typing import NamedTuple, Protocol

from gyrostat_agent.errors import TemporaryError


class LeaseError(TemporaryError):
    """The store cannot be asked now, and nobody knows whether what was asked for was done."""


class Holding(NamedTuple):
    """What the lease says. ``holder`` is a node's name, '' where it was given back or never taken.

    ``address`` (HOST:PORT) is where the holder takes what followers forward; ``beat`` grows with each renewal of its
    term; ``promised``: for whom it was given back, who need not wait.
    """

    term: int = 0
    holder: str = ""
    address: str = ""
    beat: int = 0
    promised: str = ""


class Wish(NamedTuple):
    """The node whose agent is beside rank 0 and would rather have the lease; ``beat`` grows while it still would."""

    node: str = ""
    beat: int = 0


class Lease(Protocol):
    """A lease in some store. Each method raises LeaseError where the store cannot be asked; none waits for long."""

    def who(self) -> Holding:
        """What it says now."""

    def preferred(self) -> Wish:
        """Who would rather have it."""

    def try_take(self, seen: Holding, node: str, address: str, least: int = 0) -> Holding | None:
        """Take it in a new term, beyond ``least``, where it still says ``seen``; None where another was faster."""

    def renew(self, held: Holding) -> Holding | None:
        """Show life: the same with the next beat. None where it is not ours any more."""

    def release(self, held: Holding, promised: str = "") -> None:
        """Give it back, where it still is ours."""

    def prefer(self, wish: Wish) -> None:
        """Say that this node would rather have it."""
