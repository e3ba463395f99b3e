"""Watcher: what a tool is fed, row by row, and what it says; Peer: a tool with the settings it is tried in.

A watcher sees the numbers of one run as Gyrostat's own reader names them, in their order, and nothing of what comes
later. Where that reader undoes a logger's filter, every tool gains by it.
"""

import importlib
import math
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol


class Alarm(NamedTuple):
    """What a tool says. ``grave``: what it calls critical itself; a tool without severities calls everybody."""

    what: str
    grave: bool = True


class Watcher(Protocol):
    """One tool beside one run."""

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """Take a row in. Not ``asked``, a tool that judges its whole log anew may keep silent until it is."""
        ...


class Setting(NamedTuple):
    """A tool's parameters in words, and the tool made with them."""

    words: str
    made: Callable[[], Watcher]


class Peer(NamedTuple):
    """A tool. ``settings``: the first is how it comes; ``needs``: modules that must be there; ``reads``: in words.

    ``stands``: it says at each row what is so, not what is new; ``every``: rows between two questions, for a tool that
    judges its whole log each time. While a fault is due it is asked at every row.
    """

    name: str
    settings: tuple[Setting, ...]
    reads: str
    needs: tuple[str, ...] = ()
    stands: bool = False
    every: int = 1

    def missing(self) -> str:
        """Why it cannot be tried here, or ''."""
        for module in self.needs:
            try:
                importlib.import_module(module)
            except Exception as error:  # a peer may break in any way at all: it is then left out, with the reason
                return f"{module} cannot be imported ({type(error).__name__}: {error})"
        return ""


class Breached:
    """What is out of bounds now, by series: a row that does not tell a series leaves it as it was."""

    def __init__(self) -> None:
        self.now: dict[str, Alarm] = {}

    def mark(self, what: str, breached: bool) -> None:
        """Set or clear one."""
        if breached:
            self.now.setdefault(what, Alarm(what))
        else:
            self.now.pop(what, None)

    def odd(self, series: str, value: float, told: bool = True) -> bool:
        """Whether a value is not finite; an alarm where ``told``."""
        odd = not math.isfinite(value)
        self.mark(f"{series} is not finite", odd and told)
        return odd
