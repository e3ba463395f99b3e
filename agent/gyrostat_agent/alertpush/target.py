"""Target: where an Alertmanager is, checked before anything is sent, and the token for it.

A token stands in a file and goes into one header. A URL with a user in it is refused: command lines are read by many.
"""

import os
import shlex
import stat
from typing import NamedTuple
from urllib.parse import urlsplit

from gyrostat.wire import RightsError
from gyrostat.wire.fields import clean
from gyrostat.wire.rights import open_trusted
from gyrostat_agent.bearer import MOST_BYTES, only
from gyrostat_agent.errors import SetupError

_API = "/api/v2/alerts"


class Target(NamedTuple):
    """``name`` is for people: host and port, and nothing that could be secret."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def name(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def target(url: str) -> Target:
    """The Alertmanager at ``url``, the page that its own users open; raises SetupError with what to write."""
    checked(url, "--alertmanager", "http://127.0.0.1:9093")
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    path = parts.path.rstrip("/").removesuffix(_API)
    return Target(secure, str(parts.hostname), parts.port or (443 if secure else 9093), f"{path}{_API}")


def checked(url: str, option: str, example: str) -> str:
    """``url`` where it is one of a page and names no user; raises SetupError that names ``option``."""
    if "@" in url:  # not shown again: what stands there may be the password
        token = ": give a bearer token with --alertmanager-token-file FILE" if option == "--alertmanager" else ""
        raise SetupError(f"{option}: a URL names no user and no password, for many can read it{token}")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        whole = not parts.query and not parts.fragment and "?" not in url and "#" not in url
    except ValueError:
        usable = whole = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise SetupError(f"{option} {clean(url)}: write a URL of http or https, e.g. {example}")
    if not whole:
        raise SetupError(f"{option}: leave out what stands behind ? or #; write e.g. {example}")
    return url


def read_token(path: str) -> str:
    """The token in the file at ``path``, read each time, for it may be changed; raises SetupError."""
    quoted = shlex.quote(clean(path))
    try:
        fd = open_trusted(path)
        try:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            token = only(os.read(fd, MOST_BYTES + 1), clean(path))
        finally:
            os.close(fd)
    except (RightsError, ValueError) as error:
        raise SetupError(f"--alertmanager-token-file: {clean(str(error))}") from None
    except OSError as error:
        raise SetupError(f"--alertmanager-token-file {quoted}: {error.strerror}; a link is not followed") from None
    if mode & 0o077:
        raise SetupError(
            f"--alertmanager-token-file {quoted} has mode {mode:04o}: others may read it; chmod 600 {quoted}"
        )
    if not all(0x21 <= byte <= 0x7E for byte in token):
        raise SetupError(f"--alertmanager-token-file {quoted} must hold one word of plain characters and nothing else")
    return token.decode("ascii")
