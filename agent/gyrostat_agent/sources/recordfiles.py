"""Record files: follow every rank's frames by offset, and tell what was damaged, foreign or missing.

Called by the loop, which commits the offsets with the turn; only then are parts that have been read to their
end deleted. Nothing in the folder is trusted: a file that others could have written is not read, and said so
once.
"""

import contextlib
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gyrostat.wire import (
    Ack,
    Exit,
    Frame,
    Hello,
    Kind,
    MessageError,
    RecordFile,
    Role,
    RunDirectory,
    Schema,
    scan,
)  # fmt: skip
from gyrostat.wire.records import decode_record
from gyrostat.wire.rights import open_trusted
from gyrostat_agent import failpoints
from gyrostat_rules.inputs import Answer, Died, Ended, Item, SourceState, SourceWord

_CHUNK = 1 << 20
_MOST_CHUNK = 65 << 20  # a frame's largest body and its header
_BATCH = 4 << 20  # bytes of one file in one pass, so that a backlog cannot starve the other ranks


@dataclass(slots=True)
class _Tail:
    """One file as far as it has been read."""

    file: RecordFile
    fd: int
    offset: int
    inode: int
    chunk: int = _CHUNK
    damaged: int = 0
    unknown: int = 0
    foreign: int = 0
    at_end: bool = False
    schemas: dict[int, tuple[Schema, struct.Struct]] = field(default_factory=dict)


