"""The client: one word to an agent by its address, with the token out of a file.

Called by the command line where ``--agent`` is given. The token goes into one header, and nowhere else; no proxy is
used and no other address followed to, for whoever is there would be told it.
"""

import http.client
import json
import os
import socket
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from gyrostat.wire.fields import clean
from gyrostat_agent.access.tokenfile import read
from gyrostat_agent.access.wordserver import DEFAULT, SAYING
from gyrostat_agent.errors import SetupError
from gyrostat_agent.exchange import JSON

_SECONDS = 15.0  # the agent takes five to say that it has no answer yet
_MOST_BYTES = 64 << 10


class _Said(NamedTuple):
    status: int
    text: str  # '' where it is not what an agent answers


def tell(url: str, token_file: str, verb: str, arguments: Mapping[str, str]) -> str:
    """The agent's answer to this word; raises SetupError where it cannot be told, or says no."""
    parts = _parts(url)
    if not token_file:
        raise SetupError("--agent wants a token: give --token-file FILE, or set GYROSTAT_TOKEN_FILE")
    if not os.path.lexists(token_file):  # one made here would be none of the agent's
        raise SetupError(
            f"{clean(token_file)}: there is no such token file; copy it from the agent's machine, mode 0600: there "
            "gyrostat token path names it"
        )
    token = read(token_file).decode("ascii")
    try:
        said = _post(parts, token, verb, json.dumps(dict(arguments)).encode())
    except (OSError, http.client.HTTPException) as error:
        raise SetupError(_trouble(url, verb, error)) from None
    if said.status in (200, 202) and said.text:
        return said.text
    raise SetupError(_refusal(url, token_file, said))


def _parts(url: str) -> SplitResult:
    if "@" in url or "?" in url or "#" in url:  # not shown again: what stands there may be the token
        raise SetupError("--agent: a URL names no user and no token, for many can read it; use --token-file")
    try:
        parts = urlsplit(url)
        well = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        well = False
    if not well:
        raise SetupError(f"--agent {clean(url)}: write a URL, e.g. http://{DEFAULT}")
    return parts


def _post(parts: SplitResult, token: str, verb: str, body: bytes) -> _Said:
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(str(parts.hostname), parts.port, timeout=_SECONDS)
    headers = {"Content-Type": JSON, "Authorization": f"Bearer {token}", "User-Agent": "gyrostat"}
    try:
        connection.request("POST", f"{parts.path.rstrip('/')}{SAYING}{verb}", body, headers)
        answer = connection.getresponse()
        return _Said(answer.status, _text(answer.read(_MOST_BYTES)))
    finally:
        connection.close()


def _text(body: bytes) -> str:
    try:
        said = json.loads(body.decode("utf-8"))
        text = said.get("said") or said.get("error")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return text if isinstance(text, str) else ""


def _trouble(url: str, verb: str, error: Exception) -> str:
    where = f"{clean(url)}:"
    if isinstance(error, TimeoutError):
        return f"{where} no answer in {_SECONDS:g} s; whether {verb} was heard, gyrostat incidents --all shows there"
    if isinstance(error, ConnectionRefusedError):
        return f"{where} nobody listens there; is the agent started with --control, and at this address?"
    if isinstance(error, socket.gaierror):
        return f"{where} there is no such machine: {error.strerror}"
    if isinstance(error, ssl.SSLError):
        return f"{where} no TLS that can be trusted: {error.reason or error}"
    if isinstance(error, http.client.RemoteDisconnected):
        return f"{where} closed without an answer: no agent's --control address, or too many connections there at once"
    if isinstance(error, http.client.HTTPException):
        return f"{where} what answers there is no agent's --control address"
    return f"{where} {error.strerror or error}" if isinstance(error, OSError) else f"{where} {error}"


def _refusal(url: str, token_file: str, said: _Said) -> str:
    where = clean(url)
    if said.status == 401:
        return f"{where}: another token is wanted than that in {token_file}; there, gyrostat token path names the file"
    if not said.text:
        return f"{where}: what answers there (status {said.status}) is no agent's --control address"
    if said.status == 405:
        return f"{where}: that is the page for reading; give the agent's --control address"
    if said.status == 409:
        return f"{clean(said.text)}; gyrostat status on that machine shows what there is"
    return f"{where}: {clean(said.text)}"
