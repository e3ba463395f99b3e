"""Checkpoints that outlive every process of the world, and the agent's view of them."""

from collections.abc import Sequence
from typing import NamedTuple

from gyrostat_rules.inputs import CheckpointSeen, Fit
from gyrostat_rules.keeping import Keep


class Saved(NamedTuple):
    """One complete checkpoint; ``finite`` is the truth about its parameters."""

    path: str
    step: int
    segment: int
    last_directive: int
    finite: bool
    cursor: int
    passed_over: frozenset[int]
    lr_scale: float
    at: float

    @property
    def digest(self) -> str:
        return f"digest-of-{self.path}"


class Store:
    """The checkpoint root: what was written there completely, oldest first."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.saved: list[Saved] = []

    def path(self, step: int) -> str:
        """A name that was never used."""
        return f"{self.root}/step-{step:08d}-{len(self.saved)}"

    def find(self, path: str) -> Saved | None:
        return next((s for s in self.saved if s.path == path), None)

    def newest(self) -> Saved | None:
        """By age, as the reference trainer goes on from: the later segment, then the later step."""
        return max(self.saved, key=lambda s: (s.segment, s.step, s.at), default=None)


class View:
    """What one life of the agent sees: each checkpoint once, from when it knows the root."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = False
        self._told = 0

    def set_root(self, path: str) -> None:
        self._known = path == self._store.root

    def poll(self) -> None:
        """Nothing is slow here."""

    def drain(self) -> Sequence[CheckpointSeen]:
        if not self._known:
            return ()
        new, self._told = self._store.saved[self._told :], len(self._store.saved)
        return [_seen(s) for s in new]

    pin_fault = ""

    def keep(self, keep: Keep) -> None:
        """Nothing is deleted here."""

    def recheck(self, path: str, digest: str) -> CheckpointSeen:
        found = self._store.find(path)
        if found is not None and found.digest == digest:
            return _seen(found)
        return CheckpointSeen(path, -1, 0, digest, Fit.UNFIT, "it is gone", 0.0)


def _seen(saved: Saved) -> CheckpointSeen:
    fit, why = (Fit.VERIFIED, "") if saved.finite else (Fit.UNFIT, "a parameter is not finite")
    return CheckpointSeen(
        saved.path, saved.step, saved.segment, saved.digest, fit, why, saved.at, saved.last_directive, saved.cursor
    )
