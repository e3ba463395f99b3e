"""``gyrostat runbook``: the page for the one on call, of a rule, an alert, a fault or a playbook."""

import json
import re

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from gyrostat_agent.cli.options import as_json, builtin
from gyrostat_agent.demo.terminal import is_live, open_console, width_of
from gyrostat_agent.runbooks import Found, Runbook, faults_of, find, runbooks
from gyrostat_rules.pack import RulePack
from gyrostat_rules.packfile import parse

_LINK = re.compile(r"\[([^\]]+)\]\((\w+)\.md\)")


@click.command()
@click.argument("name", required=False, default="")
@click.option("--list", "listed", is_flag=True, help="Show which pages there are, and for what; so without NAME.")
@as_json
def runbook(name: str, listed: bool, as_json: bool) -> None:
    """Print the page for whoever is on call: of a rule, a Prometheus alert, a fault or a playbook.

    What it means, is it real, what was and will be done, what to look at with commands to copy, what to do by hand,
    whom to wake, how to see that it is over. Markdown where stdout is no terminal. Exit status 2 where NAME has none.

    \b
    gyrostat runbook NonFinitePoison
    gyrostat runbook crash > crash.md
    gyrostat runbook --list
    """
    pages, pack = runbooks(), parse(builtin())
    if listed or not name:
        _list(pages, pack, as_json)
        return
    found = find(name, pages, pack)
    if as_json:
        click.echo(json.dumps(_facts(found.page, pack) | _asked(name, found), indent=1))
        return
    console = open_console()
    if is_live(console) and console.encoding.startswith("utf"):
        _draw(console, found.page.text)
    else:
        click.echo(found.page.text, nl=False)
    for other in found.also:
        click.echo(f"See also: gyrostat runbook {other}", err=True)


def _draw(console: Console, text: str) -> None:
    """On a terminal a link to another page is the command that opens it."""
    opened = _LINK.sub(r"\1 (`gyrostat runbook \2`)", text)
    console.print(Markdown(opened, hyperlinks=False, code_theme="ansi_dark"), width=width_of(console))


def _list(pages: dict[str, Runbook], pack: RulePack, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([_facts(page, pack) for page in pages.values()], indent=1))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("runbook", "alerts", "faults"):
        table.add_column(column, overflow="fold", no_wrap=column == "runbook")
    for page in pages.values():
        table.add_row(page.name, ", ".join(t.alert for t in page.told), ", ".join(faults_of(page, pack.rules)))
    open_console().print(table)


def _facts(page: Runbook, pack: RulePack) -> dict[str, object]:
    book = pack.playbook(page.name)
    return {
        "runbook": page.name, "title": page.title,
        "alerts": [{"alert": t.alert, "severity": t.severity, "of": t.of} for t in page.told],
        "faults": list(faults_of(page, pack.rules)), "rungs": [rung.remedy for rung in book.rungs] if book else [],
    }  # fmt: skip


def _asked(name: str, found: Found) -> dict[str, object]:
    return {"asked": name, "is": found.what, "also": list(found.also), "text": found.page.text}
