"""Journal: the durable log of turns. One turn, one SQLite transaction; nothing is done before it is in here.

Called by the agent's loop (one thread, one writer a run), and opened for reading by whatever shows history. A
committed turn survives the death of the process at any instant; with ``sync`` it survives the machine's too.
Not promised: durability over power loss without ``sync``, and protection from somebody with this user's rights.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gyrostat_agent.journal.chain import GENESIS, Verdict, believable, link, seal, walk
from gyrostat_agent.journal.codec import decode, decode_entry, encode, encode_entry
from gyrostat_agent.journal.errors import CodecError, JournalError, explain
from gyrostat_agent.journal.schema import open_reader, open_writer
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Input

_dumps = json.JSONEncoder(separators=(",", ":")).encode
_PAGE = 64  # turns or entries a query: a reader that stops half-way holds no lock and no old pages
_SNAPSHOTS = 2
_LAST = 2**63 - 1

_ADD_TURN = "INSERT INTO turns VALUES (?, ?, ?, ?, ?)"
_ADD_ENTRY = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)"
_SET_OFFSET = "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)"
_OWN = b"\xff"
_OFFSETS = "SELECT source, position FROM offsets WHERE source <> x'FF'"
_HEAD = "SELECT seq, hash FROM turns ORDER BY seq DESC LIMIT 1"
_COUNT = "SELECT position FROM offsets WHERE source = x'FF'"
_TURNS = "SELECT seq, given FROM turns WHERE seq > ? ORDER BY seq LIMIT ?"
_TURN_ENTRIES = "SELECT seq, body FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq, place"
_ENTRIES = (
    "SELECT seq, place, body FROM entries WHERE (seq, place) > (?, ?) AND (seq, place) < (?, ?)"
    " AND (? = '' OR instr(?, ',' || kind || ','))"
)
_OLDEST_FIRST = _ENTRIES + " ORDER BY seq, place LIMIT ?"
_NEWEST_FIRST = _ENTRIES + " ORDER BY seq DESC, place DESC LIMIT ?"
_Step = tuple[str, Sequence[tuple[Any, ...]]]
_DROP_SNAPSHOTS = "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)"
_SNAPSHOT_ROWS = (
    "SELECT s.seq, s.hash, s.seal, s.state, t.hash FROM snapshots s LEFT JOIN turns t USING (seq) ORDER BY s.seq DESC"
)


class Turn(NamedTuple):
    """One input and the entries that it led to. ``seq`` counts from 1; ``at`` is the input's, Unix seconds."""

    seq: int
    at: float
    given: Input
    entries: tuple[Entry, ...]


