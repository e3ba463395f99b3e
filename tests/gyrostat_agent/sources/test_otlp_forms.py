"""Both encodings of an OTLP export give the same points, whoever wrote them, and nonsense gives one line."""

import json
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from http_posts import DATA
from otlp_bodies import as_json, field, flag, gauge, histogram, point, request, varint

from gyrostat_agent.sources.buckets import Buckets
from gyrostat_agent.sources.otlp import jsonform, protobuf
from gyrostat_agent.sources.otlp.points import Export, Point

OTLP = DATA / "otlp"


@pytest.mark.parametrize("number", range(4))
def test_the_encodings_agree(number: int) -> None:
    """On what the SDK for Python sent, and protobuf's own JSON of the same bytes."""
    body = (OTLP / f"sdk-1.45-{number}.bin").read_bytes()
    exports = protobuf.decode(body)
    assert exports == jsonform.decode((OTLP / f"mapped-{number}.json").read_bytes())
    assert sum(len(export.points) for export in exports) >= 7


def test_what_the_sdk_sends() -> None:
    """Gauges by step, a counter, a level, a histogram; the resource says who it is."""
    (export,) = protobuf.decode((OTLP / "sdk-1.45-1.bin").read_bytes())
    assert export.resource["service.name"] == "trainer" and export.resource["rank"] == "0" and export.unread == 0
    by_name: dict[str, list[Point]] = {}
    for each in export.points:
        by_name.setdefault(each.name, []).append(each)
    assert [(p.value, p.attributes) for p in by_name["loss"]] == [(2.0, {"step": "1"}), (1.0, {"step": "2"})]
    (tokens,), (active,), (times,) = by_name["tokens"], by_name["requests_active"], by_name["step_time"]
    assert (tokens.value, tokens.growing, tokens.delta) == (300.0, True, False)
    assert (active.value, active.growing) == (2.0, False)
    assert times.buckets is not None and times.buckets.bounds == (0.1, 0.5, 1.0, 2.0, 5.0)
    assert times.value == sum(times.buckets.counts) == 8.0 and times.buckets.total == pytest.approx(6.9)
    assert tokens.at > tokens.start > 1.7e9


def test_the_json_exporter() -> None:
    """That of Python gives what its protobuf sibling gives."""
    (binary,) = protobuf.decode((OTLP / "sdk-1.45-2.bin").read_bytes())
    (text,) = jsonform.decode((OTLP / "sdk-1.45-2.json").read_bytes())
    assert [(p.name, p.value, p.attributes) for p in binary.points] == [
        (p.name, p.value, p.attributes) for p in text.points
    ]


@pytest.mark.parametrize(("number", "loss", "norm"), [(1, "nan", "inf"), (2, "nan", "-inf")])
def test_nan_comes_through_protobuf(number: int, loss: str, norm: str) -> None:
    """As the SDK of 2024 sent it."""
    (export,) = protobuf.decode((OTLP / f"nan-sdk-1.25-{number}.bin").read_bytes())
    assert {p.name: str(p.value) for p in export.points} == {"loss": loss, "grad_norm": norm}


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf), (None, math.nan), (math.nan, math.nan),
        (math.inf, math.inf), ("1.5", 1.5), (2, 2.0), ("1e400", math.inf),
    ],
)  # fmt: skip
def test_json_spellings(said: Any, value: float) -> None:
    """Protobuf's, Python's, and the null of JSON.stringify."""
    (export,) = jsonform.decode(as_json(gauge("loss", point(said))))
    assert export.points[0].value == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize(
    ("row", "value"), [({"asInt": "12"}, 12.0), ({"asInt": 3}, 3.0), ({"asDouble": 1.5, "flags": 1}, None), ({}, None)]
)
def test_json_values(row: dict[str, Any], value: float | None) -> None:
    """Whole numbers as text; a point that says it has no value has none."""
    (export,) = jsonform.decode(json.dumps(request([gauge("x", row)])).encode())
    assert [p.value for p in export.points] == ([] if value is None else [value])


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (field(4, math.nan), math.nan),
        (field(6, -5), -5.0),
        (flag(8, 1), None),
        (field(4, 1.0) + flag(8, 1), None),
        (flag(99, 7) + field(98, b"new") + field(4, 2.5), 2.5),
        (varint(97 << 3 | 5) + b"1234" + field(4, 2.5), 2.5),
        (b"", None),
    ],
    ids=["nan", "int", "flag", "flagged", "unknown fields", "fixed32", "empty"],
)
def test_protobuf_values(data: bytes, value: float | None) -> None:
    """What newer versions add is passed over."""
    body = field(1, field(2, field(2, field(1, b"x") + field(5, field(1, data)))))
    found = [p.value for export in protobuf.decode(body) for p in export.points]
    assert found == ([] if value is None else [pytest.approx(value, nan_ok=True)])


