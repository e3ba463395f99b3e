"""Record files: follow every rank's frames, and tell what was damaged, foreign or missing.

Called by the loop, which commits the offsets with the turn; only then are parts that have been read to their end
deleted. Nothing in the folder is trusted: a file that others could have written is not read, and said so once.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping

from gyrostat.wire import RecordFile, RunDirectory
from gyrostat.wire.rights import open_trusted
from gyrostat_agent import failpoints
from gyrostat_agent.sources.recordtail import RecordTail, Told
from gyrostat_rules.inputs import Item, SourceState, SourceWord


class RecordFiles:
    """The source of one run's record files. ``committed`` is where each file was left off.

    With ``introduce`` each file's newest Hello in front of that is told again: for an engine that has lost its
    memory, and would else know nobody to give a directive to.
    """

    def __init__(self, run: RunDirectory, committed: Mapping[str, int], *, introduce: bool = False) -> None:
        self._folder = run.records
        self._committed = dict(committed)
        self._introduce = introduce
        self._tails: dict[str, RecordTail] = {}
        self._sequences: dict[tuple[str, int, str], int] = {}
        self._said: dict[str, str] = {}
        self._stamp = 0
        self._gone = [0, 0]  # missing and damaged of files that are closed

    @property
    def missing(self) -> int:
        """Frames that never came."""
        return self._gone[0] + sum(t.missing for t in self._tails.values())

    @property
    def damaged(self) -> int:
        """Places passed over as damage."""
        return self._gone[1] + sum(t.damaged for t in self._tails.values())

    def drain(self) -> list[Item]:
        """New items of every file, in the order in which they were written."""
        told = list(self._find())
        deaths = self._read_all(_is_supervisor)
        told += self._read_all(_is_other)
        # A process that died has written all it ever will: its last words belong before the news of its death.
        while deaths and (more := self._read_all(_is_other)):
            told += more
        told += deaths
        told.sort(key=lambda t: t.time)
        told += self._outlived()
        return [t.item for t in told if self._is_news(t.item)]

    def offsets(self) -> dict[str, int]:
        """How far each file has been read."""
        return {name: tail.offset for name, tail in self._tails.items()}

    def sweep(self) -> None:
        """Delete the parts that have been read to their end and are followed by a newer one. Call once committed."""
        newest: dict[tuple[str, int], tuple[str, int]] = {}
        for tail in self._tails.values():
            key = (tail.file.role, tail.file.rank)
            newest[key] = max(newest.get(key, ("", -1)), (tail.file.incarnation, tail.file.part))
        for name, tail in list(self._tails.items()):
            last = newest[(tail.file.role, tail.file.rank)]
            followed = (tail.file.incarnation, tail.file.part) < last
            # Of a life that is over, a torn last frame is never completed: what is whole has been read.
            over = tail.at_end and tail.file.incarnation < last[0]
            if followed and (over or tail.used_up()):
                self._drop(name)
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self._folder, name))
                failpoints.reach("records.deleted")

    def close(self) -> None:
        """Close every file."""
        for name in list(self._tails):
            self._drop(name)

    def _find(self) -> Iterator[Told]:
        """Open files that are new; costs one stat where the folder has not changed."""
        try:
            stamp = os.stat(self._folder).st_mtime_ns
            if stamp == self._stamp:
                return
            names = sorted(os.listdir(self._folder))
        except OSError as error:
            self._stamp = 0
            yield Told(0, SourceState(self._folder, SourceWord.GONE, str(error.strerror)))
            return
        self._stamp = stamp
        yield from self._cheer(self._folder, SourceWord.GONE, "there again")
        for name in [n for n in self._tails if n not in names]:
            self._drop(name)
            yield from self._cheer(name, SourceWord.FOREIGN, "gone")
        for name in names:
            if name not in self._tails and (file := RecordFile.parse(name)) is not None:
                yield from self._open(name, file)

    def _open(self, name: str, file: RecordFile) -> Iterator[Told]:
        try:
            fd = open_trusted(os.path.join(self._folder, name))
        except OSError as error:
            self._stamp = 0  # it may open the next time: too many open files is nothing that lasts
            yield Told(0, SourceState(name, SourceWord.DAMAGED, f"not read: {error}"))
            return
        yield from self._cheer(name, SourceWord.DAMAGED, "read")
        known = self._sequences.get((file.role, file.rank, file.incarnation), 0)
        tail = self._tails[name] = RecordTail(file, fd, self._committed.get(name, 0), known)
        if self._introduce and tail.hello is not None:
            yield tail.hello

    def _outlived(self) -> Iterator[Told]:
        """A file that cannot be read blinds nobody once its rank has a newer life, whichever was found first."""
        for tail in [t for t in self._tails.values() if t.foreign]:
            life = tail.file[:3]  # role, rank, incarnation
            if any(life[:2] == later.file[:2] and life < later.file[:3] for later in self._tails.values()):
                yield Told(0, SourceState(tail.file.name, SourceWord.FRESH, "of a life that is over"))

    def _read_all(self, wanted: Callable[[RecordTail], bool]) -> list[Told]:
        """Read the wanted files; a later part waits until the one before it is at its end."""
        told: list[Told] = []
        behind: set[tuple[str, int, str]] = set()
        for name in sorted(self._tails):
            tail = self._tails[name]
            if not wanted(tail) or tail.writer in behind:
                continue
            tail.sequence = max(tail.sequence, self._sequences.get(tail.writer, 0))
            told += tail.read()
            self._sequences[tail.writer] = tail.sequence
            if not tail.at_end:
                behind.add(tail.writer)
        return told

    def _is_news(self, item: Item) -> bool:
        """Each fault of a source once: a file that is damaged all through must not fill the journal."""
        if not isinstance(item, SourceState):
            return True
        # A file is damaged once, whatever more is found in it; a rank's gaps are told one by one.
        said = item.state if RecordFile.parse(item.source) else f"{item.state} {item.detail}"
        known, self._said[item.source] = self._said.get(item.source), said
        return known != said

    def _cheer(self, source: str, was: str, detail: str) -> Iterator[Told]:
        if self._said.get(source, "").startswith(was):
            yield Told(0, SourceState(source, SourceWord.FRESH, detail))

    def _drop(self, name: str) -> None:
        tail = self._tails.pop(name)
        self._gone[0] += tail.missing
        self._gone[1] += tail.damaged
        tail.close()


def _is_supervisor(tail: RecordTail) -> bool:
    return tail.file.role == "supervisor"


def _is_other(tail: RecordTail) -> bool:
    return tail.file.role != "supervisor"
