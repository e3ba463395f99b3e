"""Entry: one line of history, the engine's only output."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class EntryKind:
    """What an entry is about."""

    ALERT = "alert"
    INCIDENT = "incident"
    ACTION = "action"
    SOURCE = "source"
    CHECKPOINT = "checkpoint"
    COMMAND = "command"
    PACK = "pack"
    RULE = "rule"
    RUN = "run"
    BILL = "bill"
    PROPOSAL = "proposal"


class Entry(NamedTuple):
    """What was seen, decided or came of it.

    ``kind`` is of EntryKind; ``subject`` is the id of the alert, incident or action it is about; ``state`` is
    the state that the subject is in now; ``text`` says it in words; ``data`` holds the facts.
    """

    id: str
    at: float
    step: int
    kind: str
    subject: str
    state: str
    text: str
    data: Mapping[str, Any]