def test_protobuf_attributes() -> None:
    """Every kind that is a name of something; a list is none."""
    kinds = {
        b"s": field(1, "é\n".encode()),
        b"b": flag(2, 1),
        b"i": flag(3, (1 << 64) - 7),
        b"d": field(4, 0.5),
        b"l": field(5, b""),
    }
    pairs = b"".join(field(7, field(1, key) + field(2, value)) for key, value in kinds.items())
    body = field(1, field(2, field(2, field(1, b"x") + field(5, field(1, field(4, 1.0) + pairs)))))
    assert protobuf.decode(body)[0].points[0].attributes == {"s": "é ", "b": "true", "i": "-7", "d": "0.5", "l": ""}


@pytest.mark.parametrize("packed", [True, False])
def test_protobuf_histogram(packed: bool) -> None:
    """Its lists in one piece or number by number, as old encoders write them."""
    counts, bounds = [1, 2, 3], [0.5, 1.5]
    if packed:
        lists = field(6, b"".join(field(1, c)[1:] for c in counts)) + field(
            7, b"".join(field(1, b)[1:] for b in bounds)
        )
    else:
        lists = b"".join(field(6, c) for c in counts) + b"".join(field(7, b) for b in bounds)
    row = field(2, 5_000_000_000) + field(3, 9_000_000_000) + field(4, 6) + field(5, 7.5) + lists
    body = field(1, field(2, field(2, field(9, field(1, row) + flag(2, 1)) + field(1, b"t"))))
    (found,) = protobuf.decode(body)[0].points
    assert found == Point("t", {}, 9.0, 5.0, 6.0, True, True, Buckets((0.5, 1.5), (1, 2, 3), 7.5))


@pytest.mark.parametrize("number", [10, 11], ids=["exponential", "summary"])
def test_what_nobody_reads_is_counted(number: int) -> None:
    """Silence must not look like all was read."""
    body = field(1, field(2, field(2, field(1, b"x") + field(number, field(1, field(4, 3)) * 2))))
    assert protobuf.decode(body) == [Export({}, (), 2)]
    kind = {10: "exponentialHistogram", 11: "summary"}[number]
    assert jsonform.decode(json.dumps(request([{"name": "x", kind: {"dataPoints": [{}, {}]}}])).encode())[0].unread == 2


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"\x0a\xff\x01", "this is no metrics request: a field is longer"),
        (b"\x00\x00", "this is no metrics request"),
        (b"\x0b", "this is no metrics request"),
        (b"\xff" * 30, "this is no metrics request"),
        (b"\x08\x01", "no resource metrics"),
        (b'{"resourceMetrics": []}', "this is no metrics request"),
        (field(1, field(2, field(2, field(1, b"h") + field(9, field(1, field(6, b"12345")))))), "multiple of 8"),
        (field(1, field(2, field(2, field(1, b"h") + field(9, field(1, field(6, b"x" * 16)))))), "one more"),
    ],
)
def test_protobuf_nonsense(body: bytes, line: str) -> None:
    """A line that says what is wrong."""
    with pytest.raises(ValueError, match=line):
        protobuf.decode(body)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"\x0a\x05", "not JSON"),
        (b"[]", "must be a mapping with resourceMetrics"),
        (b'{"resourceSpans": []}', "must be a mapping with resourceMetrics"),
        (b'{"resourceMetrics": 3}', "resourceMetrics must be a list"),
        (b'{"resourceMetrics": [3]}', r"resourceMetrics\[0\] must be a mapping"),
        (as_json(gauge("x", point([]))), "metrics.0..gauge.dataPoints.0.: '..' is not"),
        (as_json(gauge("x", point("many"))), "'many' is not a number"),
        (as_json(histogram("x", [1, 2], 3.0)), "2 counts for 3 bounds"),
        (as_json(histogram("x", [1, 2, -3, 4], 3.0)), "cannot have counted -3.0"),
        (b"[" * 100_000, "not JSON"),
        (as_json(gauge("x", {"asInt": 1})).replace(b"1", b"9" * 9000), "not JSON|not a number"),
    ],
)  # fmt: skip
def test_json_nonsense(body: bytes, line: str) -> None:
    """A line that says what is wrong and where."""
    with pytest.raises(ValueError, match=line):
        jsonform.decode(body)


@pytest.mark.parametrize("decode", [protobuf.decode, jsonform.decode], ids=["protobuf", "json"])
def test_an_empty_request(decode: Callable[[bytes], list[Export]]) -> None:
    """Is one, and says nothing."""
    assert decode(b"" if decode is protobuf.decode else b"{}") == []


@pytest.mark.parametrize(
    ("file", "decode"), [("sdk-1.45-2.bin", protobuf.decode), ("sdk-1.45-2.json", jsonform.decode)]
)
def test_turned_bytes_never_raise_anything_else(file: str, decode: Callable[[bytes], list[Export]]) -> None:
    """A true request with bytes turned, taken out and put in, and each of its beginnings."""
    body, chance = (OTLP / file).read_bytes(), random.Random(7)
    bodies = [body[:end] for end in range(0, len(body), 7)]
    for _ in range(400):
        turned = bytearray(body)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(turned))
            turned[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        bodies.append(bytes(turned))
    read = 0
    for each in bodies:
        try:
            read += bool(decode(each))
        except ValueError as error:
            assert 10 < len(str(error)) < 600
    assert read
