"""Journal: the durable log of turns. One turn, one SQLite transaction; nothing is done before it is in here.

Called by the agent's loop (one thread, one writer a run), and opened for reading by whatever shows history. A
committed turn survives the death of the process at any instant; with ``sync`` it survives the machine's too.
Not promised: durability over power loss without ``sync``, and protection from somebody with this user's rights.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from gyrostat_agent.journal import statements as sql
from gyrostat_agent.journal.chain import GENESIS, Verdict, believable, link, seal, walk
from gyrostat_agent.journal.codec import decode, decode_entry, encode, encode_entry, key
from gyrostat_agent.journal.errors import CodecError, GoneError, JournalError, explain
from gyrostat_agent.journal.letgo import NOTE, ROWS, LetGo, is_reference, note, refer, stated
from gyrostat_agent.journal.schema import open_reader, open_writer
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Input

_dumps = json.JSONEncoder(separators=(",", ":")).encode
_PAGE = 64  # turns or entries a query: a reader that stops half-way holds no lock and no old pages
_SNAPSHOTS = 2
_LAST = 2**63 - 1

_OWN = b"\xff"
_DIGITS = 18  # of a turn's number: beyond, SQLite refuses it
_Step = tuple[str, Sequence[tuple[Any, ...]]]


class Turn(NamedTuple):
    """One input and the entries that it led to. ``seq`` counts from 1; ``at`` is the input's, Unix seconds."""

    seq: int
    at: float
    given: Input
    entries: tuple[Entry, ...]


