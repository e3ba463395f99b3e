"""Push: tells each Alertmanager, in a thread of its own, what the newest view has; the loop only rings its bell.

It sees nothing but views, so that it can neither slow the loop nor change anything. What could not be told is told when
it can be: an alert as it is by then. What goes on is told again every minute and ends by itself a few minutes after the
last time, so that an agent that dies leaves no alert behind for ever; one that is told to end leaves what goes on for a
day, for nobody has said that it is over.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.alertpush.outbox import Outbox
from gyrostat_agent.alertpush.post import Answer, post
from gyrostat_agent.alertpush.target import Target, read_token, target
from gyrostat_agent.errors import SetupError
from gyrostat_exporters.alertmanager import Alert, Links, alerts, body
from gyrostat_exporters.metrics import Latest
from gyrostat_exporters.view import Pushed

_END_SECONDS = 3.0
NOTE = "The agent has ended: nobody watches this run now."


class Pace(NamedTuple):
    """Seconds: how often what goes on is told again, how long it then stands, and how long when the agent has ended;
    how long a post may take; the first and the longest wait after one that failed, doubled in between."""

    resend: float = 60.0
    stands: float = 240.0
    after_end: float = 86400.0
    answer: float = 10.0
    first: float = 1.0
    longest: float = 60.0


PACE = Pace()


class Push:
    """Tells all of ``urls``; ``say`` gets a line where that changes for better or worse. Raises SetupError."""

    def __init__(
        self, urls: Sequence[str], latest: Latest, links: Links, say: Callable[[str], None], *,
        token_file: str = "", pace: Pace = PACE,
    ) -> None:  # fmt: skip
        if token_file:
            read_token(token_file)
        targets = dict.fromkeys(map(target, urls))
        self._senders = [_Sender(each, latest, links, say, token_file, pace) for each in targets]

    def look(self) -> None:
        """There is a newer view; returns at once."""
        for sender in self._senders:
            sender.bell.set()

    def counts(self) -> tuple[Pushed, ...]:
        """How each fares."""
        return tuple(sender.counts() for sender in self._senders)

    def close(self) -> None:
        """Tell all once more that nobody watches from here on, for a few seconds at most, and end."""
        for sender in self._senders:
            sender.end()
        until = time.monotonic() + _END_SECONDS
        for sender in self._senders:
            sender.thread.join(max(0.0, until - time.monotonic()))


class _Sender:
    def __init__(
        self, where: Target, latest: Latest, links: Links, say: Callable[[str], None], token_file: str, pace: Pace
    ) -> None:
        self._where, self._latest, self._links, self._say = where, latest, links, say
        self._token_file, self._pace = token_file, pace
        self._outbox = Outbox(pace.resend)
        self._fault, self._wait, self._next = "", 0.0, 0.0
        self._ending = False
        self.bell = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"alertmanager {where.name}", daemon=True)
        self.thread.start()

    def counts(self) -> Pushed:
        """How it fares; numbers of another thread, each whole."""
        box = self._outbox
        return Pushed(self._where.name, box.sent, box.failed, box.dropped, box.waiting, self._fault)

    def end(self) -> None:
        """Begin to end."""
        self._ending = True
        self.bell.set()

    def _run(self) -> None:
        while not self._ending:
            try:
                self._pass()
            except Exception as error:  # what nobody foresaw must not end the one who wakes people
                self._next = time.monotonic() + self._pace.longest
                self._tell(f"internal error: {type(error).__name__}: {clean(str(error))[:200]}")
            self.bell.wait(self._pace.longest if not self._outbox.waiting else max(0.0, self._next - time.monotonic()))
            self.bell.clear()
        self._look()
        left = [one for one in self._outbox.batch() if one.over is not None]
        self._send((*left, *self._outbox.standing()), self._pace.after_end, NOTE)

    def _pass(self) -> None:
        self._look()
        while self._outbox.waiting and time.monotonic() >= self._next and not self._ending:
            self._send(self._outbox.batch(), self._pace.stands)

    def _look(self) -> None:
        view = self._latest()
        if view is not None:
            self._outbox.look(alerts(view, self._links), time.monotonic(), time.time())

    def _send(self, batch: Sequence[Alert], stands: float, note: str = "") -> None:
        if not batch:
            return
        answer = self._post(body(batch, time.time() + stands, note))
        now = time.monotonic()
        if answer.for_good:
            self._outbox.refused(batch, now)
        elif answer.fault:
            self._outbox.missed(batch)
        else:
            self._outbox.took(batch, now)
        self._wait = min(self._pace.longest, max(self._pace.first, 2 * self._wait)) if answer.fault else 0.0
        self._next = now + self._wait
        self._tell(answer.fault)

    def _post(self, said: bytes) -> Answer:
        try:
            token = read_token(self._token_file) if self._token_file else ""
        except SetupError as error:
            return Answer(str(error))
        return post(self._where, said, token, _END_SECONDS if self._ending else self._pace.answer)

    def _tell(self, fault: str) -> None:
        """Say once that it cannot be told, and once that it can be again."""
        if fault != self._fault:
            before, self._fault = self._fault, fault
            if fault and not before:
                self._say(f"alertmanager {self._where.name} is not told, trying again: {fault}")
            elif not fault:
                self._say(f"alertmanager {self._where.name} is told again")
