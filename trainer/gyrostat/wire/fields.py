"""The fields of a message: how text, whole numbers and floats are written as JSON and read back.

Called by ``messages`` alone. A number that is not finite is null beside ``"nonfinite": {"name": "nan"}``.
Whatever is wrong with a message is a MessageError that says so; no length, type or depth is trusted.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")
MAX_MESSAGE = 1 << 20
_BREAKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_SPELLED = ("nan", "inf", "-inf")


class MessageError(ValueError):
    """A message that cannot be believed, with the reason."""


def dump(raw: dict[str, Any]) -> bytes:
    """JSON text; the same message gives the same bytes. Raises ValueError or TypeError on what JSON has not."""
    return json.dumps(raw, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


def read(what: str, body: bytes, build: Callable[[dict[str, Any]], _T]) -> _T:
    """The message that ``build`` makes of ``body``; raises MessageError, and nothing else."""
    if len(body) > MAX_MESSAGE:
        raise MessageError(f"this {what} has {len(body)} bytes; {MAX_MESSAGE} is the most")
    try:
        raw = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"this {what} is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise MessageError(f"this {what} must be a mapping")
    try:
        return build(raw)
    except MessageError as error:
        raise MessageError(f"this {what}: {error}") from None


def numbers(values: Mapping[str, float], key: str = "") -> dict[str, Any]:
    """``values`` for JSON: the finite ones as they are, the others null and named under ``nonfinite``.

    With ``key`` the values stand under it and ``nonfinite`` beside it; without, they stand at the top.
    """
    shown = {k: (float(v) if math.isfinite(v) else None) for k, v in values.items()}
    out: dict[str, Any] = {key: shown} if key else dict(shown)
    if odd := {k: spell(v) for k, v in values.items() if not math.isfinite(v)}:
        out["nonfinite"] = odd
    return out


def read_numbers(raw: Mapping[str, Any], key: str) -> dict[str, float]:
    """What ``numbers(values, key)`` wrote; raises MessageError."""
    shown, odd = raw.get(key) or {}, raw.get("nonfinite") or {}
    if not isinstance(shown, dict) or not isinstance(odd, dict):
        raise MessageError(f"'{key}' must be a mapping of numbers")
    return {clean(k): value(odd.get(k) if v is None else v, k) for k, v in shown.items()}


def spell(number: float) -> str:
    """``nan``, ``inf`` or ``-inf``; a finite number by its shortest form."""
    return "nan" if number != number else repr(float(number))


def clean(said: str) -> str:
    """Text that can be stored and shown: in one line, and without what commands a terminal or no file takes.

    What breaks a line becomes a space; another control character, and half a character (a surrogate), become ``?``.
    """
    return said if said.isprintable() else "".join(map(_shown, said))


def _shown(character: str) -> str:
    if character in _BREAKS:
        return " "
    odd = character < " " or "\x7f" <= character <= "\x9f" or "\ud800" <= character <= "\udfff"
    return "?" if odd else character


def value(said: Any, name: str) -> float:
    """A float, or one spelled ``nan``, ``inf``, ``-inf``; raises MessageError on anything else."""
    if isinstance(said, str) and said in _SPELLED:
        return float(said)
    if isinstance(said, (int, float)) and not isinstance(said, bool):
        try:
            return float(said)
        except OverflowError:
            pass
    raise MessageError(f"{name!r} is {_short(said)}, not a number")


def number(raw: Mapping[str, Any], key: str) -> float:
    """The float under ``key``; raises MessageError."""
    return value(raw.get(key), key)


def finite(raw: Mapping[str, Any], key: str) -> float:
    """The finite float under ``key``: an expiry that is NaN would never come. Raises MessageError."""
    found = number(raw, key)
    if not math.isfinite(found):
        raise MessageError(f"{key!r} is {spell(found)}, not a finite number")
    return found


def optional(raw: Mapping[str, Any], key: str) -> float | None:
    """The float under ``key``, None where it is null or not there; raises MessageError."""
    return None if raw.get(key) is None else number(raw, key)


def whole(raw: Mapping[str, Any], key: str) -> int:
    """The whole number of 64 bits under ``key``; raises MessageError."""
    found = raw.get(key)
    if isinstance(found, bool) or not isinstance(found, int) or not -(1 << 63) <= found < 1 << 63:
        raise MessageError(f"{key!r} is {_short(found)}, not a whole number")
    return found


def text(raw: Mapping[str, Any], key: str) -> str:
    """The text under ``key``, '' where it is not there; raises MessageError."""
    found = raw.get(key, "")
    if not isinstance(found, str):
        raise MessageError(f"{key!r} is {_short(found)}, not text")
    return clean(found)


def rows(raw: Mapping[str, Any], key: str) -> list[Any]:
    """The list under ``key``, empty where it is not there; raises MessageError."""
    found = raw.get(key, [])
    if not isinstance(found, list):
        raise MessageError(f"{key!r} must be a list")
    return found


def tables(raw: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The list of mappings under ``key``; raises MessageError."""
    found = rows(raw, key)
    if not all(isinstance(row, dict) for row in found):
        raise MessageError(f"{key!r} must be a list of mappings")
    return found


def mapping(raw: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The mapping under ``key``, empty where it is null or not there; raises MessageError."""
    found = raw.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise MessageError(f"{key!r} must be a mapping")
    return found


def _short(said: Any) -> str:
    return repr(str(said)[:40])


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
