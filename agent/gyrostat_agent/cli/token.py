"""``gyrostat token``: what whoever speaks to an agent over HTTP must know; found, changed, shown only when asked."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from gyrostat.wire.fields import clean
from gyrostat.wire.layout import RUN_DIR
from gyrostat_agent.access import notice, tokenfile
from gyrostat_agent.access.notice import Notice
from gyrostat_agent.cli.home import watched_one
from gyrostat_agent.cli.options import as_json
from gyrostat_agent.errors import SetupError
from gyrostat_agent.rundir import existing

_F = TypeVar("_F", bound=Callable[..., Any])


@click.group()
def token() -> None:
    """The token that words over HTTP need: find it, change it.

    Without RUN_DIR it is that of the one run which your agent watches.

    \b
    gyrostat token path
    gyrostat token rotate /var/tmp/my-run
    """


def _meant(command: _F) -> _F:
    option = click.option("--control-token", type=click.Path(), default="", metavar="FILE", help="That file instead.")
    return click.argument("run_dir", required=False, type=click.Path(), envvar=RUN_DIR, metavar="[RUN_DIR]")(
        option(command)
    )


@token.command()
@_meant
@as_json
def path(run_dir: str | None, control_token: str, as_json: bool) -> None:
    """Say which file the token is in; with --json, where the agent listens too.

    \b
    gyrostat token path /var/tmp/my-run
    export GYROSTAT_TOKEN_FILE=$(gyrostat token path)
    """
    found = _find(run_dir, control_token)
    if as_json:
        click.echo(json.dumps(found._asdict()))
        return
    tokenfile.read(found.token_file)
    click.echo(clean(found.token_file))


@token.command()
@_meant
def rotate(run_dir: str | None, control_token: str) -> None:
    """Write a new token; the one before is void at once, and the agent goes on with the new one by itself.

    \b
    gyrostat token rotate /var/tmp/my-run
    gyrostat token rotate --control-token ~/gyrostat.token
    """
    found = _find(run_dir, control_token)
    tokenfile.rotate(found.token_file)
    click.echo(f"{clean(found.token_file)} holds a new token; the one before is void")


@token.command()
@_meant
@click.option("--yes", is_flag=True, help="Print it though stdout is no terminal: into a log it goes with all else.")
def show(run_dir: str | None, control_token: str, yes: bool) -> None:
    """Print the token; where stdout is no terminal, only with --yes.

    \b
    gyrostat token show /var/tmp/my-run
    """
    found = _find(run_dir, control_token)
    held = tokenfile.read(found.token_file).decode("ascii")
    if not (yes or sys.stdout.isatty()):
        raise SetupError("stdout is no terminal, and what is in a log many can read; give --yes if it is meant")
    click.echo(held)


def _find(run_dir: str | None, control_token: str) -> Notice:
    """A file that is named, else that of the run's agent: the one that it was started with."""
    if control_token:
        return Notice("", os.path.abspath(control_token))
    run = existing(run_dir or watched_one())
    said = notice.find(run)
    return said if said.token_file else Notice("", tokenfile.place(run))
