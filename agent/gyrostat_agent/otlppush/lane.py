"""Lane: one signal's thread: takes what its load has, posts it, waits as long as the collector wants.

Each signal has its own, so that one which is not taken, or hangs, holds up no other, and none holds up the loop.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gyrostat.wire.fields import clean
from gyrostat_agent.errors import SetupError
from gyrostat_agent.otlppush.pace import Pace
from gyrostat_agent.otlppush.post import Answer, Word, post
from gyrostat_agent.otlppush.target import Target, read_headers
from gyrostat_exporters.otlp.taken import refused
from gyrostat_exporters.view import Exported

_BATCH = 256
_END_SECONDS = 3.0


class Load(Protocol):
    """What a lane carries."""

    signal: str
    dropped: int

    def fill(self, *, last: bool = False) -> None: ...
    def batch(self, most: int) -> Sequence[Any]: ...
    def body(self, batch: Sequence[Any]) -> bytes: ...
    def settle(self, many: int) -> None: ...
    def pause(self) -> float: ...
    @property
    def waiting(self) -> int: ...


class Lane:
    """Tells ``where`` what ``load`` has; ``say`` gets a line where that changes for better or worse."""

    def __init__(self, where: Target, load: Load, say: Callable[[str], None], headers_file: str, pace: Pace) -> None:
        self._where, self._load, self._say, self._headers_file, self._pace = where, load, say, headers_file, pace
        self._fault = self._not_taken = ""
        self._wait = self._next = 0.0
        self._tries, self._most = 0, _BATCH
        self._sent = self._failed = self._dropped = 0
        self._until = 0.0  # when to be done, once it is told to end
        self.bell = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"otlp {load.signal}", daemon=True)
        self.thread.start()

    def counts(self) -> Exported:
        """How it fares; numbers of another thread, each whole."""
        load = self._load
        return Exported(
            self._where.name, load.signal, self._sent, self._failed, self._dropped + load.dropped, load.waiting,
            self._fault,
        )  # fmt: skip

    def end(self) -> None:
        """Begin to end: what there is yet is told, for a few seconds at most."""
        self._until = time.monotonic() + _END_SECONDS
        self.bell.set()

    def _run(self) -> None:
        while not self._until:
            idle = self._guarded(self._pass)
            self.bell.wait(self._load.pause() if idle else max(0.0, self._next - time.monotonic()))
            self.bell.clear()
        self._guarded(self._last_pass)

    def _guarded(self, step: Callable[[], bool]) -> bool:
        """What nobody foresaw is said, and ends nothing; a journal that cannot be read now is tried again."""
        try:
            return step()
        except Exception as error:
            self._next = time.monotonic() + self._pace.longest
            self._tell(f"{type(error).__name__}: {clean(str(error))[:200]}")
            return False

    def _pass(self) -> bool:
        """True where there is nothing to send."""
        while not self._until and time.monotonic() >= self._next:
            self._load.fill()
            if not (batch := self._load.batch(self._most)):
                return True
            self._send(batch)
        return False

    def _last_pass(self) -> bool:
        self._load.fill(last=True)
        while time.monotonic() < self._until and (batch := self._load.batch(self._most)):
            self._send(batch)
            if self._fault:
                return False
            self._load.fill()
        return True

    def _send(self, batch: Sequence[Any]) -> None:
        answer = self._post(batch)
        many, now = len(batch), time.monotonic()
        if answer.word == Word.TAKEN:
            self._took(many, answer.body)
            self._wait, self._next = 0.0, now + (0.0 if self._load.waiting else self._pace.gap)
        else:
            self._missed(many, answer, now)
        self._tell(answer.fault)

    def _took(self, many: int, body: bytes) -> None:
        said = refused(self._load.signal, body) if body else None
        lost = min(many, said.many) if said is not None else 0
        self._sent, self._dropped = self._sent + many - lost, self._dropped + lost
        self._settle(many)
        if said is not None and lost and said.why != self._not_taken:
            self._not_taken = said.why
            self._say(f"otlp {self._where.name} did not take all {self._load.signal}: {clean(said.why)[:200]}")

    def _missed(self, many: int, answer: Answer, now: float) -> None:
        self._tries += answer.word == Word.UNSURE
        if answer.word == Word.TOO_LARGE and many > 1:
            self._most = many // 2
            return
        if answer.word in (Word.FOR_GOOD, Word.TOO_LARGE) or self._tries >= self._pace.tries:
            self._dropped += many
            self._settle(many)
            self._next = now + self._pace.gap
            return
        self._failed += many
        self._wait = min(self._pace.longest, max(self._pace.first, 2 * self._wait))
        self._next = now + max(self._wait, answer.after)

    def _settle(self, many: int) -> None:
        self._load.settle(many)
        self._tries = 0
        self._most = min(_BATCH, 2 * self._most)

    def _post(self, batch: Sequence[Any]) -> Answer:
        try:
            body = self._load.body(batch)
        except Exception as error:  # one that cannot be written is parted from the others, and dropped
            return Answer(Word.TOO_LARGE, f"{type(error).__name__}: {clean(str(error))[:200]}")
        try:
            headers = read_headers(self._headers_file) if self._headers_file else {}
        except SetupError as error:
            return Answer(Word.WAIT, str(error))
        seconds = min(self._pace.answer, max(0.1, self._until - time.monotonic())) if self._until else self._pace.answer
        return post(self._where, self._load.signal, body, headers, seconds)

    def _tell(self, fault: str) -> None:
        """Say once that it cannot be told, and once that it can be again."""
        if fault != self._fault:
            before, self._fault = self._fault, fault
            what = f"otlp {self._where.name} is"
            if fault and not before:
                self._say(f"{what} not told of {self._load.signal}: {fault}")
            elif not fault:
                self._say(f"{what} told of {self._load.signal} again")
