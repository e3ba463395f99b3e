"""History: what was decided, begun and told in one play, as a bystander writes it down; the agent knows none of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from chaos_deaths import Blow, Deaths
from chaos_scenarios import Scenario
from chaos_store import Store

from gyrostat.wire import Directive, Resume


class Sent(NamedTuple):
    """A directive as it was decided, with what stood in the state at that moment."""

    number: int
    action: str
    remedy: str
    kind: str
    step: int
    mode: str
    approvals: bool
    paused: bool
    distrust: str
    approved: bool
    target: str
    onset: int
    budget: tuple[int, int]
    pod: int


class Begun(NamedTuple):
    """A directive or a resume that a process began to carry out."""

    number: int
    action: str
    procedure: str
    incarnation: str
    at: float
    pod: int


@dataclass(slots=True)
class History:
    """One play's. ``told`` are records written whole, with the pod they were written in."""

    path: str
    scenario: Scenario
    store: Store
    deaths: Deaths
    now: Callable[[], float]
    covered: set[tuple[str, str]]
    blows: tuple[Blow, ...]
    sent: list[Sent] = field(default_factory=list)
    begun: list[Begun] = field(default_factory=list)
    told: list[tuple[tuple[str, int, int], int]] = field(default_factory=list)
    poisoned: list[tuple[str, int]] = field(default_factory=list)  # incarnation and step of what was applied with it
    pods: int = 0
    words: list[str] = field(default_factory=list)  # verbs of what people have said
    tampered: str = ""  # what became of the ledger, '' while nothing did
    numbered: bool = False  # whether any trainer had obeyed a directive, and saved that, when the ledger went

    def note(self, order: Directive | Resume, incarnation: str) -> None:
        """A process begins to carry something out."""
        if isinstance(order, Resume):
            self.begun.append(Begun(order.number, "", "resume", incarnation, self.now(), self.pods))
        else:
            self.begun.append(Begun(order.number, order.action, order.procedure, incarnation, self.now(), self.pods))
