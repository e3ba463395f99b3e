"""The journal's tables, and how its file is opened: by the one agent that writes it, or by a reader.

Version 2: a turn's input stands in a table of its own, so that it can be let go and its hash stays. A journal of
version 1, whose turns hold their inputs, is read as it is and gets the new tables from its next writer; its old inputs
stay, for their turns' hashes cannot be proved without them. A file of another version, another program's database, or
no database at all is named as such and left alone.
"""

import os
import sqlite3
from collections.abc import Callable
from urllib.parse import quote

from gyrostat.wire.rights import check_folder
from gyrostat_agent.journal.errors import JournalError, explain

VERSION = 2
APPLICATION = 0x47595253  # "GYRS": tells a journal from any other program's database
_PATIENCE = 2.0  # seconds; only a foreign tool that checkpoints or writes makes the agent wait at all
_WAL_CAP = 64 << 20  # bytes that the WAL file keeps after a checkpoint

_INPUTS = "CREATE {} TABLE inputs (seq INTEGER PRIMARY KEY, given BLOB NOT NULL)"
_LET_GO = """CREATE {} TABLE letgo (
        id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, at REAL NOT NULL, by TEXT NOT NULL,
        why TEXT NOT NULL, hash BLOB NOT NULL
    )"""
# What a state's step was; -1 in a snapshot that an older version wrote.
_STEP = "ALTER TABLE snapshots ADD COLUMN step INTEGER NOT NULL DEFAULT -1"
_UPGRADE = (_INPUTS.format(""), _LET_GO.format(""), _STEP, f"PRAGMA user_version = {VERSION}")

_TABLES = (
    # Of version 2, ``given`` is a reference: the form 2 and the digest of what stands in ``inputs``.
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
    *_UPGRADE,
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
    return _open(path, "ro", _make_readable)


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
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of an empty file alone; else nothing: such a file is only reused
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise JournalError(
            f"journal {path}: its file system has no write-ahead log (it gave {mode!r});"
            " put the run directory on tmpfs or a local disk"
        )
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_CAP}")
    db.execute("BEGIN IMMEDIATE")
    for statement in _TABLES if _is_empty(db) else _UPGRADE if _version(db) == 1 else ():
        db.execute(statement)
    db.execute("COMMIT")
    _check_version(db, path)


def _make_readable(db: sqlite3.Connection, path: str) -> None:
    """Check what is there; one of version 1 is shown as if it had the tables of version 2, without being changed."""
    _check_version(db, path)
    if _version(db) == 1:
        for table in (_INPUTS, _LET_GO):
            db.execute(table.format("TEMP"))
        db.execute("CREATE TEMP VIEW snapshots AS SELECT *, -1 AS step FROM main.snapshots")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _is_empty(db: sqlite3.Connection) -> bool:
    return not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _check_version(db: sqlite3.Connection, path: str) -> None:
    """Raise JournalError where this is not a journal, or one that this version cannot read."""
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = _version(db)
    if application != APPLICATION:
        what = "it is empty, no agent has begun it" if _is_empty(db) else "it is another program's database"
        raise JournalError(f"journal {path}: {what}; give the journal.db of a run's agent folder")
    if version not in (1, VERSION):
        raise JournalError(
            f"journal {path}: it is of version {version}, and this Gyrostat reads versions 1 and {VERSION};"
            " use the Gyrostat that wrote it, or move it away to begin a new one"
        )
