"""How far an action has come, written on the job itself: whoever looks next goes on from there, and nobody begins it
again.

One annotation, one action: the newest. It is changed only together with what it tells of, in one patch that the
server takes as a whole and only if nothing was changed since the job was read. It names the job's uid, for
annotations are copied with manifests.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_agent.kubernetes.request import Object, annotations_of

KEY = "gyrostat-action"
RESTART, HOLD, GO_ON = "restart", "hold", "go on"
STOPPING, ASKING, ASKED, DONE, FAILED = "stopping", "asking", "asked", "done", "failed"
HAND = "by hand "
_MOST = 4096  # bytes
_NODES = 20


class Order(NamedTuple):
    """What is wanted of a job. ``number`` and ``action`` are the directive's; not begun after ``until`` (Unix s)."""

    run: str
    number: int
    action: str
    what: str
    until: float
    avoid: tuple[str, ...] = ()
    reason: str = ""

    @property
    def by_hand(self) -> bool:
        """True for what a person asks for: it takes no number from the directives that are to come."""
        return self.action.startswith(HAND)


class Progress(NamedTuple):
    """``step``: stopping, asking, asked, done or failed; ``before``: what Volcano counted before it."""

    uid: str
    run: str
    number: int
    action: str
    what: str
    until: float
    step: str
    avoid: tuple[str, ...] = ()
    before: Mapping[str, int] = {}
    said: str = ""

    @property
    def over(self) -> bool:
        """True where nothing is left to be done."""
        return self.step in (DONE, FAILED)


class ProgressError(ValueError):
    """The annotation is damaged: nobody knows what has been begun."""


def begun(job: Object, order: Order, step: str, before: Mapping[str, int] | None = None) -> Progress:
    """The first word on an action."""
    uid = str(job["metadata"]["uid"])
    return Progress(
        uid, order.run, order.number, order.action, order.what, order.until, step, order.avoid[:_NODES], before or {},
    )  # fmt: skip


def written(progress: Progress) -> dict[str, str]:
    """As an annotation."""
    return {KEY: json.dumps(progress._asdict(), ensure_ascii=False, separators=(",", ":"))}


def read(job: Object) -> Progress | None:
    """What stands on the job, None where nothing does or it is of another job's; raises ProgressError."""
    text = annotations_of(job).get(KEY)
    if text is None:
        return None
    try:
        found = _read(json.loads(text[:_MOST]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise ProgressError(
            f"annotation {KEY} cannot be read: nobody knows what has been begun. Look at the job, then remove it"
        ) from None
    return found if found.uid == job["metadata"]["uid"] else None


def _read(raw: Mapping[str, Any]) -> Progress:
    step = raw["step"]
    if step not in (STOPPING, ASKING, ASKED, DONE, FAILED) or raw["what"] not in (RESTART, HOLD, GO_ON):
        raise ValueError(step)
    return Progress(
        str(raw["uid"]), str(raw["run"]), int(raw["number"]), str(raw["action"]), raw["what"], float(raw["until"]),
        step, tuple(str(n) for n in raw.get("avoid", ())), {str(k): int(v) for k, v in raw.get("before", {}).items()},
        str(raw.get("said", "")),
    )  # fmt: skip
