"""The ledger's second place, an annotation of the job: what must be known should the checkpoints' disk be an older
copy.

Bounded: the facts go in packed, and where they are too many only their counts. Both are written before anything is
done that may end the pod; what is read at the start is the newer of the two, and where the newer one holds counts
alone, the run is only observed.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_agent import ledgerfile

KEY = "gyrostat-ledger"
MOST = 8 << 10  # bytes: the annotations of an object may have 256 KiB together, and etcd keeps every writing of it
_UNPACKED = 8 << 20
_COUNTS = ("next_directive", "incident_count")


class Noted(NamedTuple):
    """What stands on the job. ``facts`` None where they were too many: then the counts alone."""

    counts: tuple[int, int]
    facts: dict[str, Any] | None


def written(facts: Mapping[str, Any], head: str) -> dict[str, str]:
    """As an annotation."""
    whole = {**facts, "journal_head": head}
    short = {"version": facts.get("version"), **{name: facts.get(name, 0) for name in _COUNTS}, "journal_head": head}
    packed = base64.b64encode(zlib.compress(json.dumps(whole, allow_nan=False).encode(), 6)).decode()
    text = json.dumps({**short, "facts": packed})
    return {KEY: text if len(text) <= MOST else json.dumps(short)}


def read(annotations: Mapping[str, str]) -> tuple[Noted | None, str]:
    """``(what stands there, "")``, ``(None, "")`` where nothing does, ``(None, why)`` where it cannot be believed."""
    text = annotations.get(KEY)
    if text is None:
        return None, ""
    try:
        raw = json.loads(text[: 2 * MOST])
        counts = (int(raw[_COUNTS[0]]), int(raw[_COUNTS[1]]))
        facts = _unpacked(raw["facts"]) if "facts" in raw else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, zlib.error, binascii.Error):
        return None, f"annotation {KEY} of the job cannot be read"
    return Noted(counts, facts), ""


def newer(
    found: Mapping[str, Any] | None, why: str, noted: Noted | None, doubt: str
) -> tuple[dict[str, Any] | None, str]:
    """Which ledger to take up: that beside the checkpoints (``found``, ``why``) or that on the job, the newer one."""
    beside = dict(found) if found is not None else None
    if why or doubt:
        return None, why or doubt
    if noted is None or (beside is not None and counts_of(beside) >= noted.counts):
        return beside, ""
    if noted.facts is not None:
        return noted.facts, ""
    lacks = "is older" if beside is not None else "is not here"
    number = noted.counts[0] - 1
    return None, f"the job remembers directive {number}, and the ledger beside the checkpoints {lacks}"


def counts_of(facts: Mapping[str, Any]) -> tuple[int, int]:
    """What grows with all that is done."""
    try:
        return int(facts[_COUNTS[0]]), int(facts[_COUNTS[1]])
    except (KeyError, TypeError, ValueError):
        return 0, 0


def _unpacked(packed: str) -> dict[str, Any]:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(base64.b64decode(packed, validate=True), _UNPACKED)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError("too long")
    facts = ledgerfile.parsed(data)
    if not isinstance(facts, dict):
        raise ValueError("no ledger")
    return facts
