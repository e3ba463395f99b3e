"""``gyrostat run -- COMMAND``: a trainer with the sidecar beside it."""

import os
import sys
import time

import click

from gyrostat_agent.cli.options import deciding, settings
from gyrostat_agent.rundir import prepare


@click.command(context_settings={"ignore_unknown_options": False})
@click.option(
    "--run-dir",
    type=click.Path(),
    help="Where the two talk; by default a new folder under /dev/shm or the temporary folder.",
)
@click.option(
    "--mend-within",
    default=60.0,
    show_default=True,
    help="Seconds that a dead trainer waits for a verdict (mode act); with approvals on, a person has so long.",
)
@deciding
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(
    ctx: click.Context, run_dir: str | None, mend_within: float, command: tuple[str, ...], listen: str, mode: str,
    no_approvals: bool, rules: str | None, run_name: str,
) -> None:  # fmt: skip
    """Run COMMAND with the sidecar beside it; signals and exit status pass through unchanged.

    \b
    gyrostat run -- python train.py --config rl.yaml
    gyrostat run --mode act --run-dir /dev/shm/my-run -- torchrun --nproc-per-node 8 train.py
    """
    from gyrostat_agent.supervisor import Supervisor

    path = os.path.abspath(run_dir) if run_dir else _new_run_dir(run_name)
    chosen = settings(path, run_name, rules, mode, no_approvals)
    prepare(path)
    argv = [
        sys.executable,
        "-m",
        "gyrostat_agent",
        "agent",
        path,
        "--mode",
        mode,
        "--listen",
        listen,
        "--run",
        chosen.run,
    ]
    argv += ["--no-approvals"] if no_approvals else []
    argv += ["--rules", os.path.abspath(rules)] if rules else []
    click.echo(f"gyrostat: run directory {path}; look with: gyrostat status {path}", err=True)
    ctx.exit(Supervisor(command, path, chosen.run, argv, mode=mode, mend_within=mend_within).run())


def _new_run_dir(run_name: str) -> str:
    """A folder of this user's on tmpfs where there is one: 1,000 appends a second belong on no disk."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else os.environ.get("TMPDIR", "/tmp")  # noqa: S108
    name = run_name or time.strftime("run-%Y%m%d-%H%M%S")
    home = os.path.join(base, f"gyrostat-{os.geteuid()}")
    os.makedirs(home, mode=0o700, exist_ok=True)
    return os.path.join(home, name if run_name else f"{name}-{os.getpid()}")
