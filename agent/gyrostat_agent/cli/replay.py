"""``gyrostat replay``: the journal's inputs, fed to the rules again."""

from collections.abc import Iterator

import click

from gyrostat_agent.cli.incidents import line
from gyrostat_agent.cli.journalplace import opened
from gyrostat_agent.cli.options import watched_run_dir
from gyrostat_agent.errors import DistrustError, SetupError
from gyrostat_agent.journal import Journal
from gyrostat_agent.journal.stretches import Stretch, stretches
from gyrostat_agent.recovery import same
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry
from gyrostat_rules.packerrors import PackError


@click.command()
@watched_run_dir
@click.option("--quiet", is_flag=True, help="Only say whether they are the same.")
def replay(run_dir: str, quiet: bool) -> None:
    """Feed the journal of RUN_DIR to a fresh engine and print the entries that it gives.

    They must be the ones in the journal, with the same ids; exit status 4 where they are not. RUN_DIR may be a file of
    `gyrostat journal export`. Where inputs were let go, it begins again from the snapshot behind them.

    \b
    gyrostat replay /var/tmp/my-run
    gyrostat replay incident.jsonl
    """
    turns = entries = 0
    with opened(run_dir) as journal, journal.standing():
        try:
            found = stretches(journal)
            for stretch in found:
                for again in _fed(journal, stretch):
                    turns, entries = turns + 1, entries + len(again)
                    for entry in () if quiet else again:
                        click.echo(line(entry))
        except PackError as error:
            raise DistrustError(f"this version cannot read the journal's rules: {error}") from None
        whole = int(journal.head().partition(":")[0]) - journal.origin[0]
    _tell(turns, entries, whole, found)


def _fed(journal: Journal, stretch: Stretch) -> Iterator[list[Entry]]:
    """The entries of each turn of a stretch, as they come again; raises DistrustError where they are others."""
    engine = _engine(stretch)
    for turn in journal.turns(stretch.after, stretch.last):
        again = engine.feed(turn.given)
        if not same(again, turn.entries):
            raise DistrustError(f"turn {turn.seq} decides otherwise now: this journal was written by other rules code")
        yield again


def _engine(stretch: Stretch) -> Engine:
    try:
        return Engine() if stretch.state is None else Engine.restore(stretch.state)
    except (TypeError, ValueError):
        raise DistrustError(
            f"the snapshot at turn {stretch.after} was written by another version of Gyrostat: replay it with that one"
        ) from None


def _tell(turns: int, entries: int, whole: int, found: list[Stretch]) -> None:
    if whole and not turns:
        raise SetupError("nothing here can be fed again: there is no turn 1, and no snapshot with turns behind it")
    if turns < whole:
        ways = ", ".join(f"{s.after + 1} to {s.last}" for s in found)
        click.echo(f"{whole - turns} of {whole} turns cannot be fed again, inputs are gone; fed: {ways}", err=True)
    click.echo(f"{turns} turns fed again, {entries} entries, all as in the journal", err=True)
