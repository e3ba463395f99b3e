"""The entries of an incident that is mended at the second try, as an engine writes them; times are a second apart."""

from typing import Any

from gyrostat_rules.entries import Entry, EntryKind

KEY = "Poison{rank=0,role=trainer}"
FIRED = 1003.0


def entry(turn: int, kind: str, subject: str, state: str, text: str = "", at: float = 0.0, **data: Any) -> Entry:
    """Its id and its time by its number."""
    return Entry(f"{turn:08d}.0", at or 1000.0 + turn, turn, kind, subject, state, text, data)


def alert(number: int, state: str, key: str = KEY, severity: str = "critical") -> Entry:
    return entry(number, EntryKind.ALERT, key, state, f"{key} {state}", severity=severity)


def incident(number: int, state: str, text: str = "", **data: Any) -> Entry:
    return entry(number, EntryKind.INCIDENT, "i0001", state, text, incident_kind="nonfinite", onset=2, **data)


def action(turn: int, name: str, state: str, remedy: str = "", **data: Any) -> Entry:
    facts = {"incident": "i0001", "remedy": remedy, **data} if remedy else data
    return entry(turn, EntryKind.ACTION, name, state, f"{name} {state}", **facts)


def mended() -> list[Entry]:
    """It fires, a rung is passed by, one is held, sent, answered by two ranks, fails; the next one holds."""
    return [
        alert(1, "pending"),
        alert(2, "firing"),
        incident(3, "open", "loss is nan", alerts=[KEY]),
        action(4, "i0001.1", "passed by", "skip_data"),
        action(5, "i0001.2", "planned", "turn"),
        action(6, "i0001.2", "hold", "turn"),
        incident(7, "held", "needs approval"),
        action(8, "i0001.2", "sent", "turn", number=1),
        incident(9, "acting"),
        action(10, "i0001.2", "applied", by="trainer/0"),
        action(11, "i0001.2", "refused", by="trainer/1"),
        incident(12, "probation"),
        alert(13, "resolved"),
        action(14, "i0001.2", "ineffective", "turn"),
        incident(15, "open", "turn did not hold"),
        action(16, "i0001.3", "planned", "rollback"),
        action(17, "i0001.3", "sent", "rollback", number=2),
        action(18, "i0001.3", "applied", by="trainer/0"),
        incident(19, "probation"),
        action(20, "i0001.3", "done", "rollback"),
        incident(21, "resolved", "mended by rollback"),
    ]
