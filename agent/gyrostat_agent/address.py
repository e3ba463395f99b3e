"""Addresses to listen at: HOST:PORT as people write it, and whether only this machine reaches it."""

import ipaddress

from gyrostat_agent.errors import SetupError


def split(listen: str, option: str, example: str) -> tuple[str, int]:
    """Host and port; raises SetupError that names ``option`` and shows ``example``."""
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise SetupError(f"{option} {listen}: write HOST:PORT, e.g. {example}")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """True where no other machine can connect to it."""
    return host == "localhost" or host.startswith("127.") or host == "::1"


def is_number(host: str) -> bool:
    """True for localhost or a number, with or without a port.

    A name that a web page made up, and had resolved to this machine, is neither.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
    if name in ("", "localhost"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
