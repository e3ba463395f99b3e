"""Senses: what the loop needs of those through which it sees checkpoints and surroundings."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gyrostat_rules.inputs import CheckpointSeen, Item
from gyrostat_rules.keeping import Keep


class Checkpoints(Protocol):
    """What the loop needs of the checkpoint source."""

    def set_root(self, path: str) -> None:
        """Where the trainer says its checkpoints lie."""

    def poll(self) -> None:
        """Time has passed: look again at the next drain."""

    def drain(self) -> Sequence[CheckpointSeen]:
        """New verdicts; never waits."""

    @property
    def pin_fault(self) -> str:
        """Why one could not be kept from rotation, or ''."""

    def keep(self, keep: Keep) -> None:
        """Which are needed, as is decided now; the others may be let go."""

    def recheck(self, path: str, digest: str) -> CheckpointSeen:
        """Whether it still is what was verified, right before it is used."""


class Job(Protocol):
    """What the loop needs of the job that owns this pod, where it is in a cluster; none of it waits."""

    @property
    def trouble(self) -> str:
        """What cannot be done to the job now, and why, or ''."""

    def remember(self, facts: Mapping[str, Any], head: str) -> None:
        """The ledger, as it was written beside the checkpoints."""

    def reconciled(self, found: dict[str, Any] | None, why: str) -> tuple[dict[str, Any] | None, str]:
        """Which ledger to take up, and why none: that beside the checkpoints, or what the job bears."""

    def late_doubt(self, facts: Mapping[str, Any]) -> str:
        """Why the job knows more than this history, or ''."""


class Surroundings(Protocol):
    """What the loop needs of all that is seen besides."""

    def drain(self, now: float, step: int, segment: int) -> Sequence[Item]:
        """What has come; never waits."""

    def set_root(self, path: str) -> None:
        """Where the trainer says its checkpoints lie."""

    def set_processes(self, pids: Sequence[int]) -> None:
        """Which processes of the run live, as their own machines number them."""
