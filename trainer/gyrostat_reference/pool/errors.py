"""What a roll-out may fail with; the package's docstring draws the tree."""


class PoolError(Exception):
    """A roll-out could not be finished; the pool may be used again."""


class SessionLost(PoolError):
    """A session was handed over more often than its budget allows.

    ``session`` is its place in the roll-out, ``item`` the item it answers, ``why`` what happened last, ``times``
    how many workers failed at it.
    """

    def __init__(self, session: int, item: int, why: str, times: int) -> None:
        super().__init__(
            f"session {session} (item {item}) failed {times} times, over its budget of {times - 1} hand-overs;"
            f" the last time: {why}. If it is always the same item, pass that item over"
        )
        self.session, self.item, self.why, self.times = session, item, why, times


class WorkersLost(PoolError):
    """Rollout workers cannot be started, or die faster than they may be replaced."""
