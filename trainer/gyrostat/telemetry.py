"""Telemetry: what one rank says about its steps. One frame and one write a step; never blocks, never raises.

What cannot be written is counted (``Telemetry.counts``) and shows to the reader as a gap in the sequence, one
number a record. A forked child says nothing. Values that lie on an accelerator are copied without waiting and
written one step late, under their own step.
"""

import os
import time
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from os import getpid
from time import time_ns
from typing import Any, NamedTuple

from gyrostat import tensors
from gyrostat.columns import PLAIN, Columns
from gyrostat.recordfile import RecordFileWriter, new_incarnation
from gyrostat.stream import Stream
from gyrostat.wire.frames import Kind, Role
from gyrostat.wire.layout import RUN_DIR, RUN_NAME, RunDirectory
from gyrostat.wire.messages import Ack, Exit, Hello, KnobState

_are_plain = PLAIN.issuperset
_LATE_MOST = 8  # records waiting for their device copies; one more is dropped and counted
_LOCK_SECONDS, _HELD_UP_MOST = 0.05, 20  # so often in a row, and telemetry is off
_CLOSE_SECONDS = 1.0


class Counts(NamedTuple):
    """What became of records and answers so far. ``fault`` says in words why the last one was not written, or ''."""

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
    and ``world`` default to RANK and WORLD_SIZE. ``units`` maps a series' name to its unit. Raises ValueError
    on a role that does not exist, and nothing ever after.
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
        root = os.path.abspath(os.fspath(checkpoint_root)) if checkpoint_root else ""
        self.run = run or os.environ.get(RUN_NAME, "") or os.path.basename(path)
        self.directory = RunDirectory(path)
        self.role, self.rank = role, _whole(rank, "RANK", 0)
        self.world = _whole(world, "WORLD_SIZE", 1)
        self.incarnation = new_incarnation(self.directory, role, self.rank)
        self.segment = 0
        self._pid = getpid()
        self._hello = Hello(self.run, role, self.rank, self.world, self.incarnation, 0, self._pid, checkpoint_root=root)
        self._file = RecordFileWriter(self.directory, role, self.rank, self.incarnation)
        self._columns = Columns(dict(units or {}))
        self._stream = Stream(self._file, Role.number(role), self.rank, self._columns, self._hello.encode())
        self._enabled = bool(path)
        self._lock = allocate_lock()
        self._late: deque[_LateRecord] = deque()
        self._lost: list[str] = []  # why, of records lost outside the lock; owned up to by the next one inside
        self._unreadable = 0

    # -- what a trainer calls ------------------------------------------------------------------------

    def record(self, /, step: int, *, expert_load: Any = None, **values: Any) -> None:
        """Say what this step came to. Floats, numpy and torch scalars; all tensors in one transfer.

        ``expert_load``: tokens routed to each expert, as integers of shape (experts,), (layers, experts) or
        (layers, loops, experts). Costs about 10 µs for 30 floats. Never raises.
        """
        if not self._enabled or self._pid != getpid():
            return
        try:
            if not self._lock.acquire(False) and not self._lock.acquire(True, _LOCK_SECONDS):
                self._held_up()
                return
            try:
                if expert_load is None and not self._lost and not self._late and _are_plain(map(type, values.values())):
                    self._stream.record(step, time_ns(), self.segment, values, b"")
                else:
                    self._record(step, expert_load, values)
            finally:
                self._lock.release()
        except Exception as error:  # a trainer must never die of its telemetry
            self._lost.append(f"step {step!r:.40}: {type(error).__name__}: {error}")

    def flush(self) -> None:
        """Write the records whose device copies have arrived by now; waits for none."""
        self._quietly(self._write_late)

    def close(self) -> None:
        """Say goodbye and close: a clean end, so that silence afterwards is not a stall.

        Waits for device copies under way, a second at most: a device that hangs must not hang the exit too.
        """
        end = time.monotonic() + _CLOSE_SECONDS
        while self._late and self._enabled and self._pid == getpid() and time.monotonic() < end:
            self.flush()
            time.sleep(0.001)
        self._quietly(self._say_goodbye)
        self._enabled = False

    @property
    def checkpoint_root(self) -> str:
        """Where this process says that its checkpoints lie, '' where it does not."""
        return self._hello.checkpoint_root

    @property
    def counts(self) -> Counts:
        """What became of the records so far."""
        if self._pid != getpid():
            self._file.forget()
        lost = list(self._lost)
        return Counts(
            written=self._stream.written,
            dropped=self._stream.dropped + len(lost),
            loads_dropped=self._stream.loads_dropped,
            unreadable=self._unreadable + self._columns.left_out,
            slow=self._file.slow,
            off=self._file.off or not self._enabled,
            fault=self._file.fault or (lost[-1] if lost else self._stream.fault),
        )

    # -- what Control and the supervisor call ---------------------------------------------------------

    def introduce(
        self, knobs: tuple[KnobState, ...], procedures: tuple[str, ...], last_directive: int, segment: int
    ) -> None:
        """Set what Hello says and say it again with the next frame. Never raises."""
        try:
            self._hello = self._hello._replace(
                knobs=knobs, procedures=procedures, last_directive=last_directive, segment=segment
            )
            self.segment = segment
            self._stream.hello = self._hello.encode()
        except Exception as error:  # a knob whose name or unit is no text: the Hello before it stands
            self._lost.append(f"Hello cannot be said: {error}")

    def say(self, message: "Ack | Exit | None" = None, step: int = -1) -> None:
        """Write Hello where it is due, then a message. Never raises."""
        self._quietly(lambda: self._say(message, step))

    # -- inside ---------------------------------------------------------------------------------------

    def _record(self, step: int, expert_load: Any, values: dict[str, Any]) -> None:
        if self._lost:
            self._own_up()
        if self._late:
            self._write_late()
        now = time_ns()
        read = tensors.read(values, expert_load)
        self._unreadable += read.unreadable
        if read.late is None and not self._late:
            self._stream.record(step, now, self.segment, read.values, read.load)
        elif len(self._late) < _LATE_MOST:  # behind the late ones, so that steps stay in order
            self._late.append(_LateRecord(step, now, self.segment, read))
        else:
            self._stream.drop(f"{_LATE_MOST} steps already wait for the device")

    def _write_late(self) -> None:
        """Write the records whose copies have arrived, oldest first; the others wait for a later step."""
        while self._late:
            step, now, segment, read = self._late[0]
            try:
                if read.late is not None and not read.late.arrived():
                    return
                self._late.popleft()
                values, load = read.late.collect() if read.late is not None else ({}, b"")
                self._stream.record(step, now, segment, {**read.values, **values}, load or read.load)
            except Exception as error:  # a device error is the trainer's to meet, not ours to raise
                if self._late and self._late[0].read is read:
                    self._late.popleft()
                self._stream.drop(f"step {step}: {error}")

    def _say(self, message: "Ack | Exit | None", step: int) -> None:
        now = time_ns()
        if message is None:
            self._stream.say_hello(now, self.segment)
            return
        kind = Kind.ACK if isinstance(message, Ack) else Kind.EXIT
        self._stream.write(kind, step, now, self.segment, message.encode())

    def _say_goodbye(self) -> None:
        for late in self._late:
            self._stream.drop(f"step {late.step}: the device did not answer")
        self._late.clear()
        self._stream.write(Kind.BYE, -1, time_ns(), self.segment, b"")
        self._file.close()

    def _held_up(self) -> None:
        """Count a record that did not get the lock; a thread that never gives it back must not cost 50 ms a step."""
        self._lost.append("another thread held telemetry up")
        if len(self._lost) >= _HELD_UP_MOST:
            self._enabled = False

    def _own_up(self) -> None:
        while self._lost:
            self._stream.drop(self._lost.pop(0))

    def _quietly(self, act: Callable[[], None]) -> None:
        if not self._enabled or self._pid != getpid():
            return
        try:
            if not self._lock.acquire(True, _LOCK_SECONDS):
                self._held_up()
                return
            try:
                act()
            finally:
                self._lock.release()
        except Exception as error:  # as in record()
            self._lost.append(f"{type(error).__name__}: {error}")


class _LateRecord(NamedTuple):
    step: int
    time: int
    segment: int
    read: tensors.Read


def _whole(given: int | None, variable: str, default: int) -> int:
    if given is not None:
        return given
    try:
        return int(os.environ.get(variable, default))
    except ValueError:
        return default
