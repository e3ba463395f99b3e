"""Inputs and entries as bytes, and back: strict JSON by field name, packed where that is smaller.

Called by the journal alone. A field that a type gains later is defaulted when an old blob is read; one that it
lost is ignored. Floats come back bit for bit, an int stays an int; a number that is not finite is null in its
place and spelled under ``nonfinite`` by its JSON pointer (RFC 6901), since it may stand at any depth.
Not promised: inside untyped data (``arguments``, ``data``) a tuple comes back as a list and a key as text.

::

    blob     = b"\\0" + JSON | b"\\1" + zlib(JSON)
    JSON     = {"type": "Batch", "at": 1.5, "items": [{"type": "Record", ...}], "nonfinite": {"/at": "nan"}}
    counts   = base64(zlib(little-endian u32 ...)), or a list where one is no u32
"""

import json
import math
import struct
import types
import typing
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

from gyrostat.wire import ExpertLoad
from gyrostat.wire.messages import spell
from gyrostat_agent.journal.errors import CodecError
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Input, Item

_PLAIN, _PACKED = 0, 1
_PACK_OVER = 2048  # below this many bytes zlib costs a commit more than the disk is worth
_COUNTS = b'"counts":"'
_INPUTS = {kind.__name__: kind for kind in typing.get_args(Input)}
_ITEMS = {kind.__name__: kind for kind in typing.get_args(Item)}
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_Convert = Callable[[Any], Any]


class _Shape(NamedTuple):
    """How one NamedTuple type is written and read: its fields, and those that are not JSON as they are."""

    kind: Any
    names: tuple[str, ...]
    writers: tuple[tuple[str, _Convert], ...]
    readers: tuple[tuple[str, _Convert], ...]


def encode(given: Input) -> bytes:
    """Blob of an input; raises CodecError where it holds something that JSON cannot say."""
    return _to_blob(_write_tagged(given))


def decode(blob: bytes) -> Input:
    """The input that ``encode`` wrote; raises CodecError."""
    return cast(Input, _read(partial(_read_tagged, _INPUTS), blob))


def text_of(given: Input) -> bytes:
    """An input as JSON, unpacked, for another agent to read; raises CodecError."""
    return _to_json(_write_tagged(given)).encode()


def from_text(text: bytes) -> Input:
    """The input that ``text_of`` wrote; raises CodecError. Not promised: that each field is of its type."""
    return cast(Input, _read(partial(_read_tagged, _INPUTS), b"\0" + text))


def encode_entry(entry: Entry) -> bytes:
    """Blob of an entry; raises CodecError where its data holds something that JSON cannot say."""
    return _to_blob(_write_fields(_shape(Entry), entry))


def decode_entry(blob: bytes) -> Entry:
    """The entry that ``encode_entry`` wrote; raises CodecError."""
    return cast(Entry, _read(partial(_read_fields, _shape(Entry)), blob))


