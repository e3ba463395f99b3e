"""Bystander: a second source of what one process tells: a log beside the SDK, two logs of one run.

They are read at their own pace. A row that comes late is no jump back: it joins what is known of its step. Where the
process has an SDK, that leads and a log only adds to it; of several logs, whichever tells the newest step leads.
"""

import math

from gyrostat.wire import Record
from gyrostat_rules.state import Process, State, Window

_LOG = "log-"  # begins the incarnation of what is read from a log: log-PATH.LIFE
_MOST = 64  # sources of one process that are told apart
_SERIES = 2048  # as of its other records


def leads(process: Process, record: Record) -> bool:
    """False for a record of a bystander: it joins what is known and moves nothing. Remembers how far each has come."""
    source, main = _source(record.incarnation), _source(process.incarnation)
    come = process.sources.get(source, -1)
    if source in process.sources or len(process.sources) < _MOST:
        process.sources[source] = record.step
    if source == main or not process.incarnation:
        return True
    if not main.startswith(_LOG):
        return not source.startswith(_LOG)
    return record.step > process.last_step or come >= record.step


def follow(process: Process, record: Record) -> None:
    """A log that leads names the life; where the run went back, what the others told of those steps is undone."""
    if process.incarnation.startswith(_LOG):
        process.incarnation = record.incarnation
    if record.step <= process.last_step:
        process.sources = {source: min(step, record.step - 1) for source, step in process.sources.items()}
        process.sources[_source(record.incarnation)] = record.step


def join(state: State, key: str, record: Record) -> None:
    """Put a bystander's values beside those of their step."""
    windows = state.windows.setdefault(key, {})
    for name, value in record.values.items():
        if name in windows or len(windows) < _SERIES:
            windows.setdefault(name, Window()).put(record.step, value)
    recent = state.recent.get(key, [])
    if recent and recent[-1].step == record.step:
        recent[-1] = _joined(recent[-1], record)
    bucket = state.buckets.setdefault(record.step, {})
    bucket[key] = _joined(bucket[key], record) if key in bucket else record


def _joined(known: Record, more: Record) -> Record:
    odd = {name: value for name, value in more.values.items() if not math.isfinite(value)}
    return known._replace(values={**more.values, **known.values, **odd}, load=known.load or more.load)


def _source(incarnation: str) -> str:
    """The same for all lives of one log."""
    return incarnation.partition(".")[0] if incarnation.startswith(_LOG) else incarnation
