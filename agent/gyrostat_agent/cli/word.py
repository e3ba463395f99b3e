"""A person's word to the agent: approve, deny, pause, resume, trust. One file each in the agent's own folder."""

import getpass

import click

from gyrostat_agent.cli.options import run_dir
from gyrostat_agent.errors import SetupError
from gyrostat_agent.rundir import existing, held
from gyrostat_agent.sources.commands import give
from gyrostat_rules.inputs import Verb


@click.command()
@click.argument("action")
@run_dir
def approve(action: str, run_dir: str) -> None:
    """Let ACTION (its id, e.g. i0001.2) go ahead: that one action of that one incident, once.

    \b
    gyrostat approve i0001.2 /dev/shm/my-run
    """
    _say(run_dir, Verb.APPROVE, {"action": action})


@click.command()
@click.argument("action")
@run_dir
def deny(action: str, run_dir: str) -> None:
    """Refuse ACTION; nothing more is tried for its incident.

    \b
    gyrostat deny i0001.2 /dev/shm/my-run
    """
    _say(run_dir, Verb.DENY, {"action": action})


@click.command()
@run_dir
def pause(run_dir: str) -> None:
    """Do nothing to the run in RUN_DIR until `gyrostat resume`; go on observing.

    \b
    gyrostat pause /dev/shm/my-run
    """
    _say(run_dir, Verb.PAUSE, {})


@click.command()
@run_dir
def resume(run_dir: str) -> None:
    """End a pause.

    \b
    gyrostat resume /dev/shm/my-run
    """
    _say(run_dir, Verb.RESUME, {})


@click.command()
@run_dir
@click.option("--reason", required=True, help="Why it may be trusted again; goes into the journal.")
def trust(run_dir: str, reason: str) -> None:
    """End observe-only, after a broken journal or a lost ledger has been looked into.

    \b
    gyrostat trust /dev/shm/my-run --reason "restored from last night's copy, checked by hand"
    """
    _say(run_dir, Verb.TRUST, {"reason": reason})


def _say(path: str, verb: str, arguments: dict[str, str]) -> None:
    run = existing(path)
    try:
        give(run, verb, {**arguments, "by": getpass.getuser()})
    except OSError as error:
        raise SetupError(f"{run.agent}: {error.strerror}; run this as the agent's user") from None
    holder = held(run)
    click.echo(
        f"{verb} given to {holder}"
        if holder
        else f"{verb} laid down; no agent watches this run now, the next one reads it"
    )
