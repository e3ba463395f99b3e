"""``gyrostat selftest``: every detector tried on simulated runs, as installed here."""

import json
from collections.abc import Sequence

import click
from rich.table import Table

from gyrostat.wire.fields import clean
from gyrostat_agent.cli.options import as_json, read_pack
from gyrostat_agent.demo.terminal import open_console
from gyrostat_agent.errors import EXIT_FAULT
from gyrostat_agent.selftest.trial import NOT_SIMULATED, PASS, Trial, trials
from gyrostat_rules.packfile import parse


@click.command()
@click.option("--pack", type=click.Path(), help="A rule pack whose parameters are tried; else the one that ships.")
@as_json
@click.pass_context
def selftest(ctx: click.Context, pack: str | None, as_json: bool) -> None:
    """Try every detector, with each rule's parameters, on two simulated runs: it must speak in the one that has its
    fault, and keep silent in the quiet one. Nothing is read but the pack, and no time passes. Exit status 1 where any
    fails or could not be tried.

    \b
    gyrostat selftest
    gyrostat selftest --pack my-rules.yaml --json
    """
    found = list(trials(parse(read_pack(pack))))
    well = all(one.verdict == PASS for one in found)
    if as_json:
        click.echo(json.dumps({"passed": well, "trials": [one._asdict() for one in found]}, indent=1))
    else:
        _show(found)
    ctx.exit(0 if well else EXIT_FAULT)


def _show(found: Sequence[Trial]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("detector", "rules", "speaks at its fault, silent without"):
        table.add_column(column, overflow="fold")
    for detector in dict.fromkeys(one.detector for one in found):
        mine = [one for one in found if one.detector == detector]
        table.add_row(detector, str(sum(bool(one.rule) for one in mine)), _word(mine))
        for one in mine:
            if one.verdict != PASS:
                table.add_row("", "", clean(f"{one.rule or 'its defaults'}: {one.why}"))
    open_console().print(table)
    passed = sum(one.verdict == PASS for one in found)
    click.echo(f"{passed} of {len(found)} passed, each on two simulated runs")


def _word(mine: Sequence[Trial]) -> str:
    """The gravest of the verdicts."""
    return max((one.verdict for one in mine), key=(PASS, NOT_SIMULATED, "FAIL").index)
