"""The journal's tables, and how its file is opened: by the one agent that writes it, or by a reader.

Version 1. A file of another version, another program's database, or no database at all is named as such and
left alone.
"""

import os
import sqlite3
from collections.abc import Callable
from urllib.parse import quote

from gyrostat.wire.rights import check_folder
from gyrostat_agent.journal.errors import JournalError, explain

VERSION = 1
APPLICATION = 0x47595253  # "GYRS": tells a journal from any other program's database
_PATIENCE = 2.0  # seconds; only a foreign tool that checkpoints or writes makes the agent wait at all
_WAL_CAP = 64 << 20  # bytes that the WAL file keeps after a checkpoint

_TABLES = (
    """CREATE TABLE turns (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, given BLOB NOT NULL, offsets BLOB NOT NULL, hash BLOB NOT NULL
    )""",
    # The columns beside the body are there to be looked up by; the turn's hash covers them, so they cannot drift.
    """CREATE TABLE entries (
        seq INTEGER NOT NULL, place INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
        body BLOB NOT NULL, PRIMARY KEY (seq, place)
    ) WITHOUT ROWID""",
    "CREATE INDEX entries_by_id ON entries (id)",
    # The journal's own row counts the turns, which shows that the last ones were cut off; in this table it costs a
    # commit no page of its own. No source is named FF: that byte is in no UTF-8 text.
    "CREATE TABLE offsets (source BLOB PRIMARY KEY, position INTEGER NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO offsets VALUES (x'FF', 0, 0)",
    "CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, hash BLOB NOT NULL, seal BLOB NOT NULL, state BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


def open_writer(path: str) -> sqlite3.Connection:
    """Connection that writes, creating the file (mode 0600) where there is none; raises JournalError."""
    try:
        check_folder(os.path.dirname(os.path.abspath(path)))
        _create(path)
    except OSError as error:  # RightsError is one
        raise JournalError(f"journal {path}: {error}") from None
    return _open(path, "rw", _make_ready)


def open_reader(path: str) -> sqlite3.Connection:
    """Connection that reads while another process writes; raises JournalError."""
    if not os.path.exists(path):
        raise JournalError(f"journal {path}: there is none; no agent has run here, or the path is another")
    return _open(path, "ro", _check_version)


def _create(path: str) -> None:
    """Make the file, empty and ours alone, and its name durable.

    1. SQLite would make it by the umask; WAL and shared memory take the database's mode.
    2. An existing file is not opened here: closing any descriptor of it drops this process's SQLite locks.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _open(path: str, mode: str, check: Callable[[sqlite3.Connection, str], None]) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode={mode}"
    try:
        db = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)
    except sqlite3.Error as error:
        raise explain(path, error) from None
    try:
        check(db, path)
    except sqlite3.Error as error:
        db.close()
        raise explain(path, error) from None
    except JournalError:
        db.close()
        raise
    return db


def _make_ready(db: sqlite3.Connection, path: str) -> None:
    """Begin an empty file; check what is there before anything in it is changed."""
    if not _is_empty(db):
        _check_version(db, path)
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise JournalError(
            f"journal {path}: its file system has no write-ahead log (it gave {mode!r});"
            " put the run directory on tmpfs or a local disk"
        )
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_CAP}")
    db.execute("BEGIN IMMEDIATE")
    for statement in _TABLES if _is_empty(db) else ():
        db.execute(statement)
    db.execute("COMMIT")
    _check_version(db, path)


def _is_empty(db: sqlite3.Connection) -> bool:
    return not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _check_version(db: sqlite3.Connection, path: str) -> None:
    """Raise JournalError where this is not a journal, or one that this version cannot read."""
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        what = "it is empty, no agent has begun it" if _is_empty(db) else "it is another program's database"
        raise JournalError(f"journal {path}: {what}; give the journal.db of a run's agent folder")
    if version != VERSION:
        raise JournalError(
            f"journal {path}: it is of version {version}, and this Gyrostat reads version {VERSION};"
            " use the Gyrostat that wrote it, or move it away to begin a new one"
        )
