"""Whom a word is for: the agent of a run directory on this machine, or one elsewhere by its address.

The options of ``over_http`` are kept in the command's context, not among its arguments: ``word.say`` looks there, so
that a command says its word in the same way whoever hears it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from gyrostat.wire.layout import RUN_DIR
from gyrostat_agent.cli.home import watched_one
from gyrostat_agent.errors import SetupError

AGENT, TOKEN_FILE = "GYROSTAT_AGENT", "GYROSTAT_TOKEN_FILE"
_KEPT = {"agent_url": AGENT, "agent_token_file": TOKEN_FILE}
_F = TypeVar("_F", bound=Callable[..., Any])


def over_http(command: _F) -> _F:
    """The options of a word that may be said to an agent elsewhere; eager, for then no RUN_DIR is looked for."""
    for option in (
        click.option(
            "--token-file", "agent_token_file", type=click.Path(), envvar=TOKEN_FILE, is_eager=True,
            expose_value=False, callback=_keep, help=f"File with that agent's token. [{TOKEN_FILE}]",
        ),
        click.option(
            "--agent", "agent_url", envvar=AGENT, is_eager=True, expose_value=False, callback=_keep, metavar="URL",
            help=f"Say it to an agent elsewhere: its --control address, instead of RUN_DIR. [{AGENT}]",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def meant(ctx: click.Context, run_dir: str | None, source: ParameterSource | None) -> str:
    """The run directory that is meant; '' where an agent is named by its address.

    What is typed goes before the environment; raises SetupError where both are typed, or both set.
    """
    if AGENT not in ctx.meta:
        return run_dir or watched_one()
    if not run_dir:
        return ""
    if source == ctx.meta[AGENT][1]:
        raise SetupError(f"an agent's address and RUN_DIR are both given; type one, or unset {AGENT} or {RUN_DIR}")
    if source != ParameterSource.COMMANDLINE:
        return ""
    del ctx.meta[AGENT]
    return run_dir


def given(ctx: click.Context, name: str) -> str:
    """What was given of ``AGENT`` or ``TOKEN_FILE``, or ''."""
    value, _ = ctx.meta.get(name, ("", None))
    return str(value)


def _keep(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    name = str(param.name)
    if value:
        ctx.meta[_KEPT[name]] = value, ctx.get_parameter_source(name)
