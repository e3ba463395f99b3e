"""Pruning: which pins no rule keeps, once no agent is there that lets go of them, and what their removal gives back.

The rules are those by which an agent keeps them (``keeping``), and what a person adds: so many certified ones, nothing
younger than so long. Only pins are looked at: what lies beside them is the trainer's, and its rotation's. Called by
``gyrostat checkpoints prune``, under the run's lock; nothing here deletes.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gyrostat_agent.checkpoints.pins import FOLDER
from gyrostat_rules.certify import name_of, newest_first
from gyrostat_rules.inputs import CheckpointSeen, Fit
from gyrostat_rules.keeping import keep
from gyrostat_rules.requests import why_not
from gyrostat_rules.state import State

_DEPTH = 8  # of folders in a checkpoint


class Pin(NamedTuple):
    """A pin as it lies there: all its bytes, those that nothing else holds, and when it was made (Unix seconds)."""

    name: str
    bytes: int
    frees: int
    made_at: float


class Wish(NamedTuple):
    """What is asked for: certified ones to keep, at least one; and how old in seconds what goes must be at least."""

    newest: int = 2
    older: float = 0.0


class Judged(NamedTuple):
    """A pin, whether it stays, and why."""

    pin: Pin
    stays: bool
    why: str


def pins_of(root: str) -> list[Pin]:
    """The pins under ``root``, by name; none where their folder is not ours. Raises OSError."""
    folder = os.path.join(root, FOLDER)
    if os.path.islink(folder) or not os.path.isdir(folder):
        return []
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    return [_pin(folder, name) for name in names if os.path.isdir(os.path.join(folder, name))]


def judged(state: State, pins: Sequence[Pin], wish: Wish, now: float) -> list[Judged]:
    """Each of the pins with a reason; what no rule keeps is old enough and was judged before it goes."""
    kept = _kept(state, wish)
    seen = {name_of(each.path): each for each in state.checkpoints.values() if each.why != Fit.GONE}
    return [Judged(pin, *_one(pin, seen.get(pin.name), kept, wish, now, state)) for pin in pins]


def needed(state: State, newest: int) -> dict[str, str]:
    """Names of checkpoints that no pruning may take, pins or archives, each with its reason."""
    found = {name: f"tagged {', '.join(tags)}" for name, tags in state.tags.items()}
    for incident in state.incidents:
        if incident.open:
            pointed = [incident.wanted, *incident.tried_targets, *(_target(a.arguments) for a in incident.actions)]
            found |= {name_of(path): f"incident {incident.id} points to it" for path in pointed if path}
    names = dict.fromkeys(name_of(s.path) for s in newest_first(state) if not why_not(state, s, certified_only=True))
    for place, name in enumerate(list(names)[: max(1, newest)]):
        found.setdefault(name, f"one of the newest {newest} certified" if place else "the last certified one")
    return found


def _kept(state: State, wish: Wish) -> dict[str, str]:
    found = needed(state, wish.newest)
    for name in keep(state, max(1, wish.newest)).names:
        found.setdefault(name, "may yet be needed: verified, and newer than the certified ones, or proposed")
    return found


def _one(
    pin: Pin, seen: CheckpointSeen | None, kept: dict[str, str], wish: Wish, now: float, state: State
) -> tuple[bool, str]:
    if why := kept.get(pin.name):
        return True, why
    if seen is None:
        return True, "nobody has judged it yet"
    if now - pin.made_at < wish.older:
        return True, "younger than was asked for"
    reason = why_not(state, seen, certified_only=True)
    return False, reason or f"certified, and so are {max(1, wish.newest)} newer ones"


def _target(arguments: dict[str, object]) -> str:
    path = arguments.get("checkpoint", "")
    return path if isinstance(path, str) else ""


def _pin(folder: str, name: str) -> Pin:
    files = list(_files(os.path.join(folder, name)))
    frees = sum(each.st_size for each in files if each.st_nlink == 1)
    return Pin(name, sum(each.st_size for each in files), frees, os.lstat(os.path.join(folder, name)).st_mtime)


def _files(path: str, depth: int = 0) -> Iterator[os.stat_result]:
    with os.scandir(path) as found:
        for each in found:
            info = each.stat(follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode) and depth < _DEPTH:
                yield from _files(each.path, depth + 1)
            elif stat.S_ISREG(info.st_mode):
                yield info
