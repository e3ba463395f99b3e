"""The token file: 32 random bytes as text, in a file that its user alone can read.

Called by the word server at its start and at each request, by its client, and by ``gyrostat token``. Whoever has the
token can say what ``words`` lists, and nothing else.
"""

import contextlib
import errno
import os
import secrets
import shlex
import stat
import tempfile

from gyrostat.wire import RightsError, RunDirectory
from gyrostat.wire.rights import open_trusted
from gyrostat_agent.bearer import MOST_BYTES, only
from gyrostat_agent.errors import SetupError

_BYTES = 32
_FEWEST = 32  # characters of one that somebody else made: it must not be guessed, at whatever pace
_NAME = "control.token"


def place(run: RunDirectory) -> str:
    """Where the agent keeps its own."""
    return os.path.join(run.agent, _NAME)


def read(path: str) -> bytes:
    """The token at ``path``; raises SetupError with the command that mends it."""
    quoted = shlex.quote(path)
    try:
        raw = _read(path)
    except RightsError as error:
        ours = os.lstat(path).st_uid == os.geteuid()
        mend = "" if ours else f"; make a copy of your own: install -m 600 {quoted} NEW"
        raise SetupError(f"{error}{mend}") from None
    except FileNotFoundError:
        raise SetupError(f"{path}: there is no such token file; {_make(quoted)}") from None
    except OSError as error:
        link = "it is a link; give the file itself" if error.errno == errno.ELOOP else str(error.strerror)
        raise SetupError(f"{path}: {link}") from None
    try:
        token = only(raw, path)
    except ValueError as error:
        raise SetupError(f"{error}; {_make(quoted)}") from None
    if len(token) < _FEWEST or not (token.isascii() and token.decode("ascii").isprintable() and b" " not in token):
        raise SetupError(f"{path} must hold one word of at least {_FEWEST} characters; {_make(quoted)}")
    return token


def make(path: str) -> None:
    """Make one where there is none; raises SetupError."""
    if not os.path.lexists(path):
        rotate(path)


def rotate(path: str) -> None:
    """Put a new token there, as a whole; the one before is void with that. Raises SetupError."""
    _spare_what_is_none(path)
    folder = os.path.dirname(path) or "."
    draft = ""
    try:
        fd, draft = tempfile.mkstemp(prefix=f".{_NAME}.", dir=folder)  # 0600, and nobody else's name
        with os.fdopen(fd, "w", encoding="ascii") as out:
            out.write(f"{secrets.token_hex(_BYTES)}\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise SetupError(f"{path}: no token can be written there: {error.strerror}") from None


def _read(path: str) -> bytes:
    _check_mode(path, os.lstat(path))  # first, for its error says how to mend it
    fd = open_trusted(path)
    try:
        _check_mode(path, os.fstat(fd))  # and of the file that is read
        return os.read(fd, MOST_BYTES + 1)
    finally:
        os.close(fd)


def _check_mode(path: str, found: os.stat_result) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077 and stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
        quoted = shlex.quote(path)
        raise SetupError(
            f"{path} has mode {mode:04o}: others may have read or changed it; chmod 600 {quoted}, and change it: "
            f"gyrostat token rotate --control-token {quoted}"
        )


def _spare_what_is_none(path: str) -> None:
    """A slip of the finger must not cost a file that holds something else."""
    try:
        with open(path, "rb") as file:
            held = file.read(MOST_BYTES + 1).strip()
    except (FileNotFoundError, PermissionError):
        return
    except OSError as error:
        raise SetupError(f"{path}: {error.strerror}; give another path for the token") from None
    if len(held.split()) > 1 or len(held) > MOST_BYTES:
        raise SetupError(f"{path} holds something else than a token; remove it, or give another path")


def _make(quoted: str) -> str:
    return f"make one: gyrostat token rotate --control-token {quoted}"
