"""Fellows: how an agent fares among those of other nodes, as plain values for the page and the status file."""

from collections.abc import Iterator
from typing import NamedTuple


class Fellows(NamedTuple):
    """``leader`` is the node whose agent decides, '' where none is known to; ``leads``: this one does.

    ``heard`` and ``missing`` count other nodes, where it leads; ``sent``, ``dropped`` and ``waiting`` items that it
    forwards, where it does not; ``refused`` what it did not take of others. ``fault``: why it is cut off, or ''.
    """

    node: str
    leader: str
    leads: bool
    term: int
    heard: int = 0
    missing: int = 0
    sent: int = 0
    dropped: int = 0
    waiting: int = 0
    refused: int = 0
    fault: str = ""


def samples(fellows: Fellows | None) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Name, labels and value of each metric; none where the agent is alone."""
    if fellows is None:
        return
    yield "gyrostat_cluster_leader", (fellows.node,), float(fellows.leads)
    yield "gyrostat_cluster_term", (), float(fellows.term)
    yield "gyrostat_cluster_cut_off", (), float(bool(fellows.fault))
    yield "gyrostat_cluster_nodes", ("heard",), float(fellows.heard)
    yield "gyrostat_cluster_nodes", ("missing",), float(fellows.missing)
    yield "gyrostat_cluster_forwarded", ("sent",), float(fellows.sent)
    yield "gyrostat_cluster_forwarded", ("dropped",), float(fellows.dropped)
    yield "gyrostat_cluster_waiting", (), float(fellows.waiting)
    yield "gyrostat_cluster_refused", (), float(fellows.refused)
