"""What a user of the callback has set."""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Settings(NamedTuple):
    """What ``GyrostatCallback`` was given. ``checkpoints``: absolute path, '' for none; ``patience``: seconds."""

    checkpoints: str
    every: int
    keep: int
    guard: bool
    patience: float
    pass_over: Callable[[Sequence[int]], None] | None


def settings(
    checkpoints: str, every: int, keep: int, guard: bool, patience: float,
    pass_over: Callable[[Sequence[int]], None] | None,
) -> Settings:  # fmt: skip
    """The settings; raises ValueError where they make no sense."""
    if every < 0 or keep < 1 or not 0 <= patience < 86400:
        raise ValueError(
            f"GyrostatCallback(every={every}, keep={keep}, patience={patience}): every is 0 or more steps, "
            "keep at least 1 checkpoint, patience 0 to 86400 seconds"
        )
    if every and not checkpoints:
        raise ValueError(
            f"GyrostatCallback(every={every}): say where too, GyrostatCallback('checkpoints', every={every})"
        )
    return Settings(checkpoints, every, keep, guard, patience, pass_over)
