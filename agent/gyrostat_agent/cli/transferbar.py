"""A bar on the terminal for what is sent or fetched: bytes, rate, and how long it will take."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


class _Bar:
    """One transfer's line in rich's display."""

    def __init__(self, shown: Progress, what: str) -> None:
        self._shown = shown
        self._line = shown.add_task(what, total=None)

    def begin(self, total: int) -> None:
        self._shown.update(self._line, total=total)

    def advance(self, count: int) -> None:
        self._shown.advance(self._line, count)


@contextmanager
def bar(what: str) -> Iterator[_Bar]:
    """Shown on stderr while it lasts, and gone afterwards."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield _Bar(shown, what)
