"""A parcel goes over the network as it was put together, or is refused in one line."""

import json
import math
from typing import Any

import pytest

from gyrostat.wire import Ack, Exit, Hello, Record
from gyrostat_agent.cluster.parcel import MOST_ITEMS, Parcel, ParcelError, packed, unpacked
from gyrostat_agent.journal.codec import text_of
from gyrostat_rules.inputs import AlertTold, Answer, Batch, Died, Ended, FaultLine, Forwarded, SourceState, Tick

NAN = float("nan")
RECORD = Record("trainer", 9, "life", 0, 5, 41, 1000.0, {"loss": NAN, "grad_norm": math.inf, "reward": 0.5})
ITEMS = (
    RECORD,
    Hello("跑", "trainer", 9, 16, "life", checkpoint_root="/检查点"),
    Answer("trainer", 9, "life", Ack(3, "i0001.1", "applied", 41, "", {"lr_scale": 0.5})),
    Ended("trainer", 9, "life"),
    Died("supervisor", Exit("trainer", 9, 0, -9, False)),
    FaultLine("trainer", 9, "nccl_timeout", "watchdog"),
    AlertTold("GpuHot{rank=0,role=gpu}", "GpuHot", {"role": "gpu"}, "firing", 3, 5, 91.0, "hot", {"a": [1, 2.5]}),
)
PARCEL = Parcel("run", "node-1", "abc", 7, 3, ITEMS, True)


def same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right)


def test_what_was_put_in_comes_out() -> None:
    """Every kind of item, NaN and infinity bit for bit in meaning, names of any script."""
    assert same(unpacked(packed(PARCEL, 1000.0), 1000.5), PARCEL)


@pytest.mark.parametrize("ahead", [-600.0, 600.0])
def test_records_are_retimed_where_clocks_differ(ahead: float) -> None:
    """A node whose clock is minutes off is neither late at every step nor of the future."""
    body = packed(PARCEL._replace(items=(RECORD._replace(time=1000.0 + ahead),)), 1001.0 + ahead)
    (record,) = unpacked(body, 1001.0).items
    assert isinstance(record, Record) and record.time == pytest.approx(1000.0)


def spoilt(**changed: object) -> bytes:
    head, _, rest = packed(PARCEL, 1000.0).partition(b"\n")
    return json.dumps({**json.loads(head), **changed}).encode() + b"\n" + rest


def items(*raw: object) -> bytes:
    head, _, _ = packed(PARCEL, 1000.0).partition(b"\n")
    return head + b"\n" + json.dumps({"type": "Batch", "at": 1000.0, "items": raw}).encode()


def record(**changed: object) -> dict[str, object]:
    return {"type": "Record", **RECORD._asdict(), "values": {"loss": 1.0}, **changed}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\n", b"null\n{}", b"\xff\xfe", b"{" * 5000, spoilt(version=2), spoilt(number=0), spoilt(number="7"),
        spoilt(number=True), spoilt(term=-1), spoilt(node=""), spoilt(node="x" * 300), spoilt(run=5), spoilt(life=[]),
        packed(PARCEL, 1000.0)[:-9], packed(PARCEL, 1000.0).partition(b"\n")[0],
        items(record(rank="0")), items(record(rank=-1)), items(record(rank=1 << 40)), items(record(values=[])),
        items(record(values={"loss": "1"})), items(record(step=1.5)), items(record(time=None)), items({"type": "Pack"}),
        items(record(load={"layers": 1, "loops": 1, "experts": 2, "counts": "?"})), items("x"), items(None),
        items({"type": "AlertTold", "key": "k", "rule": 5, "labels": {}, "state": "firing", "onset": 1, "step": 1,
               "value": 1.0, "why": ""}),
        packed(PARCEL, 1000.0).partition(b"\n")[0] + b"\n" + text_of(Tick(1.0)),
    ],
)  # fmt: skip
def test_whatever_is_no_parcel_is_refused(body: bytes) -> None:
    """Nothing of a wrong type, of a kind that no fellow forwards, or beyond all bounds comes near the engine."""
    with pytest.raises(ParcelError):
        unpacked(body, 1000.0)


def test_no_item_that_no_fellow_forwards() -> None:
    """A source's word, or a parcel in a parcel, would say what is not that node's to say."""
    for item in (SourceState("ledger", "damaged", "x"), Forwarded("node-2", (RECORD,))):
        head = packed(PARCEL, 1000.0).partition(b"\n")[0]
        with pytest.raises(ParcelError, match="no agent forwards"):
            unpacked(head + b"\n" + text_of(Batch(1000.0, (item,))), 1000.0)


def test_too_many_items_are_refused() -> None:
    """A parcel is bounded, whatever fits into its bytes."""
    many = PARCEL._replace(items=(Ended("trainer", 1, "x"),) * (MOST_ITEMS + 1))
    with pytest.raises(ParcelError, match="more than"):
        unpacked(packed(many, 1000.0), 1000.0)
