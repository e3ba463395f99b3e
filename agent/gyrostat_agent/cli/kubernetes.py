"""``gyrostat kubernetes``: how a job stands, what would be sent, what a person may do to it; the finisher."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gyrostat_agent.cli.options import as_json
from gyrostat_agent.errors import EXIT_FAULT, SetupError

if TYPE_CHECKING:
    from gyrostat_agent.kubernetes.request import Server
    from gyrostat_agent.kubernetes.target import Target

_F = TypeVar("_F", bound=Callable[..., Any])
_JOB = ("restart", "hold", "go-on")
_OTHERS = ("cordon", "taint", "let-in", "evict")


@click.group()
def kubernetes() -> None:
    """The job of a pod, by the API: look, see what would be sent, hold it, keep a node out; finish what was begun.

    \b
    gyrostat kubernetes show --job trainjob/run1 -n ml
    gyrostat kubernetes plan restart --job trainjob/run1 -n ml
    """


def _aimed(command: _F) -> _F:
    for option in (
        click.option("--job", default="", metavar="KIND/NAME", help="Which job: job, jobset, trainjob, pytorchjob, "
                     "volcano; in a pod, by default, the one that owns it."),
        click.option("-n", "--namespace", default="", metavar="NAME", help="Where it is; the pod's by default."),
        click.option("--kubeconfig", default="", type=click.Path(), help="Outside of a pod; else KUBECONFIG."),
    ):  # fmt: skip
        command = option(command)
    return command


def _bounded(command: _F) -> _F:
    for option in (
        click.option("--budget", default=1, show_default=True, metavar="N", help="So many nodes may be out at once."),
        click.option("--least", default=1, show_default=True, metavar="N", help="So many healthy ones must remain."),
        click.option("--reason", default="", metavar="WHY", help="Written on the node."),
    ):  # fmt: skip
        command = option(command)
    return command


@kubernetes.command()
@_aimed
@as_json
def show(job: str, namespace: str, kubeconfig: str, as_json: bool) -> None:
    """How the job stands, what was begun on it, what the ledger on it says, and whether somebody would finish.

    \b
    gyrostat kubernetes show
    gyrostat kubernetes show --job pytorchjob/run1 -n ml --json
    """
    from gyrostat_agent.kubernetes.target import told

    _, target = _target(job, namespace, kubeconfig)
    found = told(target)
    click.echo(json.dumps(found) if as_json else "\n".join(f"{name:10} {value}" for name, value in found.items()))


@kubernetes.command()
@click.argument("what", type=click.Choice([*_JOB, *_OTHERS]))
@click.argument("name", required=False, default="", metavar="[NODE|POD]")
@click.option("--avoid", multiple=True, metavar="NODE", help="Begin the job again off this node; repeat for more.")
@_bounded
@_aimed
def plan(what: str, name: str, avoid: tuple[str, ...], reason: str, budget: int, least: int, **at: str) -> None:
    """Print what would be sent first, and send nothing.

    \b
    gyrostat kubernetes plan restart --avoid gpu-17 --job trainjob/run1 -n ml
    gyrostat kubernetes plan cordon gpu-17 --budget 2 --least 8
    """
    from gyrostat_agent.kubernetes.request import shown

    for request in _planned(what, name, avoid, reason, budget, least, at):
        click.echo(shown(request))


@kubernetes.command()
@click.argument("what", type=click.Choice([*_JOB[1:], *_OTHERS]))
@click.argument("name", required=False, default="", metavar="[NODE|POD]")
@click.option(
    "--dry-run", is_flag=True, help="Ask the server whether it would take it (dryRun=All); nothing is changed."
)
@_bounded
@_aimed
@click.pass_context
def act(
    ctx: click.Context, /, what: str, name: str, dry_run: bool, reason: str, budget: int, least: int, **at: str
) -> None:
    """Do it: hold a job or let it go on, keep a node out or let it in, move a pod.

    A restart is `gyrostat checkpoints rollback`: it goes to a checkpoint that is certified, and into the journal.

    \b
    gyrostat kubernetes act hold --job trainjob/run1 -n ml
    gyrostat kubernetes act cordon gpu-17 --reason "Xid 79" --dry-run
    """
    from gyrostat_agent.kubernetes.request import dry, words

    if what in _JOB and not dry_run:
        ctx.exit(_carry_out(what, reason, at))
    server: Server = _server(at)
    for request in _planned(what, name, (), reason, budget, least, at):
        server.ask(dry(request) if dry_run else request)
        click.echo(f"{words(request)}: {'the server would take it' if dry_run else 'done'}")


@kubernetes.command()
@click.option("-n", "--namespace", required=True, metavar="NAME", help="Whose jobs are looked at.")
@click.option("--kubeconfig", default="", type=click.Path(), help="Outside of a pod; else KUBECONFIG.")
@click.option("--once", is_flag=True, help="Look once, and end.")
def finish(namespace: str, kubeconfig: str, once: bool) -> None:
    """Finish what agents have begun on jobs whose pods, and they with them, have ended since; until told to end.

    \b
    gyrostat kubernetes finish -n ml
    """
    from gyrostat_agent.kubernetes.api import connect
    from gyrostat_agent.kubernetes.finisher import Finisher

    finisher = Finisher(connect(kubeconfig), namespace, f"{socket.gethostname()}-{os.getpid()}", click.echo)
    if once:
        finisher.look()
        return
    finisher.run(threading.Event().wait)


def _server(at: dict[str, str]) -> "Server":
    from gyrostat_agent.kubernetes.api import connect

    return connect(at["kubeconfig"])


def _target(job: str, namespace: str, kubeconfig: str) -> "tuple[Server, Target]":
    from gyrostat_agent.kubernetes.target import found

    server = _server({"kubeconfig": kubeconfig})
    return server, found(server, job, namespace)


def _planned(
    what: str, name: str, avoid: tuple[str, ...], reason: str, budget: int, least: int, at: dict[str, str]
) -> "list[Any]":
    """The requests that come first."""
    from gyrostat_agent.kubernetes import target as aims
    from gyrostat_agent.kubernetes.nodes import Limits

    if what in _OTHERS and not name:
        raise SetupError(f"{what}: name the {'pod' if what == 'evict' else 'node'}")
    if what == "evict":
        return [aims.eviction(_server(at), name, at["namespace"])]
    if what in _OTHERS:
        return [aims.node_change(_server(at), what, name, reason, Limits(budget, least))]
    _, target = _target(at["job"], at["namespace"], at["kubeconfig"])
    return [aims.first_request(target, aims.by_hand(target, what, time.time(), avoid, reason), time.time())]


def _carry_out(what: str, reason: str, at: dict[str, str]) -> int:
    """Until the job stands still, or goes on."""
    from gyrostat_agent.kubernetes import target as aims
    from gyrostat_agent.kubernetes.patience import carry_out
    from gyrostat_agent.kubernetes.turn import Turns

    server, target = _target(at["job"], at["namespace"], at["kubeconfig"])
    order = aims.by_hand(target, what, time.time(), (), reason)
    turns = Turns(server, target.kind, target.ref, time.time, time.monotonic)
    over = carry_out(turns, order, dict, time.time, threading.Event().wait, click.echo)
    click.echo(over.said if over is not None else "nobody knows what came of it: gyrostat kubernetes show")
    return 0 if over is not None and over.done else EXIT_FAULT
