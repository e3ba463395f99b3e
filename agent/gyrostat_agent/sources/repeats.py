"""Repeats: for how long a page has been the same, byte for byte: its exporter goes on answering and measures no more.

Called by ``metricspage`` for pages of GPUs alone. Their energy counter grows all the time, so that a page which stays
as it is was not measured anew; an engine that idles tells the same for as long as it idles, and is no such case. An
exporter that was told to show nothing that moves looks stuck while its GPUs idle; the first change ends it.
"""

from hashlib import blake2b

STUCK_SECONDS = 120.0  # the DCGM exporter measures every 30 s unless told otherwise


class Repeats:
    """By the times at which the page was asked for, Unix seconds."""

    def __init__(self) -> None:
        self._page, self._since = b"", 0.0

    def seconds(self, body: bytes, at: float) -> float:
        """Since when the page is as it is now; 0 where it has changed, or the clock was set back."""
        page = blake2b(body, digest_size=16).digest()
        if page != self._page or at < self._since:
            self._page, self._since = page, at
        return at - self._since
