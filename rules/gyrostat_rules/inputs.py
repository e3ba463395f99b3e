"""What the engine is fed: Batch, Tick, Command, Pack. Nothing else reaches it, and all of it is journaled.

Each input carries its time, ``at`` (Unix seconds): the engine has no clock of its own.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from gyrostat.wire import Ack, Exit, Hello, Record


class Answer(NamedTuple):
    """An Ack, and the rank that gave it."""

    role: str
    rank: int
    incarnation: str
    ack: Ack


class Ended(NamedTuple):
    """A process said goodbye: silence from it is no stall."""

    role: str
    rank: int
    incarnation: str


class Died(NamedTuple):
    """A supervisor saw its child end."""

    supervisor: str
    exit: Exit


class Fit:
    """What is known of a checkpoint. ``GONE`` is why one that is there no more is unfit."""

    VERIFIED = "verified"
    ATTESTED = "attested"
    UNFIT = "unfit"
    GONE = "gone"


UNTOLD = -1  # the segment of a checkpoint whose layout does not know of segments


class CheckpointSeen(NamedTuple):
    """A checkpoint as the sidecar found it.

    ``fit`` is verified (complete, digest matches, every number finite), attested (complete, digest, not
    readable without unpickling) or unfit, with ``why``. ``saved_at`` is Unix seconds. ``segment`` is UNTOLD where the
    layout says nothing of it: the one that the run is in when it is first seen.
    """

    path: str
    step: int
    segment: int
    digest: str
    fit: str
    why: str
    saved_at: float
    last_directive: int = 0
    data_cursor: int = -1
    knobs: Mapping[str, float] = {}


class SourceWord:
    """How a source fares."""

    FRESH = "fresh"
    STALE = "stale"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    GONE = "gone"


LEDGER = "ledger"  # the source by which is told that it cannot be written
GPUS = "gpus of "  # begins the name of the source by which is told whether the GPUs of a page are measured


class SourceState(NamedTuple):
    """How a source fares: fresh, stale, damaged, foreign or gone, and what was seen, in words."""

    source: str
    state: str
    detail: str


class DeliveryWord:
    """What an actuator knows at once. What is put off was not begun, and may be tried again."""

    FAILED = "failed"
    PUT_OFF = "put off"
    UNKNOWN = "unknown"


class Delivery(NamedTuple):
    """What an actuator could tell at once of an action: not delivered, not begun, or unknown whether."""

    action: str
    outcome: str
    reason: str


# What well-known error lines are about. Hardware: ``ecc``, ``xid_node``. No fault of the run's, worth a note at most:
# ``xid_remap``, ``engine_exit`` (an engine ends so at a run's normal end too), ``engine_memory``.
FaultKind = Literal[
    "oom", "oom_shared", "host_oom", "process_killed", "crashed", "actor_died", "dataloader", "nccl_timeout",
    "nccl_error", "nan", "loss_scale", "device_assert", "illegal_access", "ecc", "xid_node", "xid_contained",
    "xid_app", "xid_other", "checkpoint_failure", "engine", "xid_remap", "engine_exit", "engine_memory",
]  # fmt: skip


class FaultLine(NamedTuple):
    """A well-known error line of a log: of whom, of which ``kind`` (FaultKind), and what it says, in words."""

    role: str
    rank: int
    kind: str
    why: str


class AlertTold(NamedTuple):
    """An alert of another node's agent has turned: firing or resolved. ``key`` is by what it is known there."""

    key: str
    rule: str
    labels: Mapping[str, str]
    state: str
    onset: int
    step: int
    value: float
    why: str
    evidence: Mapping[str, Any] = {}


class Forwarded(NamedTuple):
    """What the agent on ``node`` forwards of its own ranks and alerts, in the order in which it saw it."""

    node: str
    items: "tuple[Item, ...]"


Item = (
    Record | Hello | Answer | Ended | Died | CheckpointSeen | SourceState | Delivery | FaultLine | AlertTold | Forwarded
)


class Batch(NamedTuple):
    """What all sources gave in one pass of the loop, in the order read."""

    at: float
    items: tuple[Item, ...]


class Tick(NamedTuple):
    """Time has passed."""

    at: float


class Verb:
    """What a command asks for."""

    CONFIGURE = "configure"
    APPROVE = "approve"
    DENY = "deny"
    PAUSE = "pause"
    RESUME = "resume"
    LEDGER = "ledger"
    DISTRUST = "distrust"
    TRUST = "trust"
    ROLLBACK = "rollback"
    TAG = "tag"
    ARM = "arm"
    DISARM = "disarm"
    SILENCE = "silence"
    UNSILENCE = "unsilence"
    STAND = "stand"


class Command(NamedTuple):
    """Somebody's word, by its Verb; or a ledger read at start."""

    at: float
    verb: str
    arguments: Mapping[str, Any] = {}


class Pack(NamedTuple):
    """Rules and playbooks, as text; ``digest`` names them in every entry that they lead to."""

    at: float
    digest: str
    text: str


Input = Batch | Tick | Command | Pack
