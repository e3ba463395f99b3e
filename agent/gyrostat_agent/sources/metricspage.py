"""MetricsPage: a source that scrapes one /metrics page: of a vLLM or SGLang engine, or of the DCGM exporter.

Drained by the loop. The page is fetched in a thread of its own, so that an engine that hangs hangs nobody else. An
engine's record bears the role rollout and the rank that it was given here; a GPU's are like those of the GPU source.
Both bear the step that the trainer is at, the one after the newest it has told; of several pages of one step the newest
stands. A page that cannot be read is told as damaged, never as gone: that would silence the stall rule. One of GPUs
that is the same for minutes is told as stale, and nothing is told of its GPUs until it changes.
"""

import http.client
import math
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from gyrostat.wire import Record
from gyrostat.wire.fields import clean
from gyrostat_agent.errors import SetupError
from gyrostat_agent.sources import xids
from gyrostat_agent.sources.pagenames import ROLLOUT, XID
from gyrostat_agent.sources.pagereader import Page, PageReader, Whose
from gyrostat_agent.sources.repeats import STUCK_SECONDS, Repeats
from gyrostat_agent.sources.sampler import Sampler
from gyrostat_rules.inputs import GPUS, Item, SourceState, SourceWord

_BYTES = 16 << 20  # a page of one engine has 0.2 MB
_CHUNK = 1 << 16
_HANGS_SECONDS = 30.0


class _Scraped(NamedTuple):
    """A page, or what kept it from being read."""

    at: float
    page: Page | None
    fault: str
    same: float = 0.0  # seconds for which it has not changed


