"""``gyrostat journal verify``: the hash chain, turn by turn."""

import contextlib
import json
import os

import click

from gyrostat.wire.fields import clean
from gyrostat_agent.cli.options import as_json, watched_run_dir
from gyrostat_agent.errors import EXIT_DISTRUST, DistrustError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.rundir import existing
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Verb


@click.group()
def journal() -> None:
    """Look after the journal of a run: `verify` checks its hash chain.

    What stands in it is shown by `gyrostat incidents --all`.

    \b
    gyrostat journal verify /var/tmp/my-run
    """


@journal.command()
@watched_run_dir
@as_json
@click.pass_context
def verify(ctx: click.Context, run_dir: str, as_json: bool) -> None:
    """Walk the hash chain of RUN_DIR's journal; exit status 4 where it is broken.

    \b
    gyrostat journal verify /var/tmp/my-run
    """
    run = existing(run_dir)
    try:
        found = Journal(os.path.join(run.agent, "journal.db"), readonly=True)
        verdict = found.verify()
        head = found.head()
        trusted = "" if verdict.ok else _trusted(found)
    except JournalError as error:
        raise DistrustError(str(error)) from None
    if as_json:
        click.echo(json.dumps({**verdict._asdict(), "head": head}))
    elif verdict.ok:
        click.echo(f"{verdict.turns} turns, the chain is whole; head {head}")
    else:
        consequence = trusted or "the agent observes only until: gyrostat trust"
        click.echo(f"broken at turn {verdict.broken_at}: {clean(verdict.why)}; {consequence}")
    ctx.exit(0 if verdict.ok else EXIT_DISTRUST)


def _trusted(journal: Journal) -> str:
    """Who has trusted the run since an agent last refused to; '' where nobody has, or it cannot be read."""
    with contextlib.suppress(JournalError):
        for said in journal.entries(kinds=(EntryKind.COMMAND,), newest_first=True):
            if said.subject in (Verb.TRUST, Verb.DISTRUST):
                return clean(f"since then, entry {said.id}: {said.text}") if said.subject == Verb.TRUST else ""
    return ""
