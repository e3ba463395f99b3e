"""Sources: whatever can be read about a run, turned into the engine's items. A source never waits."""

from collections.abc import Mapping
from typing import Protocol

from gyrostat_rules.inputs import Item


class Source(Protocol):
    """Something that can be drained."""

    def drain(self) -> list[Item]:
        """What is new since the last call, in order. Never blocks, never raises on what it reads."""

    def offsets(self) -> Mapping[str, int]:
        """How far it has read, by name: committed together with what was read."""
