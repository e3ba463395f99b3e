"""LogFiles: the logs that the agent was told to read, as a source like any other: a run without a line of our code.

Called by the loop, which commits the offsets with the turn. What stands in a log counts as said by rank 0 of the
trainer; a trainer that tells its steps by the SDK as well needs none of this.
"""

from collections.abc import Mapping, Sequence

from gyrostat.wire import Record
from gyrostat_agent.sources.logs import faultlines
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.log import Log
from gyrostat_agent.sources.logs.logfile import CHUNK, LogError, LogFile
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import TRAIN, Fault
from gyrostat_agent.sources.logs.table import FORMATS, GENERIC
from gyrostat_agent.sources.tensorboard import is_events
from gyrostat_rules.inputs import FaultLine, Item, SourceState, SourceWord

_PREFIX = "log:"  # of its offsets' names: no record file is called so
ENOUGH = 20  # lines, or steps, by which it is judged how well a log is understood
_SHOWN = 8  # names
_CHUNKS = 4  # of one file in one pass, so that a backlog cannot starve the others


class LogFiles:
    """``paths`` are followed from ``committed`` on; ``form`` None: each file's format is recognised."""

    def __init__(self, paths: Sequence[str], committed: Mapping[str, int], form: Format | None = None) -> None:
        self._files = [
            LogFile(path, FORMATS, GENERIC, form, committed.get(_PREFIX + path, 0), faultlines.find) for path in paths
        ]
        self._said: dict[str, str] = {}
        self._covered: dict[str, str] = {}
        self._left: set[str] = set()

    def drain(self, now: float) -> list[Item]:
        """What the files have gained, each up to a bound; told as of ``now``, Unix seconds.

        A log's own clock may be in another zone, or there may be none: by that, a run that is well would be silent.
        """
        return [item for file in self._files if not self._leaves(file.path) for item in self._of(file, now)]

    def offsets(self) -> dict[str, int]:
        """How far each file has been read."""
        return {_PREFIX + file.path: file.settled for file in self._files}

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files:
            file.close()

    def _leaves(self, path: str) -> bool:
        if path not in self._left and is_events(path):
            self._left.add(path)
        return path in self._left

    def _of(self, file: LogFile, now: float) -> list[Item]:
        items: list[Item] = []
        faults: dict[tuple[str, int], FaultLine] = {}  # thousands of one kind are told once a pass
        try:
            for _ in range(_CHUNKS):
                before = file.offset
                for found in file.read(CHUNK):
                    if isinstance(found, Record):
                        items.append(found._replace(time=now))
                    elif isinstance(found, Fault):
                        faults[found.kind, found.rank] = FaultLine("trainer", found.rank, found.kind, found.why)
                if file.offset == before:
                    break
            # A row that is open is told as far as it goes: what comes of it later is told as of the same step.
            items += [one._replace(time=now) for one in file.log.flush()] if file.log else []
            state = self._state(file)
        except LogError as error:
            state = SourceState(_PREFIX + file.path, SourceWord.DAMAGED, str(error))
        items += faults.values()
        if self._said.get(file.path) != state.detail:
            self._said[file.path] = state.detail
            items.insert(0, state)
        return items

    def _state(self, file: LogFile) -> SourceState:
        name = _PREFIX + file.path
        if file.log is None:
            return SourceState(name, SourceWord.FRESH, "read so far, its format is not known yet")
        return SourceState(
            name, SourceWord.FRESH, f"read as {file.log.form.title}{self._coverage(file.path, file.log)}"
        )

    def _coverage(self, path: str, log: Log) -> str:
        """How much of it was understood, said once enough has come: silence must never read as clean."""
        if path not in self._covered and log.understood >= ENOUGH:
            self._covered[path] = f": {log.understood} of the first {log.lines} lines{own_names(log.names)}"
        return self._covered.get(path, "")


def own_names(names: Names) -> str:
    """The trainer's names that nobody knows, for people; '' where there are none."""
    own = sorted(name for name, known in names.known.items() if not known.canonical and known.phase == TRAIN)
    more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
    return f"; under their own names: {', '.join(own[:_SHOWN])}{more}" if own else ""