def key(text: str) -> str:
    """Text to look an entry up by. SQLite takes no lone surrogate, which a name out of JSON may hold."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _to_blob(doc: dict[str, Any]) -> bytes:
    text = _to_json(doc).encode()
    if len(text) > _PACK_OVER and len(packed := _deflate(text)) < len(text):
        return b"\1" + packed
    return b"\0" + text


def _to_json(doc: dict[str, Any]) -> str:
    """The doc as it is in the common case; its odd numbers are looked for only when JSON refuses one."""
    try:
        try:
            return _dumps(doc)
        except ValueError:
            odd: dict[str, str] = {}
            return _dumps({**_lift(doc, "", odd), "nonfinite": odd})
    except (TypeError, ValueError, RecursionError) as error:
        raise CodecError(f"this cannot be written into the journal: {error}") from None


def _read(build: _Convert, blob: bytes) -> Any:
    try:
        text = zlib.decompress(blob[1:]) if blob[0] == _PACKED else blob[1:]
        if blob[0] not in (_PLAIN, _PACKED):
            raise CodecError(f"its form is {blob[0]}; this version reads {_PLAIN} and {_PACKED}")
        doc = json.loads(text, parse_constant=_refuse)
        for pointer, spelled in (doc.pop("nonfinite", None) or {}).items():
            _put(doc, pointer, _ODD[spelled])
        return build(doc)
    except CodecError:
        raise
    except (zlib.error, struct.error, ArithmeticError, AttributeError, LookupError, RecursionError,
            TypeError, ValueError) as error:  # fmt: skip
        raise CodecError(f"these bytes are not what the journal writes: {error!r}") from None


def _write_tagged(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    if kind.__name__ not in _ITEMS and kind.__name__ not in _INPUTS:
        raise CodecError(f"a {kind.__name__} is neither an input nor an item of a Batch")
    return {"type": kind.__name__, **_write_fields(_shape(kind), value)}


def _write_fields(shape: _Shape, value: Any) -> dict[str, Any]:
    doc = dict(zip(shape.names, value, strict=True))
    for name, write in shape.writers:
        doc[name] = write(doc[name])
    return doc


def _read_tagged(known: Mapping[str, Any], raw: dict[str, Any]) -> Any:
    kind = known.get(raw["type"])
    if kind is None:
        raise CodecError(f"it holds a {raw['type']!r}, which this version does not know; use the one that wrote it")
    return _read_fields(_shape(kind), raw)


def _read_fields(shape: _Shape, raw: dict[str, Any]) -> Any:
    found = {name: raw[name] for name in shape.names if name in raw}
    for name, read in shape.readers:
        if name in found:
            found[name] = read(found[name])
    return shape.kind(**found)


@lru_cache(maxsize=64)
def _shape(kind: Any) -> _Shape:
    hints = typing.get_type_hints(kind)
    ways = {name: _ways(hints[name]) for name in kind._fields}
    writers = tuple((name, write) for name, (write, _) in ways.items() if write)
    readers = tuple((name, read) for name, (_, read) in ways.items() if read)
    return _Shape(kind, kind._fields, writers, readers)


def _ways(hint: Any) -> tuple[_Convert | None, _Convert | None]:
    """How a field of this type is written and how it is read; None where JSON says it as it is."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is ExpertLoad:
        return _write_load, _read_load
    if hasattr(hint, "_fields"):
        return partial(_write_fields, _shape(hint)), partial(_read_fields, _shape(hint))
    if origin is tuple:
        write, read = _ways(args[0])
        return (partial(_write_each, write) if write else None), partial(_read_each, read)
    if origin in (types.UnionType, typing.Union):
        if type(None) not in args:
            return (_write_tagged, partial(_read_tagged, _ITEMS)) if hint == Item else (None, None)
        write, read = _ways(next(a for a in args if a is not type(None)))
        return (partial(_unless_none, write) if write else None), (partial(_unless_none, read) if read else None)
    return None, None


def _write_each(write: _Convert, values: tuple[Any, ...]) -> list[Any]:
    return [write(v) for v in values]


def _read_each(read: _Convert | None, values: list[Any]) -> tuple[Any, ...]:
    return tuple(map(read, values)) if read else tuple(values)


def _unless_none(convert: _Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _write_load(load: ExpertLoad) -> dict[str, Any]:
    try:
        counts = struct.pack(f"<{len(load.counts)}I", *load.counts)
    except struct.error:  # a source that is not the wire may give others; what was read must be journaled all the same
        return {**load._asdict(), "counts": list(load.counts)}
    return {**load._asdict(), "counts": b64encode(zlib.compress(counts, 1)).decode()}


def _read_load(raw: dict[str, Any]) -> ExpertLoad:
    counts = raw["counts"]
    if isinstance(counts, str):
        packed = zlib.decompress(b64decode(counts))
        counts = struct.unpack(f"<{len(packed) // 4}I", packed)
    return ExpertLoad(raw["layers"], raw["loops"], raw["experts"], tuple(counts))


def _lift(value: Any, pointer: str, odd: dict[str, str]) -> Any:
    """``value`` with null for every number that is not finite, and those in ``odd`` by where they stood."""
    if isinstance(value, float) and not math.isfinite(value):
        odd[pointer] = spell(value)
        return None
    if isinstance(value, Mapping):
        return {key: _lift(v, f"{pointer}/{_escape(str(key))}", odd) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_lift(v, f"{pointer}/{i}", odd) for i, v in enumerate(value)]
    return value


def _put(doc: Any, pointer: str, value: float) -> None:
    *way, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    for part in way:
        doc = doc[int(part)] if isinstance(doc, list) else doc[part]
    doc[int(last) if isinstance(doc, list) else last] = value


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _deflate(text: bytes) -> bytes:
    """zlib-1, with what is measurably slow about it left out.

    1. Base64 has no repeats to look for: without looking it goes three times as fast and packs as well.
    2. A short text fits a small window, whose memory is 48 KiB to clear instead of 256.
    """
    strategy = zlib.Z_HUFFMAN_ONLY if _COUNTS in text else zlib.Z_DEFAULT_STRATEGY
    window, memory = (12, 6) if len(text) <= 1 << 12 else (zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL)
    squeeze = zlib.compressobj(1, zlib.DEFLATED, window, memory, strategy)
    return squeeze.compress(text) + squeeze.flush()


def _plain_mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is not a mapping, a list, text, a number, true, false or null")


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_dumps = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_plain_mapping).encode
