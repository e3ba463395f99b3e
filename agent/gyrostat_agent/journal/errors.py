"""What can go wrong with a journal.

::

    JournalError          it cannot be opened, read or written; says where, why and what to do
    ├── CodecError        a value cannot be written down, or stored bytes cannot be read back
    └── GoneError         an input was let go; says which, when and by whom
"""

import sqlite3

_ADVICE = {
    "database or disk is full": "the disk is full; free some space, and the next commit goes through",
    "disk I/O error": "the disk answers with errors or is full; look at dmesg and at df",
    "attempt to write a readonly database": "it was opened for reading only, or the file system is read-only",
    "database is locked": "another process is writing to it; end that one, a run has one agent",
    "UNIQUE constraint failed: turns.seq": "another process has written to it; end that one, a run has one agent",
    "unable to open database file": "the file or its folder cannot be opened; look at their owner and mode",
    "file is not a database": "it is not an SQLite database; move it away, and a new journal is begun",
    "database disk image is malformed": "the file is damaged; keep a copy of it, and restore it or move it away",
}


class JournalError(Exception):
    """A journal that cannot be opened, read or written, in a sentence."""


class CodecError(JournalError):
    """A value that cannot be written down, or bytes that are not a value."""


class GoneError(JournalError):
    """An input that is asked for was let go."""


def explain(path: str, error: Exception) -> JournalError:
    """What SQLite said about ``path``, in a sentence that says what to do."""
    said = str(error)
    if isinstance(error, sqlite3.ProgrammingError):
        return JournalError(f"journal {path}: {said}")
    return JournalError(f"journal {path}: {_ADVICE.get(said, said)}")
