"""What is done where a port is taken: a port that nobody chose may be another one, a port that somebody named may not.

Called by the service for its page and its words, and by ``gyrostat run`` before a trainer is started. Prometheus, a
probe or a person comes to the named port: an agent that had gone elsewhere would be missed, or another taken for it.
Not promised: that a port which is free here still is when it is bound.
"""

import errno
import os
import socket
from collections.abc import Callable
from typing import TypeVar

from gyrostat_agent.address import split
from gyrostat_agent.errors import SetupError, TemporaryError
from gyrostat_agent.server import DEFAULT

_Served = TypeVar("_Served")


def served(
    serve: Callable[[str], _Served], listen: str, say: Callable[[str], None], *, option: str, named: bool
) -> _Served:
    """What ``serve`` gives at ``listen``; where that port is taken and not ``named``, at a free one, and said.

    Raises TemporaryError where it is named, for whoever has it may end; SetupError for all else.
    """
    try:
        return serve(listen)
    except SetupError as error:
        host, _, port = listen.rpartition(":")
        if os.strerror(errno.EADDRINUSE) not in str(error) or port == "0":
            raise
        if named:
            raise TemporaryError(taken(listen, option)) from None
        say(f"port {port} is taken, serving on a free one")
        return serve(f"{host}:0")


def check_free(listen: str, option: str) -> None:
    """Raises SetupError where the port of ``listen`` is taken now; every other fault is told by who binds it."""
    host, port = split(listen, option, DEFAULT)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise SetupError(taken(listen, option)) from None


def taken(listen: str, option: str) -> str:
    """One sentence: what is taken, and what to do."""
    host, _, port = listen.rpartition(":")
    return (
        f"{option} {listen}: that port is taken, by another run's agent perhaps (ss -ltnp 'sport = :{port}' names it); "
        f"end that, give another port, or {host}:0 for any free one"
    )
