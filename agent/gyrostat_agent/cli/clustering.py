"""The options of one agent among many of a run, and what they stand for; the last is shown first."""

import os
import re
import socket
from typing import Any

import click

from gyrostat.wire.fields import clean
from gyrostat_agent.address import split
from gyrostat_agent.errors import SetupError
from gyrostat_agent.settings import Settings

KUBERNETES = "kubernetes"
_EXAMPLE = "10.0.0.7:9468"
_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def _address(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if value:
        host, _ = split(value, "--cluster-address", _EXAMPLE)
        if host == "*" or host.replace("0", "").strip(".:") == "":  # every address of this machine is none of it
            raise SetupError(
                f"--cluster-address {value}: the others must reach this agent by it; give this node's own address, "
                f"e.g. {_EXAMPLE}"
            )
    return value


def _node(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if value and not _NODE.fullmatch(value):
        raise SetupError(f"--node {clean(value)}: give letters, digits, '.', '_' and '-', at most 63, e.g. node-07")
    return value


CLUSTERED = (
    click.option(
        "--node", envvar="NODE_NAME", default="", callback=_node, metavar="NAME",
        help="This node's name among them; else NODE_NAME, else the host's.",
    ),
    click.option(
        "--cluster-token-file", "cluster_token", type=click.Path(), default="", metavar="FILE",
        help="File with the token that all of them bear; read at each use, so it may be changed.",
    ),
    click.option(
        "--cluster-address", default="", callback=_address, metavar="HOST:PORT",
        help=f"Where the agents of other nodes reach this one, e.g. {_EXAMPLE}.",
    ),
    click.option(
        "--cluster", default="", metavar="DIR|kubernetes",
        help="One agent a node, one of them decides: elected in a folder that all of them reach (the checkpoints', "
        "say), or by a Lease of Kubernetes.",
    ),
)  # fmt: skip


def clustering(chosen: Settings, given: dict[str, Any]) -> Settings:
    """The settings with these options in them; raises SetupError where one lacks another."""
    place, address, token = given["cluster"], given["cluster_address"], given["cluster_token"]
    if not place:
        if address or token:
            raise SetupError("--cluster-address and --cluster-token-file are of --cluster; give that too")
        return chosen
    if not address or not token:
        raise SetupError(
            f"--cluster {clean(place)}: give --cluster-address too, where the agents of other nodes reach this one, "
            "and --cluster-token-file, the token that all of them bear"
        )
    node = given["node"] or re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:63].strip("-._")
    return chosen._replace(
        cluster=place if place == KUBERNETES else os.path.abspath(place), cluster_address=address,
        cluster_token=os.path.abspath(token), node=node,
    )  # fmt: skip


def clustered_on(chosen: Settings) -> list[str]:
    """The same options again, for a process that is given them."""
    if not chosen.cluster:
        return []
    return [
        "--cluster", chosen.cluster, "--cluster-address", chosen.cluster_address,
        "--cluster-token-file", chosen.cluster_token, "--node", chosen.node,
    ]  # fmt: skip
