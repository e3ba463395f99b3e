"""Sender: forwards what waits to the agent that decides, in a thread of its own; the loop only fills the outbox.

A parcel is sent again, under its number, until it is known to have been taken: whoever takes it counts numbers, so none
is taken twice. While nobody decides, or cannot be reached, all waits, bounded. What is sent bears the token.
"""

import http.client
import secrets
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent import onepost
from gyrostat_agent.address import split
from gyrostat_agent.cluster.outbox import Outbox, Portion
from gyrostat_agent.cluster.parcel import Parcel, packed
from gyrostat_agent.cluster.post import Post
from gyrostat_agent.errors import SetupError
from gyrostat_agent.journal import CodecError

PATH = "/v1/parcels"
_SAID = 200
_FOR_GOOD = (400, 413, 422)


class Pace(NamedTuple):
    """Seconds: between parcels, at least, where nothing is urgent; between signs of life; that a post may take; and of
    the first and the longest wait after one that failed, doubled in between."""

    gather: float = 1.0
    life: float = 3.0
    answer: float = 5.0
    first: float = 0.5
    longest: float = 5.0


PACE = Pace()


class Sender:
    """``post`` says who decides; ``token`` reads the token, or raises SetupError."""

    def __init__(
        self, run: str, node: str, outbox: Outbox, post: Callable[[], Post], token: Callable[[], bytes],
        pace: Pace = PACE, clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._run, self._node, self._outbox, self._post, self._token = run, node, outbox, post, token
        self._pace, self._clock = pace, clock
        self._life = secrets.token_hex(8)
        self._number, self._leader = 0, ""
        self._portion: Portion | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._live, name="forwarding", daemon=True)
        self.sent = 0
        self.fault = ""
        self.reached = -float("inf")  # monotonic seconds of the last parcel that was taken

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Send what waits and say goodbye, where that can be done at once; then end."""
        self._ending.set()
        self._outbox.urgent.set()
        self._thread.join(2.0)

    def step(self, *, leaves: bool = False) -> bool:
        """Send one parcel; True where it was taken, or there is nobody to send to."""
        post = self._post()
        if post.leads or not post.leader or not post.address:
            self.fault = post.fault if not post.leads else ""
            self._outbox.urgent.clear()  # nobody can be told: else the thread would never rest
            return True
        if post.leader != self._leader:  # what was on its way to another may be there: its number is not given again
            self._portion, self._number, self._leader = None, self._number + 1, post.leader
        portion = self._portion = self._portion or self._outbox.next()
        parcel = Parcel(
            self._run, self._node, self._life, self._number, post.term, portion.items, portion.introduces, leaves
        )
        self.fault, for_good = self._send(post, parcel)
        if for_good:  # it will be said again to the same bytes: better without them than never again
            self._outbox.lose(portion)
            self._portion, self._number = None, self._number + 1
        if self.fault:
            return False
        self._outbox.done(portion)
        self._portion, self._number = None, self._number + 1
        self.sent += len(portion.items)
        self.reached = time.monotonic()
        return True

    def _send(self, post: Post, parcel: Parcel) -> tuple[str, bool]:
        """Why it was not taken, in words, '' where it was; and whether it never will be."""
        try:
            host, port = split(post.address, "the leader's address", "10.0.0.1:9468")
            body = packed(parcel, self._clock())
            bearer = self._token().decode("ascii")
        except (SetupError, UnicodeDecodeError) as error:
            return clean(str(error))[:_SAID], False
        except CodecError as error:
            return clean(str(error))[:_SAID], True
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {bearer}"}
        try:
            said = onepost.send(host, port, PATH, body, headers, self._pace.answer)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return f"{post.leader} at {post.address} cannot be reached: {clean(str(error))[:_SAID]}", False
        if said.status == 200:
            return "", False
        why = clean(said.body.decode("utf-8", "replace"))[:_SAID]
        return f"{post.leader} at {post.address}: status {said.status}: {why}", said.status in _FOR_GOOD

    def _live(self) -> None:
        wait, last = 0.0, 0.0
        while True:
            ending = self._ending.is_set()
            began = time.monotonic()
            well = self._try(ending)
            if ending:
                return
            wait = 0.0 if well else min(self._pace.longest, max(self._pace.first, 2 * wait))
            last = began if well else last
            self._rest(wait, last)

    def _try(self, leaves: bool) -> bool:
        try:
            return self.step(leaves=leaves)
        except Exception as error:  # what nobody foresaw must not end the one who forwards
            self.fault = f"internal error: {type(error).__name__}: {clean(str(error))[:_SAID]}"
            return False

    def _rest(self, wait: float, last: float) -> None:
        """Until a parcel is due: at once where something is urgent, but not before a failed one's wait is over."""
        if wait:
            self._ending.wait(wait)
            return
        if self._outbox.urgent.wait(self._pace.gather):
            return
        while not self._outbox.waiting and time.monotonic() - last < self._pace.life:
            if self._outbox.urgent.wait(self._pace.gather):
                return
