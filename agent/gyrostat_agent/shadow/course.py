"""Course: what is known of a run's incidents while its journal is read: who leads them, what fires, what was planned.

Fed with entries alone, in their order: those are kept for as long as the journal is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gyrostat_rules.alerts import FIRING, RESOLVED
from gyrostat_rules.arming import leader
from gyrostat_rules.causes import REQUEST
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.remedies import GO_BACK
from gyrostat_rules.snapshot import from_plain
from gyrostat_rules.state import Incident

_JOINED = re.compile(r"(?P<key>\S.*?\}) (?P<how>leads|joins): ")
_TARGET = re.compile(r"\bstep (\d+) chosen\b")
_OVER = ("resolved", "stopped")


@dataclass(slots=True)
class Led:
    """An incident as its entries tell it. ``remedy`` is planned; ``target``: the step it would go back to, if any."""

    rule: str = ""
    kind: str = ""
    state: str = ""
    alerts: list[str] = field(default_factory=list)
    remedy: str = ""
    target: int | None = None

    @property
    def own(self) -> set[str]:
        """The alerts of the rule that leads it."""
        return {key for key in self.alerts if key.partition("{")[0] == self.rule}


class Course:
    """The incidents by their ids, and the alerts that fire."""

    def __init__(self) -> None:
        self.incidents: dict[str, Led] = {}
        self.firing: set[str] = set()

    @property
    def healthy(self) -> bool:
        """True where no incident is open, and no alert of one fires; what a person asked for is no illness."""
        ill = (led for led in self.incidents.values() if led.kind != REQUEST)
        return not any(led.state not in _OVER or not self.firing.isdisjoint(led.alerts) for led in ill)

    def take(self, entry: Entry) -> None:
        """Take in an entry."""
        if entry.kind == EntryKind.ALERT and entry.state in (FIRING, RESOLVED):
            (self.firing.add if entry.state == FIRING else self.firing.discard)(entry.subject)
        elif entry.kind == EntryKind.INCIDENT:
            self._incident(entry)
        elif entry.kind == EntryKind.ACTION and entry.state == "planned":
            self._planned(entry)

    def take_ledger(self, written: Mapping[str, Any]) -> None:
        """Incidents of a pod that is gone: their first entries stand in a journal that is gone too."""
        try:
            found = from_plain(list[Incident], written.get("incidents", []))
        except (AttributeError, KeyError, TypeError, ValueError, StopIteration):
            return  # the agent did not believe it either
        for one in found:
            led = Led(leader(one), one.kind, one.state, list(one.alerts))
            self.incidents.setdefault(one.id, led)

    def _incident(self, entry: Entry) -> None:
        led = self.incidents.setdefault(entry.subject, Led())
        led.state, led.kind = entry.state, str(entry.data.get("incident_kind", led.kind))
        if alerts := entry.data.get("alerts"):
            led.alerts = [*led.alerts, *map(str, alerts)]
            led.rule = led.rule or led.alerts[0].partition("{")[0]
        elif joined := _JOINED.match(entry.text):
            led.alerts.append(joined["key"])
            if joined["how"] == "leads":
                led.rule = joined["key"].partition("{")[0]

    def _planned(self, entry: Entry) -> None:
        led = self.incidents.setdefault(str(entry.data.get("incident", "")), Led())
        led.remedy = str(entry.data.get("remedy", ""))
        found = _TARGET.search(entry.text)
        led.target = int(found[1]) if found else None

    def cost(self, led: Led, remedy: str, step: int) -> int | None:
        """Steps that this action would have undone at ``step``; None where it is not known."""
        if remedy not in GO_BACK:
            return 0
        return max(0, step - led.target) if led.remedy == remedy and led.target is not None else None
