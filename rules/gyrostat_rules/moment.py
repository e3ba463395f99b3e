"""Moment: what one evaluation looks at, and where the stages put what they decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gyrostat.wire import Record
from gyrostat_rules.entries import Entry
from gyrostat_rules.pack import Rule, RulePack
from gyrostat_rules.state import Alert


@dataclass(slots=True)
class Moment:
    """One evaluation: its time, the records of one step (none where only time or news passed), the entries so far.

    ``closed`` is true where all ranks of the step have spoken or no longer will; a moment that is not closed
    carries records that tripped before the step was complete. ``readings`` and ``turned`` hand what the
    detectors found, and which alerts changed, from one stage to the next; ``memo`` is what they share of their work,
    and is that of all moments of one input; ``looks`` are what they have cut out of this one's series.
    """

    at: float
    turn: int
    pack: RulePack
    records: tuple[Record, ...] = ()
    step: int = -1
    closed: bool = True
    entries: list[Entry] = field(default_factory=list)
    readings: list[tuple[Rule, dict[str, Any]]] = field(default_factory=list)
    turned: list[tuple[str, Alert, str]] = field(default_factory=list)
    changed: bool = False
    memo: dict[Any, Any] = field(default_factory=dict)
    looks: dict[Any, Any] = field(default_factory=dict)

    def write(self, kind: str, subject: str, state: str, text: str, step: int | None = None, **data: Any) -> None:
        """Add an entry; its id is the turn's and its place in it, so that a replay gives the same."""
        where = self.step if step is None else step
        entry_id = f"{self.turn:08d}.{len(self.entries)}"
        self.entries.append(Entry(entry_id, self.at, where, kind, subject, state, text, _plain(data)))
        self.changed = True


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in data.items() if v is not None}
