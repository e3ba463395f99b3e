"""Senses: what the loop needs of those through which it sees checkpoints and surroundings."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gyrostat_agent.cluster.post import Post
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import CheckpointSeen, Item
from gyrostat_rules.keeping import Keep
from gyrostat_rules.state import State


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


class Member(Protocol):
    """What the loop needs of the cluster that this agent is one of; none of it waits."""

    node: str

    @property
    def post(self) -> Post:
        """Who decides for the run."""

    def may_act(self, term: int) -> bool:
        """True while this agent decides in that term, and nobody else can."""

    def begin(self, offsets: Mapping[str, int]) -> None:
        """A loop begins from its journal."""

    def stood(self, state: State) -> None:
        """The engine has taken up another standing."""

    def seconds(self) -> float:
        """How long the loop may sleep."""

    def drain(self, state: State) -> tuple[list[Item], dict[str, int]]:
        """What other nodes forwarded, and what is to be written down with it."""

    def committed(self) -> None:
        """What was drained is in the journal."""

    def tell(self, state: State, items: Sequence[Item], entries: Sequence[Entry]) -> None:
        """Forward what a turn brought, while another decides."""


class Surroundings(Protocol):
    """What the loop needs of all that is seen besides."""

    def drain(self, now: float, step: int, segment: int) -> Sequence[Item]:
        """What has come; never waits."""

    def set_root(self, path: str) -> None:
        """Where the trainer says its checkpoints lie."""

    def set_processes(self, pids: Sequence[int]) -> None:
        """Which processes of the run live, as their own machines number them."""
