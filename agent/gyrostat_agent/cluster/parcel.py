"""Parcel: what one agent forwards at once to the one that decides, as bytes and back. Called by sender and intake.

::

    parcel = {"version": 1, "run", "node", "life", "number", "term", "introduces", "leaves"} LF Batch as JSON

The Batch is as the journal writes it, its time the sender's clock when it was posted. Whoever bears the token is a
fellow agent, and yet nothing is taken as it comes: another version's agent, or a mistake, must not be met in the middle
of deciding. So every field is of its type, names are short, and no item is of a kind that no fellow forwards.
"""

import json
import math
from typing import Any, NamedTuple

from gyrostat.wire import Hello, Record
from gyrostat.wire.fields import MessageError, read, text, whole
from gyrostat_agent.journal import CodecError
from gyrostat_agent.journal.codec import from_text, text_of
from gyrostat_rules.inputs import AlertTold, Answer, Batch, Died, Ended, FaultLine, Item
from gyrostat_rules.plausible import misfit

VERSION = 1
MOST_ITEMS = 4096
_HEAD_BYTES, _NAME = 4096, 200
_RANKS = 1 << 20
_SKEW = 2.0  # seconds by which two clocks, and the way between, may differ without a word
_FORWARDED = (Record, Hello, Answer, Ended, Died, FaultLine, AlertTold)


class ParcelError(ValueError):
    """These bytes are no parcel that this agent takes, and why."""


class Parcel(NamedTuple):
    """``life`` is the sending agent's, ``number`` counts in it from 1; ``term`` is that of the leader it is for.

    ``introduces``: it begins with all that a new leader must know of this node. ``leaves``: the agent ends in order.
    """

    run: str
    node: str
    life: str
    number: int
    term: int
    items: tuple[Item, ...] = ()
    introduces: bool = False
    leaves: bool = False


def packed(parcel: Parcel, now: float) -> bytes:
    """Its bytes; ``now`` is the sender's clock. Raises CodecError where an item cannot be written."""
    head: dict[str, Any] = {"version": VERSION, **parcel._asdict()}
    del head["items"]
    return json.dumps(head).encode() + b"\n" + text_of(Batch(now, parcel.items))


def unpacked(body: bytes, now: float) -> Parcel:
    """The parcel, its times put right where the sender's clock is another; raises ParcelError.

    ``now`` is this agent's clock: what the two differ by is taken off each record, or a node whose clock is minutes
    behind would be late at every step.
    """
    head, _, rest = body.partition(b"\n")
    try:
        parcel = read("parcel", head[:_HEAD_BYTES], _headed)
        batch = from_text(rest)
    except (MessageError, CodecError) as error:
        raise ParcelError(str(error)) from None
    if not isinstance(batch, Batch) or type(batch.at) is not float or not math.isfinite(batch.at):
        raise ParcelError("it holds no batch")
    if not isinstance(batch.items, tuple) or len(batch.items) > MOST_ITEMS:
        raise ParcelError(f"it holds more than {MOST_ITEMS} items")
    for place, item in enumerate(batch.items):
        if why := _unlikely(item):
            raise ParcelError(f"item {place}: {why}")
    skew = now - batch.at
    return parcel._replace(items=tuple(_retimed(i, skew) for i in batch.items) if abs(skew) > _SKEW else batch.items)


def _headed(raw: dict[str, Any]) -> Parcel:
    if raw.get("version") != VERSION:
        raise MessageError(f"its version is {str(raw.get('version'))[:20]}; this agent reads {VERSION}")
    found = Parcel(text(raw, "run"), text(raw, "node"), text(raw, "life"), whole(raw, "number"), whole(raw, "term"))
    if not found.node or not found.life or max(map(len, found[:3])) > _NAME or found.number < 1 or found.term < 1:
        raise MessageError("its run, node, life, number or term cannot be")
    return found._replace(introduces=raw.get("introduces") is True, leaves=raw.get("leaves") is True)


def _unlikely(item: Item) -> str:
    """Why an item cannot be what a fellow forwards, or ''."""
    if not isinstance(item, _FORWARDED):
        return f"no agent forwards a {type(item).__name__}"
    if why := misfit(type(item), item, type(item).__name__):
        return why
    rank = item.exit.rank if isinstance(item, Died) else 0 if isinstance(item, AlertTold) else item.rank
    if not 0 <= rank < _RANKS:
        return f"there is no rank {rank}"
    return ""


def _retimed(item: Item, skew: float) -> Item:
    return item._replace(time=item.time + skew) if isinstance(item, Record) else item
