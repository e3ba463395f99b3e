"""Judge: the rules over the records of a log, and what they found, folded into findings."""

import re
from collections.abc import Iterable

from gyrostat.wire import Record
from gyrostat_agent.diagnose import advice
from gyrostat_agent.diagnose.findings import CRITICAL, INFO, Finding
from gyrostat_rules.causes import DIVERGENCE
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import Batch, Item, Pack
from gyrostat_rules.packfile import parse

_AT_ONCE = 32  # records a batch: what an engine does once an input is then done once for so many


class Judge:
    """Feeds an engine and keeps the findings. ``text`` is a rule pack's, ``digest`` its name."""

    def __init__(self, text: str, digest: str) -> None:
        self.pack = parse(text)
        self._engine = Engine()
        self._rules = {rule.alert: rule for rule in self.pack.rules}
        self._found: dict[tuple[str, str], Finding] = {}
        self._waiting: list[Item] = []
        self._at = 0.0
        self._engine.feed(Pack(0.0, digest, text))

    def take(self, records: Iterable[Record]) -> None:
        """Judge records, in order."""
        for record in records:
            self._waiting.append(record)
            self._at = max(self._at, record.time)
            if len(self._waiting) >= _AT_ONCE:
                self._feed()

    def findings(self) -> list[Finding]:
        """What was found, in the order in which it was; a warning of what turned out grave says nothing more."""
        self._feed()
        return [f for (kind, word), f in self._found.items() if word == CRITICAL or (kind, CRITICAL) not in self._found]

    def told(self) -> frozenset[str]:
        """Names of all series that were told or made of expert counts, ever: a past log is judged as a whole."""
        self._feed()
        return frozenset().union(*self._engine.state.windows.values())

    def _feed(self) -> None:
        if self._waiting:
            for entry in self._engine.feed(Batch(self._at, tuple(self._waiting))):
                self._note(entry)
        self._waiting = []

    def _note(self, entry: Entry) -> None:
        if entry.kind == EntryKind.INCIDENT and "evidence" in entry.data:
            self._add(str(entry.data["incident_kind"]), CRITICAL, entry, str(entry.data.get("runbook", "")))
        elif entry.kind == EntryKind.INCIDENT and " leads: " in entry.text:
            self._lead(entry)
        elif entry.kind == EntryKind.ALERT and entry.state == "firing" and not entry.data.get("muted_by"):
            rule = self._rules[entry.text.partition(" ")[0]]
            if not rule.incident and rule.severity != INFO:
                self._add(rule.joins or _spelled(rule.alert), rule.severity, entry, rule.runbook_url)

    def _add(self, kind: str, severity: str, entry: Entry, runbook: str) -> None:
        key = (kind, severity)
        if key in self._found:
            self._found[key] = self._found[key]._replace(times=self._found[key].times + 1)
            return
        why = entry.text.partition(": ")[2] or entry.text
        onset, fired = int(entry.data.get("onset", entry.step)), int(entry.data.get("fired_step", entry.step))
        done = advice.action(self.pack, kind) if severity == CRITICAL else ""
        self._found[key] = Finding(kind, severity, onset, fired, why, done, advice.checks(runbook), runbook)

    def _lead(self, entry: Entry) -> None:
        """A graver cause leads an incident that was found already: it is called by that, and looked into as that."""
        kind, onset = str(entry.data["incident_kind"]), int(entry.data.get("onset", entry.step))
        grave = [key for key in self._found if key[1] == CRITICAL]
        if not grave or (kind, CRITICAL) in self._found:
            return
        found = self._found.pop(grave[-1])
        rule = self._rules.get(entry.text.partition("{")[0])
        self._found[kind, CRITICAL] = found._replace(
            kind=kind, onset_step=min(onset, found.onset_step),
            why=f"{found.why}; and {entry.text.partition(' leads: ')[2]}",
            action=advice.action(self.pack, kind, harmed=found.kind == DIVERGENCE),
            checks=advice.checks(rule.runbook_url) if rule else found.checks, runbook=rule.runbook_url if rule else "",
        )  # fmt: skip


def _spelled(alert: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", alert).lower()
