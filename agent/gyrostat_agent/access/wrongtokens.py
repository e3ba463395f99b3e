"""Wrong tokens: guesses are slowed down, by whom they come from and all together, and said once a burst.

Asked by the word server's threads before a token is compared. It is slow for whoever guesses, not for the agent: no
thread sleeps, a request that comes too soon is only answered. A request without a token is no guess: any web page can
make a browser send one, and must not lock its user out.
"""

import ipaddress
import threading
import time
from collections.abc import Callable

from gyrostat_agent.allowance import Allowance

_PEER_BURST, _PEER_PER_SECOND = 5, 0.2
_ALL_BURST, _ALL_PER_SECOND = 50, 2.0
_LINES_BURST, _LINES_PER_SECOND = 10, 1.0 / 60.0
_QUIET_SECONDS = 60.0  # without a guess, and the next one is another burst
_MOST_PEERS = 1024


class _Peer:
    def __init__(self, clock: Callable[[], float]) -> None:
        self.guesses = Allowance(_PEER_PER_SECOND, _PEER_BURST, clock)
        self.last = -_QUIET_SECONDS
        self.known = False  # it has shown the right token: a flood of others' guesses does not keep it out


class WrongTokens:
    """``say`` gets one line for the operator; ``clock`` gives seconds that never go back."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._all = Allowance(_ALL_PER_SECOND, _ALL_BURST, clock)
        self._lines = Allowance(_LINES_PER_SECOND, _LINES_BURST, clock)
        self._peers: dict[str, _Peer] = {}
        self._lock = threading.Lock()

    def too_many(self, address: str) -> bool:
        """True where this address must wait before another token of it is looked at."""
        with self._lock:
            peer = self._peers.get(_group(address))
        if peer is None:
            return self._all.spent
        return peer.guesses.spent or (not peer.known and self._all.spent)

    def right(self, address: str) -> None:
        """It has shown the right one."""
        self._peer(address).known = True

    def wrong(self, address: str) -> None:
        """It has shown a wrong one."""
        peer = self._peer(address)
        peer.guesses.take()
        self._all.take()
        now = self._clock()
        fresh, peer.last = now - peer.last >= _QUIET_SECONDS, now
        if fresh and self._lines.take():
            self._say(f"a wrong token from {address}; it is slowed down, and the next ones are not said")

    def _peer(self, address: str) -> _Peer:
        name = _group(address)
        with self._lock:
            peer = self._peers.pop(name, None) or _Peer(self._clock)
            if len(self._peers) >= _MOST_PEERS:
                del self._peers[next(iter(self._peers))]
            self._peers[name] = peer  # the one that was heard of last goes last
            return peer


def _group(address: str) -> str:
    """Whom an address belongs to: of IPv6 one machine has 2**64."""
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(number) if number.version == 4 else str(ipaddress.ip_network((number, 64), strict=False))
