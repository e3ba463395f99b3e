"""Log: one log as it is read: bytes in, Records, faults and notes out, and what of it was understood."""

from collections.abc import Callable, Iterator

from gyrostat.wire import Record
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.gathered import Found, Gathered
from gyrostat_agent.sources.logs.lines import Line, Lines
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import Fault


class Log:
    """One life of one log in a known format. ``lines`` were seen, ``understood`` of them said something.

    ``faults`` looks for well-known error lines in what the format does not know; it is handed in, so that a log can be
    read without. ``incarnation`` names the log in its Records.
    """

    def __init__(self, form: Format, incarnation: str, faults: Callable[[str], Fault | None] | None = None) -> None:
        self.form = form
        self.names = Names(form.aliases)
        self.lines = self.understood = 0
        self._faults = faults
        self._text = Lines()
        self._reader = form.reader()
        self._gathered = Gathered(self.names, incarnation)

    @property
    def cut(self) -> int:
        """Lines that were longer than can be looked at."""
        return self._text.cut

    @property
    def held(self) -> int:
        """Bytes of a line that is not ended yet."""
        return self._text.held

    def feed(self, data: bytes) -> Iterator[Found]:
        """What comes of more bytes."""
        for line in self._text.feed(data):
            yield from self._take(line)

    def flush(self) -> Iterator[Record]:
        """The row that is open, though more of it may come: nothing else has come for a while."""
        yield from self._gathered.flush()

    def end(self) -> Iterator[Found]:
        """What is left when nothing more will come."""
        for line in self._text.end():
            yield from self._take(line)
        yield from self._gathered.take(self._reader.end())
        yield from self._gathered.flush()

    def _take(self, line: Line) -> Iterator[Found]:
        self.lines += 1
        said = tuple(self._reader.read(line))
        if self._faults is not None and not any(isinstance(one, Fault) for one in said):
            fault = self._faults(line.text)  # of a row too: an error may be glued to it
            said = said if fault is None else (*said, fault._replace(rank=max(line.rank, fault.rank, 0)))
        if said:
            self.understood += 1
            yield from self._gathered.take(said)
