"""``gyrostat journal verify``: the hash chain, turn by turn."""

import json
import os

import click

from gyrostat_agent.cli.options import as_json, run_dir
from gyrostat_agent.errors import EXIT_DISTRUST, DistrustError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.rundir import existing


@click.group()
def journal() -> None:
    """Look after the journal of a run."""


@journal.command()
@run_dir
@as_json
@click.pass_context
def verify(ctx: click.Context, run_dir: str, as_json: bool) -> None:
    """Walk the hash chain of RUN_DIR's journal; exit status 4 where it is broken.

    \b
    gyrostat journal verify /dev/shm/my-run
    """
    run = existing(run_dir)
    try:
        found = Journal(os.path.join(run.agent, "journal.db"), readonly=True)
        verdict = found.verify()
        head = found.head()
    except JournalError as error:
        raise DistrustError(str(error)) from None
    if as_json:
        click.echo(json.dumps({**verdict._asdict(), "head": head}))
    elif verdict.ok:
        click.echo(f"{verdict.turns} turns, the chain is whole; head {head}")
    else:
        click.echo(f"broken at turn {verdict.broken_at}: {verdict.why}; the agent observes only until: gyrostat trust")
    ctx.exit(0 if verdict.ok else EXIT_DISTRUST)