class Journal:
    """The log of one run at ``path``, created where it is missing; its folder must be this user's alone.

    Raises JournalError where it cannot be opened. With ``readonly`` it must exist, and may be read while the
    agent writes; the writer never waits for a reader.
    """

    def __init__(self, path: str, *, readonly: bool = False) -> None:
        self._path = path
        self._writes = not readonly
        self._db = open_reader(path) if readonly else open_writer(path)
        self._cursor = self._db.cursor()
        self._seq, self._hash = 0, GENESIS
        self._told: dict[str, int] = {}
        if not readonly:  # a reader opens a damaged file as well: verify is how one learns what happened to it
            self._go_on()

    def commit(self, given: Input, entries: Sequence[Entry], offsets: Mapping[str, int], *, sync: bool = False) -> int:
        """Append a turn, all of it or nothing, and return its number; with ``sync`` it is on the disk by then.

        ``offsets`` are the bytes taken of each source file so far; those that moved are written. Raises JournalError
        (disk full, a value that JSON cannot say); the same turn may be committed again after that.
        """
        seq, kind, blob = self._seq + 1, type(given).__name__, encode(given)
        rows = [(i, _key(e.id), _key(e.kind), _key(e.subject), encode_entry(e)) for i, e in enumerate(entries)]
        moved = {name: at for name, at in offsets.items() if self._told.get(name) != at}
        told = _dumps(moved).encode()
        digest = link(self._hash, seq, kind, blob, rows, told)
        marks = [(_source(name), at, seq) for name, at in moved.items()]
        steps: list[_Step] = [(_ADD_TURN, [(seq, kind, blob, told, digest)]), (_SET_OFFSET, [*marks, (_OWN, seq, seq)])]
        if rows:
            steps.append((_ADD_ENTRY, [(seq, *row) for row in rows]))
        self._write(steps, sync)
        self._seq, self._hash = seq, digest
        self._told.update(moved)
        return seq

    def offsets(self) -> dict[str, int]:
        """The newest committed offset of each source file, bytes."""
        rows = self._read(_OFFSETS)
        return {bytes(source).decode("utf-8", "surrogatepass"): position for source, position in rows}

    def turns(self, after: int = 0) -> Iterator[Turn]:
        """The turns behind number ``after``, in order; raises JournalError at one that cannot be read."""
        while page := self._read(_TURNS, after, _PAGE):
            bodies: dict[int, list[bytes]] = {}
            for seq, body in self._read(_TURN_ENTRIES, page[0][0], page[-1][0]):
                bodies.setdefault(seq, []).append(body)
            for seq, blob in page:
                yield self._turn(seq, blob, bodies.get(seq, []))
            after = page[-1][0]

    def entries(
        self, after: str | None = None, *, kinds: Sequence[str] = (), newest_first: bool = False, limit: int = 0
    ) -> Iterator[Entry]:
        """The entries made later than the entry ``after``; of ``kinds`` only, and at most ``limit``, where given.

        Raises JournalError where there is no entry of that id.
        """
        low, high = self._place(after), (_LAST, 0)
        query = _NEWEST_FIRST if newest_first else _OLDEST_FIRST
        wanted, left = f",{','.join(kinds)}," if kinds else "", limit or _LAST
        while page := self._read(query, *low, *high, wanted, wanted, min(_PAGE, left)):
            for seq, _, body in page:
                yield self._entry(seq, body)
            left -= len(page)
            edge = page[-1][:2]
            low, high = (low, edge) if newest_first else (edge, high)

    def save_snapshot(self, seq: int, state: bytes) -> None:
        """Keep the engine's state as it was after turn ``seq``; the newest two are kept. Raises JournalError."""
        found = self._read("SELECT hash FROM turns WHERE seq = ?", seq)
        if not found:
            raise JournalError(f"journal {self._path}: no snapshot without its turn, and there is no turn {seq}")
        row = (seq, found[0][0], seal(seq, found[0][0], state), state)
        self._write(
            [("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", [row]), (_DROP_SNAPSHOTS, [(_SNAPSHOTS,)])]
        )

    def snapshot(self) -> tuple[int, bytes] | None:
        """The newest state that is whole and belongs to a turn of this journal; None where there is none."""
        for seq, chained, digest, state, turn in self._read(_SNAPSHOT_ROWS):
            if believable(seq, chained, digest, state, turn):
                return seq, state
        return None

    def verify(self, pinned: str = "") -> Verdict:
        """Walk the whole chain from the first turn; ``pinned`` is a ``head()`` noted elsewhere that it must pass.

        It reads one state of the file throughout: the log of a long one grows meanwhile, and nobody waits.
        """
        self._read("BEGIN")
        try:
            return walk(self._db, pinned)
        finally:
            self._db.rollback()

    def head(self) -> str:
        """``"seq:hash"`` of the last turn; ``0:`` and zeros while there is none."""
        seq, digest = (self._seq, self._hash) if self._writes else self._read_head()
        return f"{seq}:{digest.hex()}"

    def close(self) -> None:
        """Close the file. A closed journal raises JournalError at the next use."""
        self._db.close()

    def _go_on(self) -> None:
        """Stand where the last turn left off."""
        try:
            self._seq, self._hash = self._read_head()
            self._told = self.offsets()
        except JournalError:
            self._db.close()
            raise

    def _write(self, steps: Sequence[_Step], sync: bool = False) -> None:
        """One transaction, all of it or nothing."""
        try:
            if sync:  # cannot be changed inside a transaction
                self._db.execute("PRAGMA synchronous = FULL")
            try:
                self._run(steps)
            finally:
                if sync:
                    self._db.execute("PRAGMA synchronous = NORMAL")
        except (sqlite3.Error, OverflowError) as error:
            raise explain(self._path, error) from None

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

    def _read(self, query: str, *values: Any) -> list[Any]:
        """All rows at once: a statement left half-read would hold its read lock."""
        try:
            return self._db.execute(query, values).fetchall()
        except (sqlite3.Error, OverflowError) as error:
            raise explain(self._path, error) from None

    def _read_head(self) -> tuple[int, bytes]:
        """The last turn. Behind a break the count goes on, so that no number is given twice; verify tells the break."""
        found, counted = self._read(_HEAD), self._read(_COUNT)
        seq, digest = found[0] if found else (0, GENESIS)
        return max(seq, *(n for (n,) in counted), 0), digest if isinstance(digest, bytes) else GENESIS

    def _place(self, after: str | None) -> tuple[int, int]:
        if after is None:
            return -1, -1
        rows = self._read(
            "SELECT seq, place FROM entries WHERE id = ? ORDER BY seq DESC, place DESC LIMIT 1", _key(after)
        )
        if not rows:
            raise JournalError(f"journal {self._path}: there is no entry {after!r}; ask for all of them instead")
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

    def _unreadable(self, seq: int, error: CodecError) -> JournalError:
        return JournalError(f"journal {self._path}: turn {seq} cannot be read: {error}")


def _key(text: str) -> str:
    """Text to look an entry up by. SQLite takes no lone surrogate, which a name out of JSON may hold."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _source(name: str) -> bytes:
    """A source file's name as bytes: a path need not be UTF-8."""
    return name.encode("utf-8", "surrogatepass")
