"""Write the engine's state down and read it back: plain JSON by the types' own declarations.

Everything that survives a restart goes through here, so a field that is added to a state class is in the
snapshot without another line. Non-finite numbers are spelled out, for JSON has none.
"""

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

_T = TypeVar("_T")
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def dump(value: Any) -> bytes:
    """JSON of a dataclass, NamedTuple, list, mapping or plain value."""
    return json.dumps(to_plain(value), separators=(",", ":"), allow_nan=False).encode()


def load(kind: type[_T], data: bytes | str, least: int = 0) -> _T:
    """Read what ``dump`` wrote of a ``kind``; raises ValueError or TypeError on anything else.

    ``least``: fields that one has which an older version wrote; 0: all, for nothing may be missing.
    """
    try:
        raw = json.loads(data)
        fields = len(_fields(typing.cast(typing.Hashable, kind)))
        if not (least or fields) <= len(raw) <= fields:
            raise ValueError(f"this is no {kind.__name__} as it is written here")
        return typing.cast(_T, from_plain(kind, raw))
    except (AttributeError, KeyError, RecursionError, StopIteration) as error:
        raise ValueError(f"this is no {kind.__name__}: {error!r}") from None


def to_plain(value: Any) -> Any:
    """Only lists, dicts, strings, finite numbers, booleans and None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"~": repr(value)}
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if dataclasses.is_dataclass(value):
        return [to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    raise TypeError(f"{type(value).__name__} cannot be written into a snapshot")


def from_plain(kind: Any, raw: Any) -> Any:
    """A value of ``kind`` from what ``to_plain`` made of one; what an older version did not know has its default."""
    if kind is float and isinstance(raw, dict):
        return _ODD[raw["~"]]
    origin, args = _parts(kind)
    if origin in (types.UnionType, typing.Union):
        return None if raw is None else from_plain(next(a for a in args if a is not type(None)), raw)
    if dataclasses.is_dataclass(kind) or (isinstance(kind, type) and hasattr(kind, "_fields")):
        hints = _fields(typing.cast(typing.Hashable, kind))
        if not isinstance(raw, list) or len(raw) > len(hints):
            raise ValueError(f"{kind} is not written so here: another version wrote it")
        return kind(*[from_plain(h, r) for h, r in zip(hints, raw, strict=False)])  # type: ignore[operator]
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        key, item = args or (str, Any)
        return {(int(k) if key is int else k): from_plain(item, v) for k, v in raw.items()}
    if origin in (tuple, list):
        if not isinstance(raw, list):  # a text or a mapping would be taken for its letters or keys
            raise ValueError(f"{str(raw)[:40]!r} is no list")
        return origin(from_plain(args[0], v) for v in raw)
    return _plain(raw) if kind is Any else (float(raw) if kind is float else raw)


def _plain(raw: Any) -> Any:
    """An untyped value: only the spelled-out numbers inside it are turned back."""
    if isinstance(raw, dict):
        return _ODD[raw["~"]] if set(raw) == {"~"} else {k: _plain(v) for k, v in raw.items()}
    return [_plain(v) for v in raw] if isinstance(raw, list) else raw


@lru_cache(maxsize=256)
def _fields(kind: Any) -> tuple[Any, ...]:
    hints = typing.get_type_hints(kind)
    names = kind._fields if hasattr(kind, "_fields") else [f.name for f in dataclasses.fields(kind)]
    return tuple(hints[n] for n in names)


@lru_cache(maxsize=256)
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return typing.get_origin(kind) or kind, typing.get_args(kind)
