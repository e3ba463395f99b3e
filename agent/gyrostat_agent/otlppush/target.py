"""Target: where a collector is, checked before anything is sent, and the headers for it.

Headers stand in a file, for one of them is a token. A URL with a user in it is refused: command lines are read by many.
"""

import ipaddress
import os
import re
import shlex
import stat
from typing import NamedTuple
from urllib.parse import urlsplit

from gyrostat.wire import RightsError
from gyrostat.wire.fields import clean
from gyrostat.wire.rights import open_trusted
from gyrostat_agent.alertpush.target import checked
from gyrostat_agent.errors import SetupError

SIGNALS = ("metrics", "logs", "traces")
_PORT = 4318
_MOST_BYTES, _MOST_HEADERS = 16 << 10, 16
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = ("host", "content-type", "content-length", "content-encoding", "connection", "transfer-encoding", "user-agent")


class Target(NamedTuple):
    """``name`` is for people: host and port, and nothing that could be secret. ``path`` is what signals stand below."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def name(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def target(url: str, *, insecure: bool = False) -> Target:
    """The collector at ``url``; raises SetupError with what to write.

    Plain http leaves this machine only where ``insecure`` says so: headers and a run's values could be read on the way.
    """
    checked(url, "--otlp", "http://127.0.0.1:4318")
    parts = urlsplit(url)
    secure, host = parts.scheme == "https", str(parts.hostname)
    if not secure and not insecure and not _is_here(host):
        raise SetupError(
            f"--otlp {clean(url)}: {clean(host)} is not this machine, and what goes there by plain http can be read on "
            "its way; write https://, or add --otlp-insecure where that network is trusted"
        )
    path = re.sub(rf"/v1/({'|'.join(SIGNALS)})$", "", parts.path.rstrip("/"))
    return Target(secure, host, parts.port or (443 if secure else _PORT), path.rstrip("/"))


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_headers(path: str) -> dict[str, str]:
    """The headers in the file at ``path``, a line ``Name: value`` each, read each time, for they may be changed.

    Raises SetupError, which shows no value.
    """
    quoted = shlex.quote(clean(path))
    try:
        fd = open_trusted(path)
        try:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            raw = os.read(fd, _MOST_BYTES + 1)
        finally:
            os.close(fd)
    except RightsError as error:
        raise SetupError(f"--otlp-headers-file: {clean(str(error))}") from None
    except OSError as error:
        raise SetupError(f"--otlp-headers-file {quoted}: {error.strerror}; a link is not followed") from None
    if mode & 0o077:
        raise SetupError(f"--otlp-headers-file {quoted} has mode {mode:04o}: others may read it; chmod 600 {quoted}")
    if len(raw) > _MOST_BYTES:
        raise SetupError(f"--otlp-headers-file {quoted} is longer than {_MOST_BYTES} bytes")
    return _headers(raw, quoted)


def _headers(raw: bytes, quoted: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(raw.decode("latin-1").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        wrong = _wrong(name, colon, value.strip())
        if wrong or len(found) == _MOST_HEADERS:
            why = wrong or f"there are more than {_MOST_HEADERS}"
            raise SetupError(
                f"--otlp-headers-file {quoted}, line {number}: {why}; write e.g. Authorization: Bearer TOKEN"
            )
        found[name] = value.strip()
    if not found:
        raise SetupError(f"--otlp-headers-file {quoted} holds no header; write e.g. Authorization: Bearer TOKEN")
    return found


def _wrong(name: str, colon: str, value: str) -> str:
    """What is wrong with a header, in words that show none of it but a name of ours."""
    if not colon or not _NAME.fullmatch(name):
        return "this is no header"
    if name.lower() in _OURS:
        return f"{name} is not yours to set"
    return "" if value and all(" " <= one <= "~" for one in value) else "its value is not of plain characters"
