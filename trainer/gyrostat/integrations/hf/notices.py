"""Notices: what the integration has to say to the person at the terminal. One line each, on stderr, once.

Everything of ours that runs inside a training step runs through ``guard``: a trainer must never die of it.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")


class Notices:
    """Says each thing once. ``rank``: only rank 0 speaks, for all ranks meet the same trainer."""

    def __init__(self, rank: int = 0) -> None:
        self._rank = rank
        self.said: dict[str, str] = {}

    def say(self, about: str, text: str) -> None:
        """Say ``text``, unless something was said about this before. Never raises."""
        if about in self.said:
            return
        self.said[about] = text
        if self._rank == 0:
            with suppress(OSError, ValueError):  # stderr is closed: nobody is there to read it
                print(f"gyrostat: {text}", file=sys.stderr, flush=True)

    def guard(self, what: str, act: Callable[[], _T]) -> _T | None:
        """What ``act`` returns; None where it throws, which is said once. ``what``: "telling the step"."""
        try:
            return act()
        except Exception as error:  # ours, or met in the trainer's objects: the step goes on all the same
            reason = str(error).strip().splitlines()
            why = f"{type(error).__name__}: {reason[0][:200]}" if reason else type(error).__name__
            self.say(what, f"{what} failed, training goes on without it ({why})")
            return None
