"""Push: tells an OTLP collector the metrics, the journal and the incidents of a run, in threads beside the loop.

The loop only says what it has shown and rings; it never waits. Metrics are the newest view's, every 15 s. Logs and
traces are read from the journal, and how far they were told stands in a file beside it: whoever comes after a crash
goes on there. What was on its way just then is told twice, by the same ids.
"""

import os
import time
from collections.abc import Callable, Sequence

from gyrostat.wire import RunDirectory
from gyrostat_agent.otlppush.bookmarks import Bookmarks
from gyrostat_agent.otlppush.entryload import EntryLoad, Seen
from gyrostat_agent.otlppush.lane import Lane
from gyrostat_agent.otlppush.metricload import MetricLoad
from gyrostat_agent.otlppush.pace import PACE, Pace
from gyrostat_agent.otlppush.target import read_headers, target
from gyrostat_exporters.metrics import Latest
from gyrostat_exporters.otlp.logs import Line, logs
from gyrostat_exporters.otlp.traces import traces
from gyrostat_exporters.spans import Span
from gyrostat_exporters.view import Exported
from gyrostat_rules.entries import Entry
from gyrostat_rules.state import State

_JOIN_SECONDS = 4.0


class OtlpPush:
    """Tells the collector at ``url``; raises SetupError where it, or the file of headers, cannot be used."""

    def __init__(
        self, url: str, run: RunDirectory, latest: Latest, say: Callable[[str], None], *,
        headers_file: str = "", insecure: bool = False, pace: Pace = PACE,
    ) -> None:  # fmt: skip
        where = target(url, insecure=insecure)
        if headers_file:
            read_headers(headers_file)
        self._seen: Seen | None = None
        marks, path = Bookmarks(run), os.path.join(run.agent, "journal.db")
        loads = (
            MetricLoad(latest, pace),
            EntryLoad("logs", path, marks, self._shown, pace, _line, logs),
            EntryLoad("traces", path, marks, self._shown, pace, _spans, traces),
        )
        self._lanes = [Lane(where, load, say, headers_file, pace) for load in loads]

    def look(self, state: State, *, news: bool, elsewhere: bool = False) -> None:
        """There is a newer view, of this state; returns at once.

        ``news``: the journal has new entries. ``elsewhere``: another agent of this run tells of its incidents.
        """
        news = news or self._seen is None
        births = {incident.id: incident.fired_at for incident in state.incidents}
        self._seen = Seen(state.run, state.turn, births, elsewhere)
        for lane in self._lanes if news else ():
            lane.bell.set()

    def counts(self) -> tuple[Exported, ...]:
        """How each signal fares."""
        return tuple(lane.counts() for lane in self._lanes)

    def close(self) -> None:
        """Tell what there is yet, for a few seconds at most, and end."""
        for lane in self._lanes:
            lane.end()
        until = time.monotonic() + _JOIN_SECONDS
        for lane in self._lanes:
            lane.thread.join(max(0.0, until - time.monotonic()))

    def _shown(self) -> Seen | None:
        return self._seen


def _line(entry: Entry, spans: Sequence[Span], place: tuple[int, int]) -> Sequence[Line]:
    return (Line(entry, *place),)


def _spans(entry: Entry, spans: Sequence[Span], place: tuple[int, int]) -> Sequence[Span]:
    return spans
