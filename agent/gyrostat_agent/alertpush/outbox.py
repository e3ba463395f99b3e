"""Outbox: what one Alertmanager took and what waits for it, an alert each: the newest state wins. No I/O, no clock.

Bounded: there are as many alerts as a view has cases, and few that are over and could not be told yet.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from gyrostat_exporters.alertmanager import Alert

MOST = 512
_BATCH = 128

Key: TypeAlias = tuple[tuple[str, str], ...]


class _Taken(NamedTuple):
    """An alert as it was last taken (or refused), and when."""

    alert: Alert
    at: float


class Outbox:
    """Alerts by their labels. Times are seconds of one clock that never goes back; ``resend`` is how often what goes on
    is told again."""

    def __init__(self, resend: float) -> None:
        self._resend = resend
        self._taken: dict[Key, _Taken] = {}
        self._waiting: dict[Key, Alert] = {}
        self.sent = self.failed = self.dropped = 0

    def look(self, wanted: Sequence[Alert], now: float, clock: float) -> None:
        """Take in what should be known now; ``clock`` (Unix seconds) is when what has gone without a word ended."""
        keys = {one.labels for one in wanted}
        for one in wanted:
            if one.labels in self._waiting or self._is_due(one, now):
                self._waiting[one.labels] = one
        self._end_what_was_renamed(wanted, keys, clock)
        for key in [k for k, one in self._waiting.items() if one.over is None and k not in keys]:
            del self._waiting[key]  # nobody has heard of it, or its time runs out there by itself
        for key in list(self._waiting)[:-MOST]:
            del self._waiting[key]
            self.dropped += 1

    def batch(self) -> tuple[Alert, ...]:
        """What to send next, the longest waiting first."""
        return tuple(self._waiting.values())[:_BATCH]

    def standing(self) -> tuple[Alert, ...]:
        """All that goes on, waiting or not."""
        known = {key: taken.alert for key, taken in self._taken.items()} | self._waiting
        return tuple(one for one in known.values() if one.over is None)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def took(self, given: Iterable[Alert], now: float) -> None:
        """They were taken."""
        self._settle(given, now)

    def refused(self, given: Iterable[Alert], now: float) -> None:
        """They were not, and would not be the next time: nothing more of them until they change or are due again."""
        self.dropped += self._settle(given, now, counts=False)

    def missed(self, given: Sequence[Alert]) -> None:
        """They did not arrive; they go on waiting."""
        self.failed += len(given)

    def _settle(self, given: Iterable[Alert], now: float, *, counts: bool = True) -> int:
        many = 0
        for one in given:
            many += 1
            self._taken[one.labels] = _Taken(one, now)
            if self._waiting.get(one.labels) is one:
                del self._waiting[one.labels]
        self.sent += many if counts else 0
        for key in [k for k, taken in self._taken.items() if taken.alert.over is not None][:-MOST]:
            del self._taken[key]
        return many

    def _is_due(self, one: Alert, now: float) -> bool:
        taken = self._taken.get(one.labels)
        if taken is None:
            return True
        if one.over is not None:
            return taken.alert.over is None
        return taken.alert.over is not None or taken.alert.mark != one.mark or now - taken.at >= self._resend

    def _end_what_was_renamed(self, wanted: Sequence[Alert], keys: set[Key], clock: float) -> None:
        """An incident that another rule leads by now, or that no longer waits for a person, is over under its old name.

        What is gone altogether was ended by nobody: it is left to its time.
        """
        told = {one.incident for one in wanted} - {""}
        for key in [k for k, taken in self._taken.items() if taken.alert.over is None and k not in keys]:
            gone = self._taken.pop(key).alert
            if gone.incident in told:
                self._waiting[key] = gone._replace(over=clock)
