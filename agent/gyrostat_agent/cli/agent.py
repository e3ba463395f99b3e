"""``gyrostat agent``: watch a run directory."""

import click

from gyrostat_agent.cli.options import deciding, run_dir, settings
from gyrostat_agent.rundir import prepare


@click.command()
@run_dir
@deciding
@click.pass_context
def agent(
    ctx: click.Context, run_dir: str, listen: str, mode: str, no_approvals: bool, rules: str | None, run_name: str,
    logs: tuple[str, ...], log_format: str,
) -> None:  # fmt: skip
    """Watch RUN_DIR until told to end.

    \b
    gyrostat agent /run/gyrostat/my-run                     decide, write down, act on nothing
    gyrostat agent /run/gyrostat/my-run --mode act          roll back, restart, stop after approval
    """
    from gyrostat_agent.service import Service, say_on_stderr

    chosen = settings(run_dir, run_name, rules, mode, no_approvals, logs, log_format)
    ctx.exit(Service(prepare(run_dir), chosen, listen, say_on_stderr).run())
