"""``gyrostat incidents``: what went wrong, what was done, what came of it, and which rules were armed meanwhile."""

import json
import os
from typing import Any

import click

from gyrostat.wire.fields import clean
from gyrostat_agent.cli.options import as_json, watched_run_dir
from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.rundir import existing
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import Verb
from gyrostat_rules.requests import NOT_DONE
from gyrostat_rules.snapshot import to_plain

_KINDS = (EntryKind.INCIDENT, EntryKind.ACTION, EntryKind.PROPOSAL, EntryKind.BILL, EntryKind.COMMAND)


@click.command()
@watched_run_dir
@click.option("--all", "everything", is_flag=True, help="Alerts, checkpoints, sources and commands too.")
@as_json
def incidents(run_dir: str, everything: bool, as_json: bool) -> None:
    """Tell the incidents of the run in RUN_DIR, from its journal, oldest first.

    \b
    gyrostat incidents /var/tmp/my-run
    gyrostat incidents --all --json /var/tmp/my-run
    """
    run = existing(run_dir)
    kinds = () if everything else _KINDS
    try:
        told = Journal(os.path.join(run.agent, "journal.db"), readonly=True).entries(kinds=kinds)
        found = [entry for entry in told if everything or entry.kind != EntryKind.COMMAND or _arms(entry)]
    except JournalError as error:
        raise DistrustError(str(error)) from None
    if as_json:
        click.echo(json.dumps([shown(e) for e in found], indent=2))
        return
    for entry in found:
        click.echo(line(entry))
    if not found:
        click.echo("no incident so far")


def _arms(entry: Entry) -> bool:
    """True where it says which rule acts in mode shadow from here on, or acts no more."""
    return entry.subject in (Verb.ARM, Verb.DISARM) and not entry.text.startswith(NOT_DONE)


def shown(entry: Entry) -> dict[str, Any]:
    """An entry for machines."""
    return {**entry._asdict(), "data": to_plain(dict(entry.data))}


def line(entry: Entry) -> str:
    """An entry for people."""
    said = f"{entry.id}  step {entry.step:>6}  {entry.kind:<10} {entry.subject:<12} {entry.state:<12} {entry.text}"
    return clean(said)
