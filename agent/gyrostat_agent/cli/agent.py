"""``gyrostat agent``: watch a run directory."""

from typing import Any

import click

from gyrostat_agent.cli.options import deciding, is_named, run_dir, settings
from gyrostat_agent.rundir import prepare


@click.command()
@run_dir
@deciding
@click.option(
    "--kubernetes", is_flag=True, help="Find the job that owns this pod; hold or restart it; say at it what is done."
)
@click.pass_context
def agent(ctx: click.Context, /, run_dir: str, listen: str, kubernetes: bool, **given: Any) -> None:
    """Watch RUN_DIR until told to end.

    \b
    gyrostat agent /run/gyrostat/my-run                     decide, write down, act on nothing
    gyrostat agent /run/gyrostat/my-run --mode act          roll back, restart, stop after approval
    gyrostat agent /run/gyrostat/my-run --kubernetes        in a pod: and its job, by the API (docs/kubernetes.md)
    """
    from gyrostat_agent.service import Service, say_on_stderr

    chosen = settings(run_dir, given)._replace(kubernetes=kubernetes)
    named = is_named(ctx, "listen")
    ctx.exit(Service(prepare(run_dir), chosen, listen, say_on_stderr, named=named).run())
