"""Findings: what an examination of logs came to, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

INFO, WARNING, CRITICAL = "info", "warning", "critical"


class Finding(NamedTuple):
    """One fault. ``kind`` is an incident's, or what a rule or an error line is about; steps are -1 where unknown.

    ``action``: what would have been done; ``checks``: the next things to look at; ``times``: how often it was found.
    """

    kind: str
    severity: str
    onset_step: int
    fired_step: int
    why: str
    action: str = ""
    checks: tuple[str, ...] = ()
    runbook: str = ""
    times: int = 1


class Source(NamedTuple):
    """A file as it was read. ``lines`` were seen, ``understood`` of them said something; ``error``: why it was not.

    ``names``: the trainer's own -> canonical, '' for none; ``cut``: lines too long to be looked at whole.
    """

    path: str
    form: str
    lines: int = 0
    understood: int = 0
    cut: int = 0
    names: Mapping[str, str] = {}
    error: str = ""


class Rest(NamedTuple):
    """Rules that were switched off, each with the series that it wants."""

    alert: str
    wants: str


@dataclass(slots=True)
class Findings:
    """All of it. ``curves``: series -> steps and values, thinned for drawing; ``merged``: steps looked at as one."""

    sources: list[Source] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    steps: int = 0
    first_step: int = -1
    last_step: int = -1
    segments: int = 0
    merged: int = 1
    off: list[Rest] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    curves: dict[str, tuple[list[int], list[float]]] = field(default_factory=dict)
    wasted_steps: int = 0
    wasted_seconds: float | None = None

    @property
    def ill(self) -> bool:
        """True where something grave was found."""
        return any(one.severity == CRITICAL for one in self.found)

    @property
    def read(self) -> bool:
        """True where any file gave a step."""
        return self.steps > 0