class Journal:
    """The log of one run at ``path``, created where it is missing; its folder must be this user's alone.

    Raises JournalError where it cannot be opened. With ``readonly`` it must exist, and may be read while the
    agent writes; the writer never waits for a reader. ``origin`` is the turn before the first, and its hash, where only
    a part of a journal is there.
    """

    def __init__(self, path: str, *, readonly: bool = False, origin: tuple[int, bytes] = (0, GENESIS)) -> None:
        self.path, self.origin = path, origin
        self._writes = not readonly
        self._db = open_reader(path) if readonly else open_writer(path)
        self._cursor = self._db.cursor()
        self._seq, self._hash = 0, GENESIS
        self._told: dict[str, int] = {}
        self._said: LetGo | None = None
        self._unnoted = False
        if not readonly:  # a reader opens a damaged file as well: verify is how one learns what happened to it
            self._go_on()

    def commit(self, given: Input, entries: Sequence[Entry], offsets: Mapping[str, int], *, sync: bool = False) -> int:
        """Append a turn, all of it or nothing, and return its number; with ``sync`` it is on the disk by then.

        ``offsets`` are the bytes taken of each source file so far; those that moved are written. Raises JournalError
        (disk full, a value that JSON cannot say); the same turn may be committed again after that.
        """
        seq, kind, blob = self._seq + 1, type(given).__name__, encode(given)
        rows = [(i, key(e.id), key(e.kind), key(e.subject), encode_entry(e)) for i, e in enumerate(entries)]
        moved = {name: at for name, at in offsets.items() if self._told.get(name) != at}
        noted = {NOTE: note(self._said)} if self._unnoted and self._said else {}
        told = _dumps({**moved, **noted}).encode()
        reference = refer(blob)
        digest = link(self._hash, seq, kind, reference, rows, told)
        marks = [(_source(name), at, seq) for name, at in moved.items()]
        steps: list[_Step] = [
            (sql.ADD_TURN, [(seq, kind, reference, told, digest)]),
            (sql.ADD_INPUT, [(seq, blob)]),
            (sql.SET_OFFSET, [*marks, (_OWN, seq, seq)]),
        ]
        if rows:
            steps.append((sql.ADD_ENTRY, [(seq, *row) for row in rows]))
        self.write(steps, sync)
        self._seq, self._hash = seq, digest
        self._told.update(moved)
        self._unnoted = False
        return seq

    def offsets(self) -> dict[str, int]:
        """The newest committed offset of each source file, bytes."""
        rows = self.read(sql.OFFSETS)
        return {bytes(source).decode("utf-8", "surrogatepass"): position for source, position in rows}

    def turns(self, after: int = 0, last: int = _LAST) -> Iterator[Turn]:
        """The turns behind number ``after``, up to ``last``, in order.

        Raises GoneError at one whose input was let go, JournalError at one that cannot be read.
        """
        while page := self.read(sql.TURNS, after, last, _PAGE):
            bodies = self.bodies(page[0][0], page[-1][0])
            for seq, given, kept in page:
                if kept is None and is_reference(given):
                    raise GoneError(self._let_go_words(seq))
                blob = kept if is_reference(given) else given
                yield self._turn(seq, blob, bodies.get(seq, []))
            after = page[-1][0]

    def bodies(self, first: int, last: int) -> dict[int, list[bytes]]:
        """The entries of turns first to last, as blobs, by turn."""
        found: dict[int, list[bytes]] = {}
        for seq, body in self.read(sql.TURN_ENTRIES, first, last):
            found.setdefault(seq, []).append(body)
        return found

    def entries(
        self, after: str | None = None, *, kinds: Sequence[str] = (), newest_first: bool = False, limit: int = 0
    ) -> Iterator[Entry]:
        """The entries made later than the entry ``after``; of ``kinds`` only, and at most ``limit``, where given.

        Raises JournalError where there is no entry of that id.
        """
        low, high = self._place(after), (_LAST, 0)
        query = sql.NEWEST_FIRST if newest_first else sql.OLDEST_FIRST
        wanted, left = f",{','.join(kinds)}," if kinds else "", limit or _LAST
        while page := self.read(query, *low, *high, wanted, wanted, min(_PAGE, left)):
            for seq, _, body in page:
                yield self._entry(seq, body)
            left -= len(page)
            edge = page[-1][:2]
            low, high = (low, edge) if newest_first else (edge, high)

    def save_snapshot(self, seq: int, state: bytes, step: int = -1, keep: Iterable[int] = ()) -> None:
        """Keep the engine's state as it was after turn ``seq``, at ``step``.

        The newest two are kept, and those at the turns ``keep``. Raises JournalError.
        """
        found = self.read(sql.HASH, seq)
        if not found:
            raise JournalError(f"journal {self.path}: no snapshot without its turn, and there is no turn {seq}")
        row = (seq, found[0][0], seal(seq, found[0][0], state, step), state, step)
        listed = f",{','.join(map(str, keep))},"
        self.write([(sql.ADD_SNAPSHOT, [row]), (sql.DROP_SNAPSHOTS, [(_SNAPSHOTS, listed)])])

    def snapshot(self, below: int = _LAST) -> tuple[int, bytes] | None:
        """The newest state before turn ``below`` that is whole and belongs to a turn of this journal, or None."""
        for (seq,) in self.read("SELECT seq FROM snapshots WHERE seq < ? ORDER BY seq DESC", below):
            if found := self.snapshot_at(seq):
                return found
        return None

    def snapshot_at(self, first: int, last: int = 0) -> tuple[int, bytes] | None:
        """The oldest such state of turns ``first`` to ``last``; of ``first`` alone without it."""
        for seq, chained, digest, state, step, turn in self.read(sql.SNAPSHOT_ROWS, first, last or first):
            own = self.origin[1] if seq == self.origin[0] else turn
            if believable(seq, chained, digest, state, step, own):
                return seq, state
        return None

    def let_go(self, first: int, last: int, at: float, by: str, why: str) -> None:
        """Say that the inputs of turns ``first`` to ``last`` may go; the next turn notes it. Raises JournalError."""
        said = stated(self._said, first, last, at, by, why)
        self.write([(sql.ADD_LET_GO, [said])])
        self._said, self._unnoted = said, True

    def gone(self) -> list[LetGo]:
        """What was said to be let go, oldest first."""
        return [LetGo(*row) for row in self.read(ROWS)]

    def verify(self, *pinned: str) -> Verdict:
        """Walk the whole chain from the first turn; ``pinned`` are heads noted elsewhere that it must pass.

        It reads one state of the file throughout: the log of a long one grows meanwhile, and nobody waits.
        """
        with self.standing():
            return walk(self._db, [pin for pin in pinned if pin], self.origin)

    @contextmanager
    def standing(self) -> Iterator[None]:
        """What is read within is of one state of the file, whatever is written meanwhile; nobody waits for it."""
        self.read("BEGIN")
        try:
            yield
        finally:
            self._db.rollback()

    def head(self) -> str:
        """``"seq:hash"`` of the last turn; ``0:`` and zeros while there is none."""
        seq, digest = (self._seq, self._hash) if self._writes else self._read_head()
        return f"{seq}:{digest.hex()}"

    def passes(self, head: str) -> bool:
        """True where one of its turns is the one that ``head`` names; '' and turn 0 name none and are in every one."""
        seq, _, digest = head.partition(":")
        if not seq.isdecimal() or len(seq) > _DIGITS:
            return not head
        found = self.read(sql.HASH, int(seq))
        return int(seq) == 0 or [bytes(h).hex() for (h,) in found] == [digest]

    def close(self) -> None:
        """Close the file. A closed journal raises JournalError at the next use."""
        self._db.close()

    def _go_on(self) -> None:
        """Stand where the last turn left off."""
        try:
            self._seq, self._hash = self._read_head()
            self._told = self.offsets()
            self._said = next(reversed(self.gone()), None)
            self._unnoted = self._said is not None  # the last writer may have ended before it noted it
        except JournalError:
            self._db.close()
            raise

    def write(self, steps: Sequence[_Step], sync: bool = False) -> None:
        """One transaction, all of it or nothing; for the journal's own modules. Raises JournalError."""
        try:
            if sync:  # cannot be changed inside a transaction
                self._db.execute("PRAGMA synchronous = FULL")
            try:
                self._run(steps)
            finally:
                if sync:
                    self._db.execute("PRAGMA synchronous = NORMAL")
        except (sqlite3.Error, OverflowError) as error:
            raise explain(self.path, error) from None

    def _run(self, steps: Sequence[_Step]) -> None:
        cursor = self._cursor
        try:
            cursor.execute("BEGIN IMMEDIATE")
            for statement, rows in steps:
                cursor.executemany(statement, rows)
            cursor.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.rollback()
            raise

    def read(self, query: str, *values: Any) -> list[Any]:
        """All rows at once: a statement left half-read would hold its read lock. For the journal's own modules."""
        try:
            return self._db.execute(query, values).fetchall()
        except (sqlite3.Error, OverflowError) as error:
            raise explain(self.path, error) from None

    def _read_head(self) -> tuple[int, bytes]:
        """The last turn. Behind a break the count goes on, so that no number is given twice; verify tells the break."""
        found, counted = self.read(sql.HEAD), self.read(sql.COUNT)
        seq, digest = found[0] if found else (0, GENESIS)
        return max(seq, *(n for (n,) in counted), 0), digest if isinstance(digest, bytes) else GENESIS

    def _place(self, after: str | None) -> tuple[int, int]:
        if after is None:
            return -1, -1
        rows = self.read(
            "SELECT seq, place FROM entries WHERE id = ? ORDER BY seq DESC, place DESC LIMIT 1", key(after)
        )
        if not rows:
            raise JournalError(f"journal {self.path}: there is no entry {after!r}; ask for all of them instead")
        return int(rows[0][0]), int(rows[0][1])

    def _turn(self, seq: int, blob: bytes, bodies: list[bytes]) -> Turn:
        try:
            given = decode(blob)
        except CodecError as error:
            raise self._unreadable(seq, error) from None
        return Turn(seq, given.at, given, tuple(self._entry(seq, body) for body in bodies))

    def _entry(self, seq: int, body: bytes) -> Entry:
        try:
            return decode_entry(body)
        except CodecError as error:
            raise self._unreadable(seq, error) from None

    def _let_go_words(self, seq: int) -> str:
        for said in self.gone():
            if said.first <= seq <= said.last:
                day = time.strftime("%Y-%m-%d", time.gmtime(said.at))
                return (
                    f"journal {self.path}: the inputs of turns {said.first} to {said.last} were let go on {day} by "
                    f"{said.by} ({said.why}); it can be fed again from a snapshot behind them alone"
                )
        return f"journal {self.path}: the input of turn {seq} is not there, and nothing says that it was let go"

    def _unreadable(self, seq: int, error: CodecError) -> JournalError:
        return JournalError(f"journal {self.path}: turn {seq} cannot be read: {error}")


def _source(name: str) -> bytes:
    """A source file's name as bytes: a path need not be UTF-8."""
    return name.encode("utf-8", "surrogatepass")
