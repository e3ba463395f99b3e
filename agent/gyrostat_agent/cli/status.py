"""``gyrostat status``: how the run and its agent fare now."""

import json
import os
import time
from pathlib import Path
from typing import Any

import click

from gyrostat_agent.cli.options import as_json, run_dir
from gyrostat_agent.errors import EXIT_FAULT
from gyrostat_agent.rundir import existing, held


@click.command()
@run_dir
@as_json
@click.pass_context
def status(ctx: click.Context, run_dir: str, as_json: bool) -> None:
    """Say how the run in RUN_DIR and its agent fare.

    Exit status 0 where an agent watches it and is not blind, else 1.

    \b
    gyrostat status /dev/shm/my-run
    gyrostat status --json /dev/shm/my-run | jq .blind
    """
    run = existing(run_dir)
    said = _read(os.path.join(run.agent, "status.json"))
    holder = held(run)
    said["agent"] = holder or "none: nobody watches this run"
    if as_json:
        click.echo(json.dumps(said, ensure_ascii=False, indent=2))
    else:
        _show(said, bool(holder))
    ctx.exit(0 if holder and said.get("ready") else EXIT_FAULT)


def _read(path: str) -> dict[str, Any]:
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return raw if isinstance(raw, dict) else {}


def _show(said: dict[str, Any], alive: bool) -> None:
    click.echo(f"run       {said.get('run', '?')}, step {said.get('step', '?')}, segment {said.get('segment', '?')}")
    click.echo(f"agent     {said['agent']}, mode {said.get('mode', '?')}")
    if said.get("observe_only"):
        click.echo(f"          observes only: {said['observe_only']}")
    if not alive:
        click.echo("          what follows is what the last agent saw")
    for blind in said.get("blind", []):
        click.echo(f"blind     {blind}")
    for rank in said.get("ranks", []):
        click.echo(f"{rank['role']:<9} {rank['rank']}: {_rank(rank)}")
    for rule, severity, state in said.get("alerts", []):
        click.echo(f"alert     {rule} {state} ({severity})")
    for kind, state in said.get("open", []):
        click.echo(f"incident  {kind}: {state}")
    click.echo(f"incidents {said.get('incidents', 0)} so far; gyrostat incidents shows them")


def _rank(rank: dict[str, Any]) -> str:
    ended = f", ended: {rank['ended']}" if rank["ended"] else f", {max(0.0, time.time() - rank['at']):.0f} s ago"
    shown = {**rank.get("values", {}), **rank.get("nonfinite", {})}
    values = "  ".join(f"{k} {_short(shown[k])}" for k in ("loss", "reward", "entropy", "grad_norm") if k in shown)
    return f"step {rank['step']}{ended}  {values}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
