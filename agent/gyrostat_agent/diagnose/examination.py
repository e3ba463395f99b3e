"""Examination: logs from disk, read, judged and summed up. Constant memory, whatever their length."""

import heapq
import math
import os
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from gyrostat.wire import Record
from gyrostat_agent.diagnose import advice
from gyrostat_agent.diagnose.curves import Curves
from gyrostat_agent.diagnose.eventlog import LIFE, EventLog
from gyrostat_agent.diagnose.findings import CRITICAL, INFO, WARNING, Finding, Findings, Rest, Source
from gyrostat_agent.diagnose.judge import Judge
from gyrostat_agent.diagnose.thinning import MOST, thinned
from gyrostat_agent.sources.logs import faultlines
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.gathered import Found
from gyrostat_agent.sources.logs.logfile import CHUNK, LogError, LogFile
from gyrostat_agent.sources.logs.said import Fault, Note
from gyrostat_agent.sources.logs.table import FORMATS, GENERIC
from gyrostat_agent.sources.tensorboard import is_events
from gyrostat_rules.needs import Heard
from gyrostat_rules.wants import off

_SAMPLE = 4 * CHUNK  # bytes by which it is judged how many records a file holds
_ORDER = (CRITICAL, WARNING, INFO)
_USUAL = 64  # newest step times
Progress = Callable[[int], None]


class Examination:
    """``form`` None: each file's format is recognised. ``progress`` is told how many bytes were read."""

    def __init__(self, text: str, digest: str, form: Format | None = None, progress: Progress | None = None) -> None:
        self._judge = Judge(text, digest)
        self._form, self._progress = form, progress or (lambda count: None)
        self._curves = Curves()
        self._said = Findings()
        self._faults: dict[str, Finding] = {}
        self._lines = False
        self._times: list[float] = []
        self._clock: list[tuple[int, float]] = []
        self._segment = -1

    def examine(self, paths: Sequence[str]) -> Findings:
        """Read all files, step by step beside each other, and say what they come to."""
        merged = self._merging([path for path in paths if not is_events(path)])
        self._said.merged = merged
        streams = [self._records(path) for path in paths]
        both = heapq.merge(*streams, key=lambda r: (r.segment, r.step)) if len(streams) > 1 else iter(streams[0])
        self._judge.take(thinned(self._seen(both), merged))
        self._sum_up()
        return self._said

    def _records(self, path: str) -> Iterator[Record]:
        if is_events(path):
            log = EventLog(path)
            yield from log.records(self._progress)
            self._said.sources.append(log.source())
            return
        yield from self._of_log(LogFile(path, FORMATS, GENERIC, self._form, faults=faultlines.find))

    def _of_log(self, file: LogFile) -> Iterator[Record]:
        error = ""
        try:
            while True:
                before = file.offset
                for found in file.read(last=True):
                    if isinstance(found, Record):
                        yield found._replace(incarnation=LIFE)
                    else:
                        self._note(found)
                self._progress(file.offset - before)
                if file.offset == before:
                    break
            self._lines = True
        except LogError as why:
            error = str(why)
        finally:
            file.close()
        log = file.log
        names = {name: known.canonical for name, known in log.names.known.items()} if log else {}
        form, lines, understood, cut = (log.form.name, log.lines, log.understood, log.cut) if log else ("", 0, 0, 0)
        self._said.sources.append(Source(file.path, form, lines, understood, cut, names, error))

    def _merging(self, paths: Sequence[str]) -> int:
        """How many steps in a row are looked at as one: by the records in the first bytes of each file."""
        expected = 0.0
        for path in paths:
            sample = LogFile(path, FORMATS, GENERIC, self._form)
            try:
                size = os.path.getsize(path)
                if size > _SAMPLE:
                    count = sum(isinstance(found, Record) for found in sample.read(_SAMPLE, last=True))
                    expected += count * size / max(1, sample.offset)
            except (LogError, OSError):  # told where it is read
                continue
            finally:
                sample.close()
        return max(1, math.ceil(expected / MOST))

    def _seen(self, records: Iterator[Record]) -> Iterator[Record]:
        """Pass records on, remembering what the summary needs of them."""
        said, newest = self._said, (-1, -1)
        for record in records:
            said.steps += (record.segment, record.step) != newest  # of several files, one step
            newest = (record.segment, record.step)
            said.first_step = record.step if said.first_step < 0 else min(said.first_step, record.step)
            said.last_step = max(said.last_step, record.step)
            if record.segment != self._segment:
                self._segment, said.segments = record.segment, said.segments + 1
            if (seconds := record.values.get("step_time")) is not None and math.isfinite(seconds):
                self._times = [*self._times[1 - _USUAL :], seconds]
            self._curves.take(record.step, record.values)
            yield record

    def _note(self, found: "Found") -> None:
        if isinstance(found, Note):
            if len(self._said.notes) < 50 and found.text:
                self._said.notes.append(found.text)
        elif isinstance(found, Fault):
            self._fault(found)

    def _fault(self, fault: Fault) -> None:
        """An error line is a finding at the newest step that was told before it."""
        step = self._said.last_step
        if (known := self._faults.get(fault.kind)) is not None:
            self._faults[fault.kind] = known._replace(times=known.times + 1)
            return
        severity = faultlines.SEVERITIES[fault.kind]
        done = advice.action(self._judge.pack, fault.kind) or "ask a person"
        self._faults[fault.kind] = Finding(
            fault.kind, severity, step, step, fault.why, done, faultlines.CHECKS.get(fault.kind, ())
        )

    def _sum_up(self) -> None:
        said = self._said
        found = [*self._judge.findings(), *self._faults.values()]
        said.found = sorted(found, key=lambda one: (_ORDER.index(one.severity), one.onset_step))  # the gravest first
        said.off = list(self._switched_off())
        said.curves = self._curves.drawn()
        grave = [one.onset_step for one in said.found if one.severity == CRITICAL]
        if grave and said.last_step >= 0:
            said.wasted_steps = max(0, said.last_step - max(min(grave), said.first_step) + 1)
            said.wasted_seconds = median(self._times) * said.wasted_steps if self._times else None

    def _switched_off(self) -> Iterator[Rest]:
        """Rules that had nothing to look at: silence must never read as clean. A log shows no process live or die."""
        for rule in off(self._judge.pack.rules, Heard(self._judge.told(), lines=self._lines)):
            yield Rest(*rule)
