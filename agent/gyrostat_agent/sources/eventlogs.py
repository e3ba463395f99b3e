"""EventLogs: the TensorBoard files and folders that the agent was told to read, followed while the run goes on.

Called by the loop, which commits the offsets with the turn. A path is theirs once ``is_events`` has said so; until
then it is one of LogFiles'. What stands in them counts as said by rank 0 of the trainer. They hold no file open.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence

from gyrostat.wire import Record
from gyrostat_agent.sources.eventrun import EventRun
from gyrostat_agent.sources.logs.logfiles import ENOUGH, own_names
from gyrostat_agent.sources.tensorboard import is_events
from gyrostat_rules.inputs import Item, SourceState, SourceWord

_PREFIX = "events:"  # of its sources, and of its offsets' names: no record file is called so
_STEPS, _BYTES = 500, 4 << 20  # of one path in one pass, some 0.1 s: a backlog must not hold up what is decided


class EventLogs:
    """Those of ``paths`` that are event files are followed, each from ``committed`` on and as a life of its own."""

    def __init__(self, paths: Sequence[str], committed: Mapping[str, int]) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._committed = committed
        self._runs: dict[str, EventRun] = {}
        self._said: dict[str, str] = {}
        self._covered: dict[str, str] = {}

    @property
    def behind(self) -> bool:
        """True where the files hold more than the last pass took, be it news or not."""
        return any(not run.files.at_end for run in self._runs.values())

    def drain(self, now: float) -> list[Item]:
        """What the files have gained, up to a bound for each path; told as of ``now``, Unix seconds."""
        return [item for path in self._paths if self._is_followed(path) for item in self._of(path, now)]

    def offsets(self) -> dict[str, int]:
        """How far each file has been told, and where each run stands."""
        return {_begin(path) + name: at for path, run in self._runs.items() for name, at in run.offsets().items()}

    def _is_followed(self, path: str) -> bool:
        if path not in self._runs and is_events(path):
            begin = _begin(path)
            known = {name.removeprefix(begin): at for name, at in self._committed.items() if name.startswith(begin)}
            life = hashlib.blake2b(os.path.abspath(path).encode("utf-8", "surrogateescape"), digest_size=6)
            self._runs[path] = EventRun(path, f"log-{life.hexdigest()}", known)
        return path in self._runs

    def _of(self, path: str, now: float) -> list[Item]:
        run = self._runs[path]
        records: list[Record] = [*run.records(_STEPS, _BYTES), *run.flush()]
        state = self._state(path, run)
        new = self._said.get(path) != state.detail
        self._said[path] = state.detail
        return [*([state] if new else []), *(record._replace(time=now) for record in records)]

    def _state(self, path: str, run: EventRun) -> SourceState:
        name, files = _PREFIX + path, run.files
        if (troubles := files.troubles) or not files.files:
            where, why = next(iter(troubles.items()), (path, ""))
            more = f", and {len(troubles) - 1} more" if len(troubles) > 1 else ""
            whole = where if where == path else os.path.join(path, where)
            said = f"{whole}: {why}{more}" if why else "no TensorBoard event file lies in it yet"
            return SourceState(name, SourceWord.DAMAGED if why else SourceWord.FRESH, said)
        count = len(files.files)
        parts = [f"read as TensorBoard event files, {count} file{'s' * (count != 1)}{_damaged(files.damaged)}"]
        parts += ["some numbers told as of a later step than their own"] if run.late else []
        return SourceState(name, SourceWord.FRESH, "; ".join(parts) + self._coverage(path, run))

    def _coverage(self, path: str, run: EventRun) -> str:
        """The names that nobody knows, said once enough has come: silence must never read as clean."""
        if path not in self._covered and run.steps >= ENOUGH:
            self._covered[path] = own_names(run.names)
        return self._covered.get(path, "")


def _begin(path: str) -> str:
    """What the names of a path's offsets begin with."""
    return f"{_PREFIX}{path}\0"


def _damaged(places: int) -> str:
    """In words, by powers of ten: a file that is damaged all through must not fill the journal."""
    if places < 2:
        return ", damaged in one place" * places
    least = 10 ** (len(str(places)) - 1)
    return f", damaged in {'several' if places < 10 else f'{least} or more'} places"
