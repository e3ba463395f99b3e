"""The options of who is told of incidents, and what they stand for; the last is shown first."""

import os
from typing import Any

import click

from gyrostat_agent.alertpush.target import checked, target
from gyrostat_agent.errors import SetupError
from gyrostat_agent.settings import Settings


def _targets(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for url in value:
        target(url)
    return value


def _page(ctx: click.Context, param: click.Parameter, value: str) -> str:
    example = "http://127.0.0.1:9466" if param.name == "external_url" else "https://wiki/runbooks"
    return checked(value, f"--{str(param.name).replace('_', '-')}", example) if value else ""


PUSHED = (
    click.option(
        "--runbook-base", default="", callback=_page, metavar="URL",
        help="Folder of the runbooks: what alerts link to is URL/NAME.md, where a rule has no URL of its own.",
    ),
    click.option(
        "--external-url", default="", callback=_page, metavar="URL",
        help="How people reach the agent's page, for alerts to link to; else the address of --listen.",
    ),
    click.option(
        "--alertmanager-token-file", "alertmanager_token", type=click.Path(), default="", metavar="FILE",
        help="File with a bearer token for them, mode 0600; read at each post.",
    ),
    click.option(
        "--alertmanager", "alertmanagers", multiple=True, callback=_targets, metavar="URL",
        help="Tell this Alertmanager of incidents and critical alerts, e.g. http://127.0.0.1:9093; repeat for more.",
    ),
)  # fmt: skip


def pushing(chosen: Settings, given: dict[str, Any]) -> Settings:
    """The settings with these options in them; raises SetupError where one goes with none that was given."""
    token = given["alertmanager_token"]
    if (token or given["runbook_base"] or given["external_url"]) and not given["alertmanagers"]:
        raise SetupError(
            "--alertmanager-token-file, --runbook-base and --external-url are of --alertmanager; give that too"
        )
    return chosen._replace(
        alertmanagers=given["alertmanagers"], alertmanager_token=os.path.abspath(token) if token else "",
        runbook_base=given["runbook_base"], external_url=given["external_url"],
    )  # fmt: skip


def pushed_on(chosen: Settings) -> list[str]:
    """The same options again, for a process that is given them."""
    words = [word for url in chosen.alertmanagers for word in ("--alertmanager", url)]
    named = {
        "--alertmanager-token-file": chosen.alertmanager_token, "--runbook-base": chosen.runbook_base,
        "--external-url": chosen.external_url,
    }  # fmt: skip
    return words + [word for name, value in named.items() if value for word in (name, value)]
