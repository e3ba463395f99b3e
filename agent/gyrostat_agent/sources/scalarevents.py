"""ScalarEvents: the numbers in a stretch of a TensorBoard event file, as rows; damage is passed over and counted.

Read by ``eventfile`` alone. A scalar's record is the same bytes each time but for its time, step, number and
checksum, so that one look into a table tells its tag; any other record is read field by field.

A header's checksum is always checked: once for each different one. The data's in Python costs five times what the
reading does, so it is checked where a wrong number would do harm or is likely: in a record of unknown layout, at a
step that is not the next, at a tag's first number that is not finite, in a file's last record, and all through a
stretch that shows damage. What is left is one wrong finite number, or time, where nothing else is wrong.
"""

import re
import struct
from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from gyrostat_agent.sources.eventproto import Event, event, stem
from gyrostat_agent.sources.protowire import MalformedError
from gyrostat_agent.sources.tfrecords import HEAD, TAIL, find, intact, length

Row: TypeAlias = tuple[float, int, str, float, int]  # wall time, step, tag, value; where in the stretch it ends
_Layout: TypeAlias = tuple[int, Callable[[bytes, int], tuple[Any, ...]]]  # a record's size; its time and its number
_MOST = 4096  # layouts and tags that are remembered
_SMALL = 1 << 16  # bytes of a record without numbers that are checked
_PATIENCE = 4  # how often damage may be looked into again, in lengths of the stretch: cost stays linear
_BODY = HEAD + 1  # a header and the key of the wall time
_MARK = HEAD + 9  # where the step begins, behind the wall time
_STEP_KEY, _SUMMARY_KEY = 0x10, 0x2A
# A mark: the step, which is left out where it is 0, and the key of the summary.
_STEP = re.compile(rb"(?:\x10[\x80-\xff]{0,8}[\0-\x7f])?\x2a")
_HOLE = re.compile(rb"\0+\Z")  # what a network file system shows before it has the bytes

_Mark: TypeAlias = tuple[bytes, int, int, int]  # as written, the step, where what follows lies, steps since the last
_NO_MARK: _Mark = (b"\x10" + b"\xff" * 10, 0, _MARK, 0)  # no record bears it


class Taken(NamedTuple):
    """``rows`` in the order of the file; the first ``used`` bytes are done with, the rest is to be given again.

    ``doubtful``: among what was read may be bytes that nobody wrote.
    """

    rows: list[Row]
    used: int
    damaged: int
    doubtful: bool


class _Examined(NamedTuple):
    """A record that was read field by field. ``size`` -1: damage; 0: not all of it is there yet."""

    size: int
    event: Event = Event(0.0, 0, [])
    mark: _Mark = _NO_MARK


_DAMAGED, _WAIT = _Examined(-1), _Examined(0)


