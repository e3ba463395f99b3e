"""Roster: every tool that is tried, in the order of the table."""

from peers import drift, fixed, losslint, megatron, rldoctor, rlwatch, runmedic, sigma, stabilityguard
from peers.watcher import Peer

ROSTER: tuple[Peer, ...] = (
    fixed.PEER,
    megatron.PEER,
    sigma.PEER,
    drift.ADWIN,
    drift.PAGE_HINKLEY,
    drift.GAUSSIAN,
    rlwatch.PEER,
    losslint.PEER,
    runmedic.PEER,
    rldoctor.PEER,
    stabilityguard.PEER,
)
