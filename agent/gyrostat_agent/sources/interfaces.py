"""Interfaces: what goes over the network, Ethernet from /proc/net/dev and RDMA from /sys/class/infiniband.

RDMA traffic passes the kernel by and stands in neither of the other's counters.
"""

import contextlib
import os
from collections.abc import Iterator

from gyrostat_agent.sources.rates import Rates

Told = Iterator[tuple[str, float]]
_VIRTUAL = ("lo", "veth", "docker", "br-", "cni", "virbr", "ifb", "dummy", "flannel", "cali", "cilium", "lxc", "tunl")
_RECEIVED, _SENT, _ERRORS, _DROPS = 0, 8, (2, 10), (3, 11)  # places in a row; of the last two, one each way
_WORD = 4  # bytes: the unit of InfiniBand's data counters
_FAULTS = (
    "symbol_error",
    "link_error_recovery",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_xmit_discards",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)


class Network:
    """Traffic since the last call, over all interfaces that lead out of this machine."""

    def __init__(self, proc: str, sys: str) -> None:
        self._path, self._class = os.path.join(proc, "net", "dev"), os.path.join(sys, "class", "net")
        self._rates = Rates()

    def read(self, now: float) -> Told:
        """Bytes a second each way (nothing the first time), and how much was lost since boot."""
        rows = {name: counts for name, counts in self._rows() if not name.startswith(_VIRTUAL)}
        # Under a bond or a bridge the same bytes would count twice; in a container no interface is a device.
        devices = [n for n in rows if os.path.exists(os.path.join(self._class, n, "device"))] or list(rows)
        counted = [rows[name] for name in devices]
        for way, place in (("receive", _RECEIVED), ("transmit", _SENT)):
            if (rate := self._rates.of(way, sum(c[place] for c in counted), now)) is not None:
                yield f"host_network_{way}_bytes_per_second", rate
        yield "host_network_errors_total", sum(c[place] for c in counted for place in _ERRORS)
        yield "host_network_drops_total", sum(c[place] for c in counted for place in _DROPS)

    def _rows(self) -> Iterator[tuple[str, list[float]]]:
        with open(self._path, encoding="ascii") as file:
            for line in file:
                name, colon, counts = line.partition(":")
                if colon and len(words := counts.split()) >= 16:
                    yield name.strip(), [float(word) for word in words]


class Rdma:
    """Traffic since the last call over all RDMA ports, and their errors and state."""

    def __init__(self, sys: str) -> None:
        self._class = os.path.join(sys, "class", "infiniband")
        self._rates = Rates()

    def read(self, now: float) -> Told:
        """Nothing where there is no RDMA."""
        ports = list(self._ports())
        if not ports:
            return
        yield "host_rdma_ports", float(len(ports))
        yield "host_rdma_ports_active", float(sum("ACTIVE" in _text(os.path.join(p, "state")) for p in ports))
        for way, name in (("receive", "port_rcv_data"), ("transmit", "port_xmit_data")):
            if (rate := self._rates.of(way, _WORD * _sum(ports, name), now)) is not None:
                yield f"host_rdma_{way}_bytes_per_second", rate
        yield "host_rdma_errors_total", sum(_sum(ports, name) for name in _FAULTS)
        yield "host_rdma_link_downed_total", _sum(ports, "link_downed")

    def _ports(self) -> Iterator[str]:
        with contextlib.suppress(FileNotFoundError):
            for device in sorted(os.listdir(self._class)):
                folder = os.path.join(self._class, device, "ports")
                with contextlib.suppress(OSError):
                    yield from (os.path.join(folder, port) for port in sorted(os.listdir(folder)))


def _sum(ports: list[str], counter: str) -> float:
    counts = (_text(os.path.join(port, "counters", counter)) for port in ports)
    return float(sum(int(count) for count in counts if count.isdigit()))


def _text(path: str) -> str:
    """What the file says; '' where it is not there, or the port is being reset."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
