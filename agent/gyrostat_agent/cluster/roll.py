"""Roll: which nodes forward, and which have not been heard of for too long. Called by ``member``; no clock of its own.

A node that is not heard has not failed: its agent may be cut off and its trainer go on. So nobody takes its ranks for
dead, and the one who decides says that it does not see them.
"""

import math
from collections.abc import Collection, Iterator

from gyrostat_rules.inputs import SourceState, SourceWord
from gyrostat_rules.standing import HEARD, NODE

SILENT_SECONDS = 12.0  # four signs of life


class Roll:
    """By monotonic seconds, as given."""

    def __init__(self) -> None:
        self._heard: dict[str, float] = {}
        self._told: dict[str, str] = {}

    @property
    def missing(self) -> int:
        """Nodes that are not heard now."""
        return sum(word == SourceWord.STALE for word in self._told.values())

    @property
    def heard(self) -> int:
        """Nodes that are."""
        return len(self._heard) - self.missing

    def expect(self, nodes: Collection[str], now: float) -> None:
        """These have ranks of the run, by what was forwarded before: they are waited for from now on."""
        for node in nodes:
            self._heard.setdefault(node, now)

    def hear(self, node: str, now: float) -> None:
        """A parcel of this node is here."""
        self._heard[node] = now

    def leave(self, node: str) -> None:
        """Its agent has ended in order: its ranks, where they go on, are not seen from now on."""
        self._heard[node] = -math.inf

    def words(self, nodes: Collection[str], now: float) -> Iterator[SourceState]:
        """What has changed. ``nodes`` are those that have ranks now: others are missed by nobody."""
        for node, at in sorted(self._heard.items()):
            silent = now - at > SILENT_SECONDS
            if silent and node not in nodes:
                del self._heard[node]
                if node in self._told:
                    del self._told[node]
                    yield SourceState(f"{NODE}{node}", SourceWord.FRESH, "no rank of the run is on it any more")
                continue
            word = SourceWord.STALE if silent else SourceWord.FRESH
            if self._told.get(node) != word:
                self._told[node] = word
                since = "has ended" if at == -math.inf else f"has not been heard for {SILENT_SECONDS:.0f} s"
                yield SourceState(
                    f"{NODE}{node}", word, f"its agent {since}: its ranks are not seen" if silent else HEARD
                )

    def forget(self) -> None:
        """This agent decides no more."""
        self._heard.clear()
        self._told.clear()
