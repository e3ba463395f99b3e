"""``gyrostat backtest``: recorded cases replayed through the rules, and how well the rules did."""

import json
import sys

import click

from gyrostat.wire.fields import clean
from gyrostat_agent.backtest.corpus import index
from gyrostat_agent.backtest.demands import demands, unmet
from gyrostat_agent.backtest.table import as_json as figures
from gyrostat_agent.backtest.table import lines
from gyrostat_agent.backtest.tally import Tally, tally
from gyrostat_agent.backtest.verdicts import verdicts
from gyrostat_agent.cli.options import as_json, digest_of, read_pack

UNMET = 1


@click.command()
@click.argument("corpus", nargs=-1, required=True, type=click.Path(), metavar="CORPUS...")
@click.option("--pack", "--rules", "pack", type=click.Path(), help="A rule pack instead of the one that comes with it.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes beside each other.")
@click.option(
    "--require", default=None, metavar="NAME=NUMBER,...", help="Exit status 1 where it does not come to that."
)
@as_json
@click.pass_context
def backtest(
    ctx: click.Context, corpus: tuple[str, ...], pack: str | None, jobs: int, require: str | None, as_json: bool
) -> None:
    """Replay the recorded cases in CORPUS through the rules, and say what they would have found, and when.

    A corpus is JSON lines, one case a line; lines of one `group` are one run. docs/backtest.md says how to write one.
    Exit status 0 whatever the score, 1 where --require is not met, 2 where something given cannot be used.

    \b
    gyrostat backtest cases.jsonl
    gyrostat backtest --pack my-rules.yaml --json cases.jsonl more.jsonl
    gyrostat backtest --jobs 4 --require recall=0.9,false_incidents=0 cases.jsonl
    """
    asked = demands(require) if require is not None else []
    found = _replayed(corpus, read_pack(pack), jobs)
    if as_json:
        click.echo(json.dumps(figures(found), indent=1, allow_nan=False))
    else:
        for line in lines(found):
            click.echo(clean(line))
    missing = unmet(asked, found)
    for said in missing:
        click.echo(f"gyrostat: --require: {said}", err=True)
    ctx.exit(UNMET if missing else 0)


def _replayed(corpus: tuple[str, ...], text: str, jobs: int) -> Tally:
    runs = index(corpus)
    judged = verdicts(runs, text, digest_of(text), jobs)
    if not sys.stderr.isatty():
        return tally(judged)
    with click.progressbar(judged, length=len(runs), label="replaying", file=sys.stderr) as bar:
        return tally(bar)
