"""Progress: how far a transfer is, for whoever shows it."""

from typing import Protocol


class Progress(Protocol):
    """Told of the bytes in all, once, and then of those that are done; in one thread."""

    def begin(self, total: int) -> None:
        """A transfer of ``total`` bytes begins."""

    def advance(self, count: int) -> None:
        """``count`` bytes more are done: sent, fetched, or found to be there."""


class Silent:
    """Shows nothing."""

    def begin(self, total: int) -> None:
        """Nothing."""

    def advance(self, count: int) -> None:
        """Nothing."""
