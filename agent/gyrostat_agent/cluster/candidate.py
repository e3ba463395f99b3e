"""Candidate: the election as it runs in one agent: looks at the lease every second, in a thread of its own.

A store that hangs keeps nobody from deciding on its own ranks: the loop reads ``post``, which never waits, and asks
``may_act`` right before anything is done. Whoever's loop does not pass any more neither renews nor wishes.
"""

import threading
import time
from collections.abc import Callable

from gyrostat_agent.cluster import election
from gyrostat_agent.cluster.election import Sight, Turn
from gyrostat_agent.cluster.lease import Holding, Lease, LeaseError, Wish
from gyrostat_agent.cluster.post import Post

_LOOK_EVERY = 1.0
_CLOSE_SECONDS = 2.0


class Candidate:
    """One agent's part in the election. ``step`` is one look at the lease; ``start`` has a thread do it."""

    def __init__(self, lease: Lease, node: str, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease, self._node, self._address, self._clock = lease, node, address, clock
        self._sight = Sight()
        self.least = 0  # the newest term that is known here: a store that began anew must not count from one again
        self._beat = 0
        self._fault = ""
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def post(self) -> Post:
        """Where this agent stands now; asks nobody."""
        sight = self._sight
        leads = election.may_act(sight, self._clock())
        if leads and sight.held is not None:
            return Post(True, self._node, sight.held.address, sight.held.term, self._fault)
        holding = sight.holding if sight.holding.holder != self._node else sight.holding._replace(holder="", address="")
        return Post(False, holding.holder, holding.address, sight.holding.term, self._fault)

    def may_act(self, term: int) -> bool:
        """True while this agent leads in that term and nobody else can."""
        sight = self._sight
        return election.may_act(sight, self._clock()) and sight.held is not None and sight.held.term == term

    def step(self, beside: bool, well: bool = True) -> None:
        """Look at the lease once and do what is due; ``well``: this agent's loop passes."""
        began = self._clock()
        try:
            holding, wish = self._lease.who(), self._lease.preferred()
            self._sight = election.see(self._sight, holding, wish, self._clock())
            if well:
                self._do(election.turn(self._sight, self._node, beside, self._clock()), began)
                self._wish_for_it(beside)
            self._fault = ""
        except LeaseError as error:
            self._fault = str(error)
        if self._sight.held is not None and not election.may_act(self._sight, self._clock()):
            self._sight = election.lost(self._sight, self._clock())

    def start(self, beside: Callable[[], bool], well: Callable[[], bool], wake: Callable[[], None]) -> None:
        """Look on in a thread; ``wake`` is called where this agent's post has changed."""
        self._thread = threading.Thread(target=self._run, args=(beside, well, wake), name="election", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give the lease back and look no more; not for long where the store hangs."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def leave(self) -> None:
        """Give the lease back, where it is this agent's."""
        held, self._sight = self._sight.held, election.lost(self._sight, self._clock())
        if held is not None:
            try:
                self._lease.release(held)
            except LeaseError as error:
                self._fault = str(error)

    def _do(self, turn: Turn, began: float) -> None:
        held = self._sight.held
        if turn == Turn.TAKE:
            self._keep(self._lease.try_take(self._sight.holding, self._node, self._address, self.least), began)
        elif turn == Turn.RENEW and held is not None:
            self._keep(self._lease.renew(held), began)
        elif turn == Turn.GIVE_WAY and held is not None:
            # No longer ours before others may know of it: nothing is done in between.
            self._sight = election.lost(self._sight, self._clock())
            self._lease.release(held, self._sight.wish.node)
        elif turn == Turn.STEP_DOWN:
            self._sight = election.lost(self._sight, self._clock())

    def _keep(self, held: Holding | None, began: float) -> None:
        now = self._clock()
        self._sight = election.lost(self._sight, now) if held is None else election.took(self._sight, held, began, now)

    def _wish_for_it(self, beside: bool) -> None:
        if beside and self._sight.held is None and self._sight.holding.holder not in ("", self._node):
            self._beat += 1
            self._lease.prefer(Wish(self._node, self._beat))

    def _run(self, beside: Callable[[], bool], well: Callable[[], bool], wake: Callable[[], None]) -> None:
        post = self.post
        while not self._ending.is_set():
            try:
                self.step(beside(), well())
            except Exception as error:  # what nobody foresaw must not end the one who renews
                self._fault = f"internal error: {type(error).__name__}: {error}"
            if self.post != post:
                post = self.post
                wake()
            self._ending.wait(_LOOK_EVERY)
        self.leave()
