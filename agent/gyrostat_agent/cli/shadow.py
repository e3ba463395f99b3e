"""``gyrostat shadow report``: what would have been done, against what came."""

import json
import os

import click

from gyrostat.wire.fields import clean
from gyrostat.wire.layout import RUN_DIR
from gyrostat_agent.cli.home import watched_one
from gyrostat_agent.cli.options import as_json
from gyrostat_agent.shadow.evidence import gather
from gyrostat_agent.shadow.report import report as count
from gyrostat_agent.shadow.table import as_json as figures
from gyrostat_agent.shadow.table import lines
from gyrostat_agent.shadow.watch import WITHIN

evidence = click.option(
    "--evidence", "folders", multiple=True, type=click.Path(), metavar="DIR",
    help="A folder of journals, run directories, reports and backtests (both as --json); repeat for more.",
)  # fmt: skip
within = click.option(
    "--within", type=click.IntRange(1, 100_000), default=WITHIN, show_default=True, metavar="STEPS",
    help="What is bad may come back by itself in so many steps; then it is a miss.",
)  # fmt: skip
with_backtests = click.option(
    "--with-backtests", is_flag=True, help="Count what backtests say with what runs say; else they stand apart."
)


@click.group()
def shadow() -> None:
    """What the rules would have done to past runs: evidence for `gyrostat arm`.

    \b
    gyrostat shadow report /var/tmp/my-run
    """


@shadow.command("report")
@click.argument("run_dirs", nargs=-1, type=click.Path(), metavar="[RUN_DIR]...")
@evidence
@within
@with_backtests
@as_json
def report(
    run_dirs: tuple[str, ...], folders: tuple[str, ...], within: int, with_backtests: bool, as_json: bool
) -> None:
    """Score what would have been done in the runs of RUN_DIR... against what came.

    A hit: the run died, a person intervened, or it stayed bad. A miss: it came back by itself. What is damaged is
    named and left out. docs/shadow.md says what counts as what. Exit status 0 whatever the score.

    \b
    gyrostat shadow report /var/tmp/my-run
    gyrostat shadow report --evidence ~/past-runs --json > evidence/all.json
    """
    runs = run_dirs or (() if folders else (os.environ.get(RUN_DIR) or watched_one(),))
    found = count(gather(runs, folders, within), pooled=with_backtests)
    if as_json:
        click.echo(json.dumps(figures(found), indent=2))
        return
    for line in lines(found):
        click.echo(clean(line))