class MetricsPage:
    """Scrapes ``url`` every ``every`` seconds (1 at least); ``rank`` is that of the engine behind it.

    ``timeout``: seconds that a fetch may take. ``wake`` is called from another thread when a page is worth draining.
    Raises SetupError where ``url`` is none.
    """

    def __init__(
        self,
        url: str,
        rank: int = 0,
        *,
        wake: Callable[[], None] = lambda: None,
        every: float = 10.0,
        timeout: float = 5.0,
    ) -> None:
        self._url, self._rank, self._timeout = _checked(url), rank, timeout
        self._reader, self._repeats, self._stuck = PageReader(), Repeats(), False
        self._sampler = Sampler(self._scrape, lambda: None, max(1.0, every), wake)
        self._sequences: dict[tuple[str, int], int] = {}
        self._said = ""
        self._xids: dict[int, float] = {}

    def drain(self, now: float, step: int = -1, segment: int = 0) -> list[Item]:
        """What the page said since the last call, at once; ``now`` is Unix seconds.

        ``step`` is the newest that the trainer has told, -1 where it has told none, and ``segment`` its segment.
        """
        items: list[Item] = []
        for scraped in self._sampler.drain(now):
            if isinstance(scraped, Exception):
                items += self._say(SourceWord.DAMAGED, f"not read: {scraped!r}")
            elif scraped.page is None:
                items += self._say(SourceWord.DAMAGED, scraped.fault)
            else:
                items += self._stands_still(scraped.page, scraped.same)
                items += self._told(scraped.page, scraped.at, max(step, -1) + 1, segment)
        if self._sampler.waiting(now) > _HANGS_SECONDS:
            items += self._say(SourceWord.DAMAGED, f"no answer for {_HANGS_SECONDS:.0f} s")
        return items

    def offsets(self) -> Mapping[str, int]:
        """Nothing can be read twice here."""
        return {}

    def close(self) -> None:
        """Scrape no more."""
        self._sampler.close()

    def _told(self, page: Page, at: float, step: int, segment: int) -> Iterator[Item]:
        if not page.known:
            what = f"none of its {page.names} names is one of vLLM, SGLang or the DCGM exporter"
            yield from self._say(SourceWord.DAMAGED, what)
            return
        yield from self._say(SourceWord.FRESH, f"read, {len(page.known)} of {page.names} names")
        for whose, values in page.values.items():
            if whose.role == ROLLOUT or not self._stuck:
                yield from self._record(whose, values, at, step, segment)

    def _stands_still(self, page: Page, seconds: float) -> Iterator[SourceState]:
        """Whether its GPUs are measured, where that is news."""
        stuck = seconds >= STUCK_SECONDS and any(whose.role != ROLLOUT for whose in page.values)
        if stuck != self._stuck:
            self._stuck = stuck
            word = SourceWord.STALE if stuck else SourceWord.FRESH
            said = f"not one number has changed for {STUCK_SECONDS:.0f} s; restart the exporter"
            yield SourceState(f"{GPUS}{self._url}", word, said if stuck else "its numbers change again")

    def _record(self, whose: Whose, values: dict[str, float], at: float, step: int, segment: int) -> Iterator[Item]:
        role, rank, incarnation = whose
        if role == ROLLOUT:
            rank, incarnation = self._rank, self._url
        else:
            yield from self._new_xid(rank, values.pop(XID, 0.0))
        sequence = self._sequences[role, rank] = self._sequences.get((role, rank), 0) + 1
        if values:
            yield Record(role, rank, incarnation, segment, sequence, step, at, values)

    def _new_xid(self, rank: int, number: float) -> Iterator[SourceState]:
        """The exporter shows the newest XID until another comes; it is news when it changes."""
        before, self._xids[rank] = self._xids.get(rank, 0.0), number
        if number != before and math.isfinite(number) and number > 0:
            yield SourceState(f"gpu/{rank} xid", SourceWord.DAMAGED, f"{xids.in_words(int(number))} on GPU {rank}")

    def _say(self, word: str, detail: str) -> Iterator[SourceState]:
        """How the page fares, where that is news; how many names it has grows with what the engine has done."""
        told = word if word == SourceWord.FRESH else f"{word} {detail}"
        if told != self._said:
            self._said = told
            yield SourceState(self._url, word, detail)

    def _scrape(self, now: float) -> _Scraped:
        try:
            body = _fetch(self._url, self._timeout)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return _Scraped(now, None, f"cannot be fetched: {_why(error)}")
        page = self._reader.read(body.decode("utf-8", "replace"), now)
        return _Scraped(now, page, "", self._repeats.seconds(body, now))


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or "@" in parts.netloc or not url.isascii() or not url.isprintable() or " " in url:
        raise SetupError(f"{clean(url)} is no address of a page: write http://HOST:PORT/metrics")
    return parts._replace(path=parts.path or "/metrics", fragment="").geturl()


def _fetch(url: str, seconds: float) -> bytes:
    """The page's bytes. Straight from there: neither by a proxy that is meant for the outside, nor elsewhere."""
    opener = urllib.request.OpenerDirector()
    for part in (urllib.request.HTTPHandler, urllib.request.HTTPSHandler, urllib.request.HTTPErrorProcessor):
        opener.add_handler(part())
    opener.add_handler(urllib.request.HTTPDefaultErrorHandler())
    asked = {"Accept": "text/plain;version=0.0.4", "User-Agent": "gyrostat"}
    request = urllib.request.Request(url, headers=asked)  # noqa: S310 - its scheme was looked at; see the handlers too
    until, parts, size = time.monotonic() + seconds, [], 0
    with opener.open(request, timeout=seconds) as answer:
        while part := answer.read1(_CHUNK):
            parts.append(part)
            size += len(part)
            if size > _BYTES:
                raise ValueError(f"more than {_BYTES >> 20} MiB")
            if time.monotonic() > until:  # the timeout is of one packet; a page that drips must end too
                raise TimeoutError(f"not whole after {seconds:g} s")
        if answer.length:  # half a page would read as engines that have gone
            raise ValueError(f"cut short: {answer.length} bytes are missing")
    return b"".join(parts)


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"status {error.code}"
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return clean(str(getattr(reason, "strerror", None) or reason))[:200]
