"""A file of torch.save, or a stretch of one, without unpickling: which bytes belong to which tensor, of what type.

The format is a zip archive without compression; ``NAME/data.pkl`` describes the tensors, ``NAME/data/KEY`` are the
storages (torch/csrc/jit/serialization, "caffe2 serialize"; APPNOTE.TXT 6.3 for the archive). A zip can say one thing
in two places, so whatever is said twice is compared, and entries may neither overlap nor leave the stretch.
Called in the child: ``data`` is a memory map. The tensors given cover it from end to end, with nameless ones of no
type in between, as ``verify.scan`` needs it.

::

    ValueError            damaged, or no file of torch's
      Unreadable          may be good, but cannot be read without unpickling: attested at best
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gyrostat_agent.checkpoints.inert import PickleLimits, Unreadable
from gyrostat_agent.checkpoints.pickled import read
from gyrostat_agent.checkpoints.rebuilt import Rebuilt, rebuilt
from gyrostat_agent.checkpoints.tensors import Tensor

_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_FLAGS = 0x0808  # sizes behind the data, names in UTF-8; with any other the bytes are not the tensors'
_ALL_ONES, _ALL_ONES_16 = 0xFFFFFFFF, 0xFFFF
_LEGACY = b"\x80\x02\x8a\n"
_RECORDS = 1_000_000
_SUMMED = 64 << 10  # bytes; the sum of a larger storage would take thrice as long as its digest


class Limits(NamedTuple):
    """How much is read before it is called absurd."""

    pickle: PickleLimits = PickleLimits()
    records: int = _RECORDS


class Record(NamedTuple):
    """An entry of the archive: the bytes that hold it, and their CRC-32, 0 where torch was told to compute none."""

    start: int
    end: int
    crc: int


class Saved(NamedTuple):
    """What torch.save wrote: the value, its tensors in the order of their bytes, and what could not be looked into."""

    value: Any
    tensors: list[Tensor]
    rebuilt: list[Rebuilt]
    unread: str


_DEFAULTS = Limits()


def saved(data: memoryview, limits: Limits = _DEFAULTS) -> Saved:
    """What ``data``, a whole file or a stretch of one, holds; raises ValueError or Unreadable."""
    if _signed(data, 0, _LEGACY):
        raise Unreadable("written in torch's old format, which cannot be read without unpickling")
    found = records(data, limits.records)
    prefix = next(iter(found)).partition("/")[0] + "/" if found else ""
    body = found.get(prefix + "data.pkl")
    if body is None or any(not name.startswith(prefix) for name in found):
        raise ValueError("an archive without a data.pkl: no file of torch's")
    for name, record in found.items():
        if record.crc and record.end - record.start <= (
            _SUMMED if name != prefix + "data.pkl" else limits.pickle.bytes
        ):
            _check_sum(data, name, record)
    order = found.get(prefix + "byteorder")
    if order and bytes(data[order.start : min(order.end, order.start + 8)]) != b"little":
        raise Unreadable("its numbers are not little-endian")
    value = read(bytes(data[body.start : body.end]), limits.pickle)
    tensors, unread = rebuilt(value)
    placed = [_placed(tensor, found, prefix) for tensor in tensors]
    spans, mixed = _apart(placed)
    return Saved(
        value, list(covering(spans, 0, len(data))), tensors, unread or mixed or _unclaimed(found, prefix, tensors)
    )


def covering(spans: Iterable[Tensor], begin: int, end: int) -> Iterator[Tensor]:
    """``spans``, in order, and nameless tensors of no type for what lies between, from ``begin`` to ``end``."""
    at = begin
    for span in spans:
        if span.start > at:
            yield Tensor("", "", at, span.start)
        yield span
        at = span.end
    if at < end:
        yield Tensor("", "", at, end)


def records(data: memoryview, most: int) -> dict[str, Record]:
    """The entries of the archive by name; raises ValueError where anything of it is not as torch writes it."""
    count, begin, end = _directory(data)
    if count > most:
        raise Unreadable(f"{count} records; at most {most} are read")
    found, at = dict[str, Record](), begin
    for _ in range(count):
        name, record, at = _entry(data, at, end, begin)
        if name in found:
            raise ValueError(f"two records are called {name[:80]!a}")
        found[name] = record
    if at != end:
        raise ValueError("the archive's directory is longer than its entries")
    behind = 0
    for name, record in sorted(found.items(), key=lambda each: each[1].start):
        if record.start < behind:
            raise ValueError(f"record {name[:80]!a} lies over the one before")
        behind = record.end
    return found


def _directory(data: memoryview) -> tuple[int, int, int]:
    """How many entries there are, and where their directory begins and ends."""
    at = len(data) - _END.size
    if at < 0 or not _signed(data, at, b"PK\x05\x06"):
        raise ValueError("the archive has no end: truncated, half-written or no file of torch's")
    _, disk, first, here, count, size, begin, comment = _END.unpack_from(data, at)
    if disk or first or here != count or comment:
        raise ValueError("the archive's end is not as torch writes it")
    end, wide = at, _wide(data, at - _LOCATOR.size)
    if wide:
        end = wide[3]
        said = zip((count, size, begin), wide[:3], (_ALL_ONES_16, _ALL_ONES, _ALL_ONES), strict=True)
        if any(narrow not in (full, ones) for narrow, full, ones in said):
            raise ValueError("the archive's two ends contradict each other")
        count, size, begin = wide[:3]
    if begin + size != end:
        raise ValueError(f"the archive's directory is said to end at byte {begin + size}, it ends at {end}")
    return count, begin, end


def _signed(data: memoryview, at: int, signature: bytes) -> bool:
    return bytes(data[at : at + 4]) == signature


def _wide(data: memoryview, at: int) -> tuple[int, int, int, int] | None:
    """Entries, size and beginning of the directory as the zip64 end has them, and where that end is."""
    if at < 0 or not _signed(data, at, b"PK\x06\x07"):
        return None
    _, disk, where, disks = _LOCATOR.unpack_from(data, at)
    if disk or disks != 1 or where + _END64.size != at or not _signed(data, where, b"PK\x06\x06"):
        raise ValueError("the archive's zip64 end is not where it is said to be")
    _, length, _, _, disk, first, here, count, size, begin = _END64.unpack_from(data, where)
    if length != _END64.size - 12 or disk or first or here != count:
        raise ValueError("the archive's zip64 end is not as torch writes it")
    return count, size, begin, where


def _entry(data: memoryview, at: int, end: int, directory: int) -> tuple[str, Record, int]:
    """The entry of the directory at ``at``: name and record, and where the next one is."""
    if at + _ENTRY.size > end or not _signed(data, at, b"PK\x01\x02"):
        raise ValueError(f"no entry of the archive's directory at byte {at}")
    _, _, _, flags, method, _, _, crc, packed, size, named, extra, comment, disk, _, _, where = _ENTRY.unpack_from(
        data, at
    )
    behind = at + _ENTRY.size + named + extra
    if flags & ~_FLAGS or method or comment or disk or behind > end:
        raise ValueError("a record is compressed, encrypted or otherwise not as torch writes it")
    raw = bytes(data[at + _ENTRY.size : behind - extra])
    packed, size, where = _widened(bytes(data[behind - extra : behind]), packed, size, where)
    if packed != size:
        raise ValueError("a record has two sizes")
    start = _begin(data, where, raw, directory)
    if start + size > directory:
        raise ValueError(f"record {raw[:80]!a} ends at byte {start + size}, behind the beginning of the directory")
    return raw.decode("utf-8"), Record(start, start + size, crc), behind


def _widened(extra: bytes, packed: int, size: int, where: int) -> tuple[int, int, int]:
    """The sizes and the place of a record, from the zip64 field where they are too large for the entry."""
    at, wide = 0, list[int]()
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1 and not length % 8 and at + 4 + length <= len(extra):
            wide = list(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
        at += 4 + length
    said = (size, packed, where)  # the order of the field's members, of which those are there that are needed
    if len(wide) < said.count(_ALL_ONES):
        raise ValueError("a record of more than 4 GiB does not say its size")
    size, packed, where = (wide.pop(0) if each == _ALL_ONES else each for each in said)
    return packed, size, where


def _begin(data: memoryview, where: int, raw: bytes, directory: int) -> int:
    """Where the bytes of the record whose local header is at ``where`` begin."""
    if where + _LOCAL.size > directory or not _signed(data, where, b"PK\x03\x04"):
        raise ValueError(f"record {raw[:80]!a} is not where the directory says")
    _, _, flags, method, _, _, _, _, _, named, extra = _LOCAL.unpack_from(data, where)
    at = where + _LOCAL.size
    if flags & ~_FLAGS or method or bytes(data[at : at + named]) != raw:
        raise ValueError(f"record {raw[:80]!a} is another one where it lies")
    begin: int = at + named + extra
    return begin


def _check_sum(data: memoryview, name: str, record: Record) -> None:
    found = zlib.crc32(data[record.start : record.end])
    if found != record.crc:
        raise ValueError(f"record {name[:80]!a} is damaged: CRC-32 {found:08x}, written {record.crc:08x}")


def _placed(tensor: Rebuilt, found: dict[str, Record], prefix: str) -> Tensor:
    record = found.get(f"{prefix}data/{tensor.storage}")
    if record is None:
        raise ValueError(f"tensor {tensor.name} is in storage {tensor.storage}, which is missing")
    if record.end - record.start != tensor.bytes:
        size = record.end - record.start
        raise ValueError(f"storage {tensor.storage} has {size} bytes; tensor {tensor.name} needs {tensor.bytes}")
    return Tensor(tensor.name, tensor.dtype, record.start + tensor.start, record.start + tensor.end)


def _apart(placed: list[Tensor]) -> tuple[list[Tensor], str]:
    """Spans that do not overlap, in order, and why some bytes cannot be checked: two tensors read them differently."""
    spans, mixed = list[Tensor](), ""
    for tensor in sorted(placed, key=lambda each: (each.start, each.end)):
        last = spans[-1] if spans else None
        if tensor.start == tensor.end:
            continue
        if last is None or tensor.start >= last.end:
            spans.append(tensor)
        elif tensor.dtype != last.dtype:
            mixed = f"tensors {last.name} and {tensor.name} are the same bytes in two types"
        elif tensor.end > last.end:
            spans[-1] = last._replace(end=tensor.end)
    return spans, mixed


def _unclaimed(found: dict[str, Record], prefix: str, tensors: list[Rebuilt]) -> str:
    claimed = {f"{prefix}data/{tensor.storage}" for tensor in tensors}
    lost = next((name for name in found if name.startswith(prefix + "data/") and name not in claimed), "")
    return f"record {lost[:80]!a} belongs to no tensor" if lost else ""