class RecordFiles:
    """The source of one run's record files. ``committed`` is where each file was left off."""

    def __init__(self, run: RunDirectory, committed: Mapping[str, int]) -> None:
        self._folder = run.records
        self._committed = dict(committed)
        self._tails: dict[str, _Tail] = {}
        self._sequences: dict[tuple[str, int, str], int] = {}
        self._said: set[str] = set()
        self._stamp = 0
        self.missing = 0
        self.damaged = 0

    def drain(self) -> list[Item]:
        """New items of every file, oldest file first; what supervisors saw comes last."""
        items: list[Item] = list(self._find())
        deaths = self._read_all(lambda tail: tail.file.role == "supervisor")
        items += self._read_all(lambda tail: tail.file.role != "supervisor")
        # A process that died has written all it ever will: its last words come before the news of its death.
        while deaths and (more := self._read_all(lambda tail: tail.file.role != "supervisor")):
            items += more
        return items + deaths

    def offsets(self) -> dict[str, int]:
        """How far each file has been read."""
        return {name: tail.offset for name, tail in self._tails.items()}

    def sweep(self) -> None:
        """Delete the parts that have been read to their end and are followed by a newer one. Call once committed."""
        newest: dict[tuple[str, int], tuple[str, int]] = {}
        for tail in self._tails.values():
            key = (tail.file.role, tail.file.rank)
            newest[key] = max(newest.get(key, ("", -1)), (tail.file.incarnation, tail.file.part))
        for name, tail in list(self._tails.items()):
            key = (tail.file.role, tail.file.rank)
            followed = (tail.file.incarnation, tail.file.part) < newest[key]
            # Of a life that is over, a torn last frame is never completed: what is whole has been read.
            over = tail.at_end and tail.file.incarnation < newest[key][0]
            if followed and (over or tail.offset >= os.fstat(tail.fd).st_size):
                self._drop(name)
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self._folder, name))
                failpoints.reach("records.deleted")

    def close(self) -> None:
        """Close every file."""
        for name in list(self._tails):
            self._drop(name)

    def _find(self) -> Iterable[Item]:
        """Open files that are new; costs one stat where the folder has not changed."""
        try:
            stamp = os.stat(self._folder).st_mtime_ns
            if stamp == self._stamp:
                return
            names = sorted(os.listdir(self._folder))
        except OSError as error:
            yield from self._say(self._folder, SourceWord.GONE, f"{error.strerror}")
            return
        self._stamp = stamp
        for name in names:
            if name not in self._tails and (file := RecordFile.parse(name)) is not None:
                yield from self._open(name, file)
        for name in [n for n in self._tails if n not in names]:
            self._drop(name)

    def _open(self, name: str, file: RecordFile) -> Iterable[Item]:
        try:
            fd = open_trusted(os.path.join(self._folder, name))
        except OSError as error:
            yield from self._say(name, SourceWord.DAMAGED, f"not read: {error}")
            return
        tail = _Tail(file, fd, 0, os.fstat(fd).st_ino)
        self._tails[name] = tail
        if offset := self._committed.get(name, 0):
            self._learn_schemas(tail, offset)
            tail.offset = offset

    def _learn_schemas(self, tail: _Tail, upto: int) -> None:
        """Read the schemas of what was committed before: the frames behind it need them."""
        at = 0
        while at < upto:
            found = scan(os.pread(tail.fd, min(tail.chunk, upto - at), at))
            for frame in found.frames:
                if frame.kind == Kind.SCHEMA:
                    self._take_schema(tail, frame)
                self._sequences[_writer(tail)] = frame.sequence
            if not found.consumed:
                if tail.chunk >= _MOST_CHUNK or upto - at <= tail.chunk:
                    break
                tail.chunk = min(_MOST_CHUNK, 8 * tail.chunk)
            at += found.consumed
        tail.chunk = _CHUNK

    def _read_all(self, wanted: Callable[[_Tail], bool]) -> list[Item]:
        return [i for name in sorted(self._tails) if wanted(self._tails[name]) for i in self._read(self._tails[name])]

    def _read(self, tail: _Tail) -> list[Item]:
        """What a file has gained, up to a bound; the rest waits for the next pass."""
        items: list[Item] = []
        began, tail.at_end = tail.offset, False
        while tail.offset - began < _BATCH:
            data = os.pread(tail.fd, tail.chunk, tail.offset)
            if not data and tail.offset and os.fstat(tail.fd).st_size < tail.offset:
                items += self._say(
                    tail.file.name, SourceWord.DAMAGED, "the file was cut short by somebody; read again from its start"
                )
                tail.offset = 0
                continue
            if not data or tail.foreign:
                tail.at_end = True
                break
            found = scan(data)
            items += self._take(tail, found.frames)
            items += self._note(tail, found.damaged, found.foreign)
            tail.offset += found.consumed
            if not found.consumed and len(data) == tail.chunk and tail.chunk < _MOST_CHUNK:
                tail.chunk = min(_MOST_CHUNK, 8 * tail.chunk)  # one frame larger than the chunk
                continue
            if len(data) < tail.chunk or not found.consumed:
                tail.at_end = True
                break
        return items

    def _take(self, tail: _Tail, frames: list[Frame]) -> list[Item]:
        items: list[Item] = []
        for frame in frames:
            if frame.sequence <= self._sequences.get(_writer(tail), 0) and frame.kind != Kind.SCHEMA:
                continue  # read before: the file was cut short or copied over, and nothing is said twice
            items += self._count_gap(tail, frame)
            if (frame.rank, Role.name(frame.role)) != (tail.file.rank, tail.file.role):
                self.damaged += 1
                items += self._say(tail.file.name, SourceWord.DAMAGED, "frames of another rank in it were not read")
                continue
            try:
                item = self._item(tail, frame)
            except (ValueError, MessageError) as error:
                self.damaged += 1
                items += self._say(tail.file.name, SourceWord.DAMAGED, f"a frame was not read: {error}")
                continue
            if item is not None:
                items.append(item)
        return items

    def _item(self, tail: _Tail, frame: Frame) -> Item | None:
        who = (tail.file.role, tail.file.rank, tail.file.incarnation)
        if frame.kind == Kind.RECORD:
            if frame.schema not in tail.schemas:
                raise ValueError(f"its schema {frame.schema} is not in the file")
            schema, layout = tail.schemas[frame.schema]
            return decode_record(frame, schema, layout, tail.file.incarnation)
        if frame.kind == Kind.SCHEMA:
            self._take_schema(tail, frame)
        elif frame.kind == Kind.HELLO:
            hello = Hello.decode(frame.body)
            if (hello.role, hello.rank, hello.incarnation) != who:
                raise ValueError("a Hello of somebody else")
            return hello
        elif frame.kind == Kind.ACK:
            return Answer(*who, Ack.decode(frame.body))
        elif frame.kind == Kind.BYE:
            return Ended(*who)
        elif frame.kind == Kind.EXIT:
            if tail.file.role != "supervisor":
                raise ValueError("only a supervisor says that a process ended")
            return Died(tail.file.incarnation, Exit.decode(frame.body))
        else:
            tail.unknown += 1
        return None

    def _take_schema(self, tail: _Tail, frame: Frame) -> None:
        schema = Schema.decode(frame.schema, frame.body)
        tail.schemas[frame.schema] = (schema, schema.layout())

    def _count_gap(self, tail: _Tail, frame: Frame) -> list[Item]:
        """A jump of the sequence is what the writer could not write, or what somebody took away."""
        key = _writer(tail)
        last = self._sequences.get(key, 0)
        self._sequences[key] = max(last, frame.sequence)
        lost = frame.sequence - last - 1
        if lost <= 0 or not last:
            return []
        self.missing += lost
        where = f"{tail.file.role}/{tail.file.rank}"
        return [
            SourceState(
                where, SourceWord.DAMAGED, f"{self.missing} frames are missing, the last before step {frame.step}"
            )
        ]

    def _note(self, tail: _Tail, damaged: int, foreign: int) -> list[Item]:
        items: list[Item] = []
        if damaged:
            tail.damaged += damaged
            self.damaged += 1
            items += self._say(tail.file.name, SourceWord.DAMAGED, f"damaged from byte {tail.offset} on: passed over")
        if foreign and not tail.foreign:
            tail.foreign = foreign
            items += self._say(
                tail.file.name, SourceWord.FOREIGN, f"written by wire version {foreign}: not read; update the agent"
            )
        return items

    def _say(self, source: str, word: str, detail: str) -> list[Item]:
        """Each thing once: a file that is damaged all through must not fill the journal."""
        if f"{source} {word}" in self._said:
            return []
        self._said.add(f"{source} {word}")
        return [SourceState(source, word, detail)]

    def _drop(self, name: str) -> None:
        tail = self._tails.pop(name)
        os.close(tail.fd)


def _writer(tail: _Tail) -> tuple[str, int, str]:
    """Whose sequence numbers a file holds."""
    return tail.file.role, tail.file.rank, tail.file.incarnation
