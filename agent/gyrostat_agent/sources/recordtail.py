"""RecordTail: one record file followed by offset, its frames turned into items.

Called by RecordFiles alone. It never keeps bytes that it has not used up: a write that the disk cut short is taken
back by its writer, so what lies behind ``offset`` is read anew each time.
"""

import contextlib
import os
import struct
from typing import NamedTuple

from gyrostat.wire import Ack, Exit, Frame, Hello, Kind, MessageError, RecordFile, Role, Schema, scan
from gyrostat.wire.records import decode_record
from gyrostat_rules.inputs import Answer, Died, Ended, Item, SourceState, SourceWord

_CHUNK = 1 << 20
_MOST_CHUNK = 65 << 20  # a frame's largest body and its header
_BATCH = 4 << 20  # bytes of one file in one pass, so that a backlog cannot starve the other ranks


class Told(NamedTuple):
    """An item, and when its writer wrote it (Unix ns): what several files say is put in order by that."""

    time: int
    item: Item


class RecordTail:
    """One file as far as it has been read. ``at_end`` is true where all that is whole has been read."""

    def __init__(self, file: RecordFile, fd: int, offset: int, sequence: int) -> None:
        self.file, self.offset, self.sequence = file, 0, sequence
        self.damaged = self.missing = self.unknown = 0
        self.foreign = 0
        self.at_end = False
        self.hello: Told | None = None  # the newest one in front of ``offset``
        self._fd = fd
        self._chunk = _CHUNK
        self._time = 0
        self._schemas: dict[int, tuple[Schema, struct.Struct]] = {}
        if offset:
            self._learn(offset)
            self.offset = offset

    @property
    def writer(self) -> tuple[str, int, str]:
        """Whose sequence numbers the file holds."""
        return self.file.role, self.file.rank, self.file.incarnation

    def used_up(self) -> bool:
        """True where nothing lies behind what has been read."""
        return self.offset >= os.fstat(self._fd).st_size

    def read(self) -> list[Told]:
        """What the file has gained, up to a bound; the rest waits for the next pass."""
        told: list[Told] = []
        began, self.at_end = self.offset, False
        while self.offset - began < _BATCH:
            data = os.pread(self._fd, self._chunk, self.offset)
            if not data and self.offset > os.fstat(self._fd).st_size:
                told.append(self._note(SourceWord.DAMAGED, "the file was cut short by somebody; read from its start"))
                began = self.offset = 0
                continue
            found = scan(data) if not self.foreign else None
            if not data or found is None:
                self.at_end = True
                break
            told += self._take(found.frames)
            told += self._faults(found.damaged, found.foreign)
            self.offset += found.consumed
            if not found.consumed and len(data) == self._chunk < _MOST_CHUNK:
                self._chunk = min(_MOST_CHUNK, 8 * self._chunk)  # one frame larger than the chunk
            elif len(data) < self._chunk or not found.consumed:
                self.at_end = True
                break
        return told

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def _learn(self, upto: int) -> None:
        """Read the schemas of what was committed before: the frames behind it need them. And who spoke."""
        at = 0
        while at < upto:
            found = scan(os.pread(self._fd, min(self._chunk, upto - at), at))
            for frame in found.frames:
                with contextlib.suppress(ValueError):  # told as damage when it was read first
                    self._learn_from(frame)
                self.sequence = max(self.sequence, frame.sequence)
            if not found.consumed:
                if self._chunk >= _MOST_CHUNK or upto - at <= self._chunk:
                    break
                self._chunk = min(_MOST_CHUNK, 8 * self._chunk)
            at += found.consumed
        self._chunk = _CHUNK

    def _learn_from(self, frame: Frame) -> None:
        if frame.kind == Kind.SCHEMA:
            self._take_schema(frame)
        elif frame.kind == Kind.HELLO:
            self.hello = Told(frame.time, Hello.decode(frame.body))

    def _take(self, frames: list[Frame]) -> list[Told]:
        told: list[Told] = []
        for frame in frames:
            if frame.sequence <= self.sequence and frame.kind != Kind.SCHEMA:
                continue  # read before: the file was cut short or copied over, and nothing is said twice
            self._time = max(self._time, frame.time)  # a clock that is set back must not put a file out of order
            told += self._gap(frame)
            if (frame.rank, Role.name(frame.role)) != (self.file.rank, self.file.role):
                self.damaged += 1
                told.append(self._note(SourceWord.DAMAGED, "frames of another rank in it were not read"))
                continue
            try:
                item = self._item(frame)
            except (ValueError, MessageError) as error:
                self.damaged += 1
                told.append(self._note(SourceWord.DAMAGED, f"a frame was not read: {error}"))
                continue
            if item is not None:
                told.append(Told(self._time, item))
        return told

    def _item(self, frame: Frame) -> Item | None:
        """What a frame says; None for a schema and for kinds of a newer writer. Raises ValueError, MessageError."""
        if frame.kind == Kind.RECORD:
            if frame.schema not in self._schemas:
                raise ValueError(f"its schema {frame.schema} is not in the file")
            schema, layout = self._schemas[frame.schema]
            return decode_record(frame, schema, layout, self.file.incarnation)
        if frame.kind == Kind.SCHEMA:
            self._take_schema(frame)
        elif frame.kind == Kind.HELLO:
            hello = Hello.decode(frame.body)
            if (hello.role, hello.rank, hello.incarnation) != self.writer:
                raise ValueError("a Hello of somebody else")
            return hello
        elif frame.kind == Kind.ACK:
            return Answer(*self.writer, Ack.decode(frame.body))
        elif frame.kind == Kind.BYE:
            return Ended(*self.writer)
        elif frame.kind == Kind.EXIT:
            if self.file.role != "supervisor":
                raise ValueError("only a supervisor says that a process ended")
            return Died(self.file.incarnation, Exit.decode(frame.body))
        else:
            self.unknown += 1
        return None

    def _take_schema(self, frame: Frame) -> None:
        schema = Schema.decode(frame.schema, frame.body)
        self._schemas[frame.schema] = (schema, schema.layout())

    def _gap(self, frame: Frame) -> list[Told]:
        """A jump of the sequence is what the writer could not write, or what somebody took away."""
        lost = frame.sequence - self.sequence - 1
        known, self.sequence = bool(self.sequence), max(self.sequence, frame.sequence)
        if lost <= 0 or not known:
            return []
        self.missing += lost
        where = f"{self.file.role}/{self.file.rank}"
        said = f"{lost} frames are missing before step {frame.step}"
        return [Told(self._time, SourceState(where, SourceWord.DAMAGED, said))]

    def _faults(self, damaged: int, foreign: int) -> list[Told]:
        told: list[Told] = []
        if damaged:
            self.damaged += 1
            told.append(self._note(SourceWord.DAMAGED, f"damaged from byte {self.offset} on: passed over"))
        if foreign:
            self.foreign = foreign
            said = f"written by wire version {foreign}: not read; update the agent"
            told.append(self._note(SourceWord.FOREIGN, said))
        return told

    def _note(self, word: str, detail: str) -> Told:
        return Told(self._time, SourceState(self.file.name, word, detail))
