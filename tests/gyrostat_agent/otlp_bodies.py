"""OTLP requests made by hand, in both encodings."""

import json
import struct
from typing import Any


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, body: bytes | int | float) -> bytes:
    """A field: bytes with their length, an int as fixed64, a float as double."""
    if isinstance(body, bytes):
        return varint(number << 3 | 2) + varint(len(body)) + body
    return varint(number << 3 | 1) + struct.pack("<d" if isinstance(body, float) else "<q", body)


def flag(number: int, value: int) -> bytes:
    """A field that is a varint."""
    return varint(number << 3) + varint(value)


def request(metrics: list[dict[str, Any]], resource: dict[str, Any] | None = None) -> dict[str, Any]:
    """A request of one resource and scope, in JSON's form."""
    attributes = [attribute(key, value) for key, value in (resource or {}).items()]
    return {"resourceMetrics": [{"resource": {"attributes": attributes}, "scopeMetrics": [{"metrics": metrics}]}]}


def attribute(key: str, value: Any) -> dict[str, Any]:
    """A key and value."""
    kind = {int: "intValue", float: "doubleValue", str: "stringValue", bool: "boolValue"}[type(value)]
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def point(value: Any, at: float = 1000.0, start: float = 0.0, **attributes: Any) -> dict[str, Any]:
    """A number's data point; times are Unix seconds."""
    times = {"timeUnixNano": str(int(at * 1e9)), "startTimeUnixNano": str(int(start * 1e9))}
    return {**times, "asDouble": value, "attributes": [attribute(key, said) for key, said in attributes.items()]}


def gauge(name: str, *points: dict[str, Any]) -> dict[str, Any]:
    """A gauge."""
    return {"name": name, "gauge": {"dataPoints": list(points)}}


def counter(name: str, *points: dict[str, Any], temporality: int = 2, growing: bool = True) -> dict[str, Any]:
    """A sum, cumulative unless told otherwise."""
    inside = {"dataPoints": list(points), "aggregationTemporality": temporality, "isMonotonic": growing}
    return {"name": name, "sum": inside}


def histogram(
    name: str, counts: list[int], total: float, at: float = 1000.0, start: float = 900.0, temporality: int = 2
) -> dict[str, Any]:
    """A histogram with the bounds 1, 2, 4."""
    times = {"timeUnixNano": int(at * 1e9), "startTimeUnixNano": int(start * 1e9)}
    row = {**times, "count": str(sum(counts)), "sum": total, "bucketCounts": counts, "explicitBounds": [1, 2, 4]}
    return {"name": name, "histogram": {"dataPoints": [row], "aggregationTemporality": temporality}}


def as_json(*metrics: dict[str, Any], **resource: Any) -> bytes:
    """A request's body; NaN is bare in it, as Python writes it."""
    return json.dumps(request(list(metrics), resource)).encode()
