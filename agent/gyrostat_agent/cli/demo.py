"""``gyrostat demo``: a real run, broken and mended before your eyes."""

import os

import click

from gyrostat.wire.fields import clean
from gyrostat_agent.errors import SetupError


@click.command()
@click.option(
    "--scenario", default="nan_data", show_default=True, help="What goes wrong: names parted by commas, or `all`."
)
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1), help="How many seeds.")
@click.option("--seed-from", default=0, show_default=True, type=click.IntRange(0), help="The first of them.")
@click.option("--steps", default=60, show_default=True, type=click.IntRange(30), help="Steps of each run.")
@click.option("--json", "json_path", type=click.Path(), help="Write the figures of all runs there.")
@click.option("--out", type=click.Path(), help="Folder for run directories, logs and reports.")
@click.option("--no-color", is_flag=True, help="Plain lines, as where the output is no terminal.")
@click.pass_context
def demo(
    ctx: click.Context,
    scenario: str,
    seeds: int,
    seed_from: int,
    steps: int,
    json_path: str | None,
    out: str | None,
    no_color: bool,
) -> None:
    """Train a small looped MoE by RL on the CPU: clean, broken and untreated, broken and treated.

    Mode act, approvals off. Exit status 0 where every seed was mended.

    \b
    gyrostat demo
    gyrostat demo --scenario nan_applied --seeds 3 --json figures.json
    gyrostat demo --scenario clean,divergence --seed-from 7
    """
    from gyrostat_agent.demo import run_demo

    if json_path is not None and (why := _unwritable(os.path.abspath(json_path))):
        raise SetupError(f"--json {clean(json_path)}: {why}; give a file in a folder that can be written")
    ctx.exit(run_demo(scenario, seeds, json_path, out, steps, seed_from=seed_from, no_color=no_color))


def _unwritable(path: str) -> str:
    """Why the figures could not be written there, or '': known before minutes of training rather than after."""
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        return "it is a folder"
    if not os.path.isdir(folder):
        return f"{folder} is no folder"
    return "" if os.access(path if os.path.exists(path) else folder, os.W_OK) else "it cannot be written"
