"""``gyrostat replay``: the journal's inputs, fed to the rules again."""

import os

import click

from gyrostat_agent.cli.incidents import line
from gyrostat_agent.cli.options import watched_run_dir
from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.recovery import same
from gyrostat_agent.rundir import existing
from gyrostat_rules.engine import Engine
from gyrostat_rules.packerrors import PackError


@click.command()
@watched_run_dir
@click.option("--quiet", is_flag=True, help="Only say whether they are the same.")
def replay(run_dir: str, quiet: bool) -> None:
    """Feed the journal of RUN_DIR to a fresh engine and print the entries that it gives.

    They must be the ones in the journal, with the same ids; exit status 4 where they are not.

    \b
    gyrostat replay /var/tmp/my-run
    """
    run = existing(run_dir)
    engine, turns, entries = Engine(), 0, 0
    try:
        for turn in Journal(os.path.join(run.agent, "journal.db"), readonly=True).turns():
            again = engine.feed(turn.given)
            if not same(again, turn.entries):
                raise DistrustError(
                    f"turn {turn.seq} decides otherwise now: this journal was written by other rules code"
                )
            turns, entries = turns + 1, entries + len(again)
            for entry in () if quiet else again:
                click.echo(line(entry))
    except JournalError as error:
        raise DistrustError(str(error)) from None
    except PackError as error:
        raise DistrustError(f"this version cannot read the journal's rules: {error}") from None
    click.echo(f"{turns} turns fed again, {entries} entries, all as in the journal", err=True)