class ScalarEvents:
    """Reads one file's bytes, stretch after stretch. ``damaged``: places that were passed over."""

    def __init__(self) -> None:
        self.damaged = 0
        self._lost = False  # what comes next lies in damage that has been counted
        self._layouts: dict[bytes, _Layout] = {}  # by header and first byte
        self._tags: dict[bytes, str] = {}  # by all between the step and the number

    def begin(self) -> None:
        """Forget where the last stretch ended: another file's beginning comes next."""
        self._lost = False

    def take(self, data: bytes, more: bool) -> Taken:
        """The rows of ``data``. ``more``: the file goes on behind it."""
        lost = self._lost
        taken = self._read(data, more, self._layouts)
        if taken.doubtful:
            self._lost = lost
            taken = self._read(data, more, {})  # no layout is known: all is checked
        self.damaged += taken.damaged
        return taken

    def _read(self, data: bytes, more: bool, layouts: dict[bytes, _Layout]) -> Taken:
        rows: list[Row] = []
        add, layout_of, tag_of = rows.append, layouts.get, self._tags.get
        at, damaged, end = 0, 0, len(data)
        trusted = end if more else end - 1  # the file's last record may lack bytes, and is examined
        patience, ill = _PATIENCE * end, set[str]()
        now = other = _NO_MARK
        mark, step, begin, _ = now
        while True:
            layout = layout_of(data[at : at + _BODY])
            if layout is not None and (stop := at + layout[0]) <= trusted:
                if not data.startswith(mark, at + _MARK):
                    now, other = _turn(data, at + _MARK, now, other)
                    mark, step, begin, _ = now
                tag = tag_of(data[at + begin : stop - 8])
                if tag is not None:
                    wall_time, value = layout[1](data, at)
                    if value - value == 0.0 or tag in ill:  # finite, or known not to be
                        add((wall_time, step, tag, value, stop))
                        at = stop
                        continue
            found = self._examine(data, at, more, sure=layouts is not self._layouts)
            if found is _WAIT:
                self._lost = self._lost and not at
                return Taken(rows, at, damaged, doubtful=bool(damaged or (at and _HOLE.match(data, at))))
            if found is not _DAMAGED:
                at += found.size
                rows += [(found.event.wall_time, found.event.step, *one, at) for one in found.event.scalars]
                ill.update(tag for tag, value in found.event.scalars if not isfinite(value))
                if found.mark is not _NO_MARK:
                    now, other = _since(found.mark, now, other), now
                    mark, step, begin, _ = now
                continue
            damaged += bool(at) or not self._lost
            at, patience = _beyond(data, at, patience)
            self._lost = at + HEAD > end
            if self._lost:
                return Taken(rows, at, damaged, doubtful=True)

    def _examine(self, data: bytes, at: int, more: bool, sure: bool) -> _Examined:
        """The record at ``at``; what it looks like is learnt where it holds one plain scalar."""
        if at + HEAD > len(data):
            return _WAIT
        size = length(data, at)
        if size < 0:
            return _WAIT if not more and _HOLE.match(data, at + HEAD - 1) else _DAMAGED
        stop = at + HEAD + size + TAIL
        if stop > len(data):
            return _WAIT
        body = data[at + HEAD : stop - TAIL]
        try:
            found = event(body)
            # What holds no number is no harm, but may be half a record with the next ones inside it.
            sound = not (found.scalars or (sure and size <= _SMALL)) or intact(data, at, size)
        except MalformedError:
            sound = False
        if not sound:
            unwritten = not more and (stop == len(data) or _HOLE.match(data, stop - 1))
            return _WAIT if unwritten else _DAMAGED
        return _Examined(stop - at, found, self._learn(data, at, body, found))

    def _learn(self, data: bytes, at: int, body: bytes, found: Event) -> _Mark:
        if len(found.scalars) != 1 or body[:1] != b"\x09" or not (written := _STEP.match(body, 9)):
            return _NO_MARK
        tag = found.scalars[0][0]
        between = body[written.end() : -4]
        if between != stem(tag.encode()):
            return _NO_MARK
        if max(len(self._layouts), len(self._tags)) >= _MOST:
            self._layouts.clear()
            self._tags.clear()
        size = HEAD + len(body) + TAIL
        layout = struct.Struct(f"<{_BODY}xd{size - 8 - _MARK}xf")
        self._layouts[data[at : at + _BODY]] = size, layout.unpack_from
        self._tags[between] = tag
        return written[0], found.step, HEAD + written.end(), 0


def _turn(data: bytes, at: int, now: _Mark, other: _Mark) -> tuple[_Mark, _Mark]:
    """The mark at ``at``, and the one before it: two axes that take turns (Megatron's) are followed both.

    No mark where the step is not the one to be expected: the record is then examined, and its checksum tells.
    """
    if data.startswith(other[0], at):
        return other, now
    step, shift, end = 0, 0, at
    if data[at] == _STEP_KEY:
        byte = 0x80
        while byte & 0x80 and shift < 63:
            end += 1
            byte = data[end]
            step |= (byte & 0x7F) << shift
            shift += 7
        end += 1
    if data[end] == _SUMMARY_KEY:
        for before in (now, other):
            if before[3] and step == before[1] + before[3]:
                return (data[at : end + 1], step, _MARK + end + 1 - at, before[3]), now
    return _NO_MARK, now


def _since(mark: _Mark, now: _Mark, other: _Mark) -> _Mark:
    """A mark that was examined, with how far it is from the last step of its axis: the next should be as far."""
    below = [mark[1] - before[1] for before in (now, other) if before is not _NO_MARK and before[1] < mark[1]]
    return (*mark[:3], min(below, default=0))


def _beyond(data: bytes, at: int, patience: int) -> tuple[int, int]:
    """Where to go on behind damage at ``at``, and how much patience is left."""
    size = length(data, at)
    inside = size < 0 or size <= patience  # a record cut short has others inside what it says is its own
    begin = at + 1 if size < 0 else at + HEAD if inside else at + HEAD + size + TAIL
    found = find(data, begin)
    beyond = found if found >= 0 else max(begin, len(data) - HEAD + 1)
    return beyond, patience - max(size, 0)
