"""Telemetry: what one rank says about its steps. One frame and one write a step; never blocks, never raises.

What cannot be written is counted (``Telemetry.counts``) and shows to the reader as a gap in the sequence.
A forked child says nothing. Values that lie on an accelerator are copied without waiting and written one
step late, under their own step.
"""

import os
import threading
import time
from collections import deque
from typing import Any, NamedTuple

from gyrostat import tensors
from gyrostat.recordfile import RecordFileWriter, new_incarnation
from gyrostat.wire.frames import Frame, Kind, Role, encode
from gyrostat.wire.layout import RUN_DIR, RUN_NAME, RunDirectory
from gyrostat.wire.messages import Ack, Exit, Hello, KnobState
from gyrostat.wire.records import MAX_COLUMNS, Column, Schema

_LATE_MOST = 8  # device copies under way at once; one more is dropped and counted
_LOAD_ROOM, _SCALAR_ROOM = 0.5, 0.02  # share of the cap free below which counts, then records, are dropped
_LOCK_SECONDS = 0.05


class Counts(NamedTuple):
    """What became of the records so far. ``fault`` says in words why the last one was not written, or ''."""

    written: int
    dropped: int
    loads_dropped: int
    unreadable: int
    slow: int
    off: bool
    fault: str


class Telemetry:
    """Writes one rank's records to the run directory.

    ``run_dir`` defaults to the environment's GYROSTAT_RUN_DIR; without either nothing is written. ``rank``
    and ``world`` default to RANK and WORLD_SIZE. ``units`` maps a series' name to its unit.
    """

    def __init__(
        self,
        run_dir: str | os.PathLike[str] | None = None,
        *,
        run: str = "",
        role: str = "trainer",
        rank: int | None = None,
        world: int | None = None,
        checkpoint_root: str | os.PathLike[str] = "",
        units: dict[str, str] | None = None,
    ) -> None:
        path = os.fspath(run_dir) if run_dir is not None else os.environ.get(RUN_DIR, "")
        path = os.path.abspath(path) if path else ""
        self.run = run or os.environ.get(RUN_NAME, "") or os.path.basename(path)
        self.directory = RunDirectory(path)
        self.role, self.rank = role, _whole(rank, "RANK", 0)
        self.world = _whole(world, "WORLD_SIZE", 1)
        self.incarnation = new_incarnation()
        self.segment = 0
        self._role_number = Role.number(role)
        self._hello = Hello(
            self.run, role, self.rank, self.world, self.incarnation, 0, os.getpid(),
            checkpoint_root=os.path.abspath(os.fspath(checkpoint_root)) if checkpoint_root else "",
        )  # fmt: skip
        self._file = RecordFileWriter(self.directory, role, self.rank, self.incarnation)
        self._enabled = bool(path)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._units = dict(units or {})
        self._columns: dict[str, int] = {}
        self._schema = Schema(0, ())
        self._layout = self._schema.layout()
        self._sequence = 0
        self._said_hello = self._said_schema = False
        self._late: deque[_LateRecord] = deque()
        self._written = self._dropped = self._loads_dropped = self._unreadable = 0

    # -- what a trainer calls ------------------------------------------------------------------------

    def record(self, step: int, *, expert_load: Any = None, **values: Any) -> None:
        """Say what this step came to. Floats, numpy and torch scalars; all tensors in one transfer.

        ``expert_load``: tokens routed to each expert, as integers of shape (experts,), (layers, experts) or
        (layers, loops, experts). Costs about 10 µs for 30 floats. Never raises.
        """
        if not self._enabled or not self._mine():
            return
        try:
            if self._lock.acquire(timeout=_LOCK_SECONDS):
                try:
                    self._record(step, expert_load, values)
                finally:
                    self._lock.release()
            else:
                self._dropped += 1
        except Exception:  # a trainer must never die of its telemetry
            self._dropped += 1
            self._sequence += 1

    def flush(self) -> None:
        """Write the records whose device copies have arrived by now; waits for none."""
        self._quietly(self._write_late)

    def close(self) -> None:
        """Say goodbye and close: a clean end, so that silence afterwards is not a stall."""
        if self._enabled and self._mine():
            self._quietly(self._say_goodbye)
        self._enabled = False

    @property
    def counts(self) -> Counts:
        """What became of the records so far."""
        return Counts(
            self._written, self._dropped, self._loads_dropped, self._unreadable,
            self._file.slow, self._file.off or not self._enabled, self._file.fault,
        )  # fmt: skip

    # -- what Control and the supervisor call ---------------------------------------------------------

    def introduce(
        self, knobs: tuple[KnobState, ...], procedures: tuple[str, ...], last_directive: int, segment: int
    ) -> None:
        """Set what Hello says and say it again with the next frame."""
        self.segment = segment
        self._hello = self._hello._replace(
            knobs=knobs, procedures=procedures, last_directive=last_directive, segment=segment
        )
        self._said_hello = False

    def say(self, message: "Ack | Exit | None" = None, step: int = -1) -> None:
        """Write Hello where it is due, then a message. Never raises."""
        if self._enabled and self._mine():
            self._quietly(lambda: self._say(message, step))

    # -- inside ---------------------------------------------------------------------------------------

    def _record(self, step: int, expert_load: Any, values: dict[str, Any]) -> None:
        self._write_late()
        now = time.time_ns()
        read = tensors.read(values, expert_load)
        self._unreadable += read.unreadable
        if read.late is None:
            self._write_record(int(step), now, read.values, read.load)
        elif len(self._late) < _LATE_MOST:
            self._late.append(_LateRecord(int(step), now, read))
        else:
            self._dropped += 1
            self._sequence += 1

    def _write_late(self) -> None:
        """Write the records whose copies have arrived, oldest first; the others wait for a later step."""
        while self._late and (late := self._late[0]).read.late is not None and late.read.late.arrived():
            self._late.popleft()
            values, load = late.read.late.collect()
            self._write_record(late.step, late.time, {**late.read.values, **values}, load or late.read.load)

    def _write_record(self, step: int, now: int, values: dict[str, float], load: bytes) -> None:
        if values.keys() - self._columns.keys():
            self._grow(values)
        row = [0.0] * len(self._columns)
        mask = 0
        columns = self._columns
        for name, value in values.items():
            if (i := columns.get(name)) is not None:
                row[i] = value
                mask |= 1 << i
        room = self._file.room()
        if load and room < _LOAD_ROOM:
            load = b""
            self._loads_dropped += 1
        if room < _SCALAR_ROOM:
            self._dropped += 1
            self._sequence += 1
            self._file.ready()  # looks at the folder now and then: room may have come back
            return
        body = self._layout.pack(mask.to_bytes((len(row) + 7) // 8, "little"), *row)
        self._write(Kind.RECORD, step, now, body, load)

    def _write(self, kind: int, step: int, now: int, body: bytes, payload: bytes = b"") -> None:
        """Write one frame, behind the Hello and the schema that its reader still needs."""
        if not self._file.ready():
            self._sequence += 1
            self._dropped += 1
            return
        if self._file.began():
            self._said_hello = self._said_schema = False
        frames = self._preamble(now)
        frames += self._frame(kind, step, now, body, payload)
        if self._file.write(frames):
            self._said_hello = self._said_schema = True
            self._written += 1
        else:
            self._dropped += 1

    def _preamble(self, now: int) -> bytearray:
        out = bytearray()
        if not self._said_hello:
            out += self._frame(Kind.HELLO, -1, now, self._hello.encode())
        if self._columns and not self._said_schema:
            out += self._frame(Kind.SCHEMA, -1, now, self._schema.encode())
        return out

    def _frame(self, kind: int, step: int, now: int, body: bytes, payload: bytes = b"") -> bytearray:
        self._sequence += 1
        return encode(
            Frame(kind, self._role_number, self.rank, self.segment, self._schema.number, self._sequence, step, now, body),
            payload,
        )

    def _grow(self, values: dict[str, float]) -> None:
        """Add the new names as columns, under a new schema number."""
        for name in values:
            if name not in self._columns:
                if len(self._columns) >= MAX_COLUMNS:
                    self._unreadable += 1
                    continue
                self._columns[name] = len(self._columns)
        columns = tuple(Column(name, self._units.get(name, "")) for name in self._columns)
        if columns != self._schema.columns:
            self._schema = Schema(self._schema.number + 1, columns)
            self._layout = self._schema.layout()
            self._said_schema = False

    def _say(self, message: "Ack | Exit | None", step: int) -> None:
        now = time.time_ns()
        if message is not None:
            self._write(Kind.ACK if isinstance(message, Ack) else Kind.EXIT, step, now, message.encode())
        elif not self._said_hello and self._file.ready():
            self._file.began()
            self._said_hello = self._said_schema = self._file.write(self._preamble(now))

    def _say_goodbye(self) -> None:
        for late in self._late:
            if late.read.late is not None:
                late.read.late.wait()
        self._write_late()
        self._write(Kind.BYE, -1, time.time_ns(), b"")
        self._file.close()

    def _mine(self) -> bool:
        """False in a forked child, which must not write into its parent's file."""
        if self._pid == os.getpid():
            return True
        self._enabled = False
        self._file.forget()
        self._lock = threading.Lock()
        return False

    def _quietly(self, act: Any) -> None:
        try:
            if self._lock.acquire(timeout=_LOCK_SECONDS):
                try:
                    act()
                finally:
                    self._lock.release()
            else:
                self._dropped += 1
        except Exception:  # as in record()
            self._dropped += 1


class _LateRecord(NamedTuple):
    step: int
    time: int
    read: tensors.Read


def _whole(given: int | None, variable: str, default: int) -> int:
    if given is not None:
        return given
    try:
        return int(os.environ.get(variable, default))
    except ValueError:
        return default
