"""``gyrostat journal compact``: let go what nothing needs of a run that is over."""

import os
import time
from contextlib import closing

import click

from gyrostat_agent.cli.journalplace import journal_of
from gyrostat_agent.cli.options import watched_run_dir
from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.journal.retention import Retention
from gyrostat_agent.rundir import Lock, existing


@click.command()
@watched_run_dir
@click.option("--yes", is_flag=True, help="Do it; else it is only said what would go.")
def compact(run_dir: str, yes: bool) -> None:
    """Let go the inputs that nothing needs in the journal of RUN_DIR, a run that is over, and shrink its file.

    Every decision stays, and every turn's hash, so that `journal verify` proves what is left; so do the inputs around
    incidents and the last ones. Refused while an agent has the run (exit status 3), or where the chain is broken (4).

    \b
    gyrostat journal compact /var/tmp/my-run
    gyrostat journal compact --yes /var/tmp/my-run
    """
    path, run = journal_of(run_dir), existing(run_dir)
    lock = Lock(run)
    try:
        with closing(Journal(path)) as journal:
            verdict = journal.verify()
            if not verdict.ok:
                raise DistrustError(f"broken at turn {verdict.broken_at}: {verdict.why}; evidence is not compacted")
            _compact(journal, path, yes)
    except JournalError as error:
        raise DistrustError(str(error)) from None
    finally:
        lock.release()


def _compact(journal: Journal, path: str, yes: bool) -> None:
    keeping = Retention(journal, 0, 0, f"journal compact, uid {os.getuid()}")
    going, size = keeping.prospect(), os.path.getsize(path)
    said = f"the inputs of {going.turns} turns, {going.bytes} bytes; the file has {size}"
    if not yes:
        click.echo(f"would let go {said}; do it with --yes")
        return
    keeping.finish(time.time())
    click.echo(f"let go {said}, and now {os.path.getsize(path)}")
