"""Capabilities: what is missing for all of it to be done to this command, and which of it each missing thing turns off.

Said once at the start, and by ``gyrostat run --explain``: a person who learns it in the night learns it too late.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gyrostat_agent.launch.flags import Launcher
from gyrostat_agent.launch.tail import Plan
from gyrostat_agent.settings import Settings


class Row(NamedTuple):
    """One thing that is looked for: whether it is there, in words, and what is turned off where it is ``missing``."""

    what: str
    found: str
    missing: str


def rows(chosen: Settings, plan: Plan, tails: bool, launcher: Launcher | None) -> list[Row]:
    """All that is looked for, in the order in which a person would mend it."""
    return [
        _mode(chosen), _output(chosen, plan, tails), _checkpoints(chosen), _flags(launcher), _approvals(chosen),
        Row("the SDK", "not known before the trainer speaks", _NO_SDK),
    ]  # fmt: skip


def lines(told: Sequence[Row], *, missing: bool = False) -> list[str]:
    """A table; with ``missing`` only what is turned off."""
    if missing:
        told = [row for row in told if row.missing]
        wide = max((len(row.what) for row in told), default=0)
        return [f"{row.what:{wide}}  {row.missing}" for row in told]
    wide, found = max(len(row.what) for row in told), max(len(row.found) for row in told)
    return [f"{row.what:{wide}}  {row.found:{found}}  {row.missing or '-'}" for row in told]


_NO_SDK = "where the trainer does not use it: no rollback in process, no knobs, no data passed over, no saving first"


def _mode(chosen: Settings) -> Row:
    off = {
        "observe": "nothing is decided; --mode act does",
        "shadow": "nothing is done, only written down; --mode act does, or gyrostat arm RULE",
    }
    return Row("--mode", chosen.mode, off.get(chosen.mode, ""))


def _output(chosen: Settings, plan: Plan, tails: bool) -> Row:
    others = [log for log in chosen.logs if not (tails and log == chosen.logs[-1])]
    if others:
        return Row("its output", f"read from {', '.join(others)}", "")
    some = "; ".join((plan.left or {}).values())
    if tails:
        return Row("its output", "read", f"what goes there is not seen: {some}; --tail" if some else "")
    return Row(
        "its output", f"not read: {some or '--no-tail'}", "nothing is seen without the SDK; --log FILE, or --tail"
    )


def _checkpoints(chosen: Settings) -> Row:
    if chosen.checkpoints:
        return Row("--checkpoints", chosen.checkpoints[0], "")
    return Row("--checkpoints", "not given", "unless the SDK tells where they are: no restart from a certified one")


def _flags(launcher: Launcher | None) -> Row:
    if launcher is not None:
        return Row("its flags", f"known: {launcher.title}", "")
    return Row(
        "its flags", "not known", "without the SDK no restart, for nothing could tell it from where; --flags FILE"
    )


def _approvals(chosen: Settings) -> Row:
    waits = chosen.mode == "act" and chosen.approvals
    off = "rollback, restart and stop wait for gyrostat approve; --no-approvals" if waits else ""
    return Row("approvals", "asked for" if chosen.approvals else "not asked for", off)
