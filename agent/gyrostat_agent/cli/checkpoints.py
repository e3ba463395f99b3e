"""``gyrostat checkpoints``: which there are, which of them can be gone back to and why the others cannot; and back."""

import json
import os
import time
from typing import Any

import click
from rich.table import Table

from gyrostat.wire.fields import clean
from gyrostat_agent.checkpoints.pins import FOLDER
from gyrostat_agent.cli.checkpointarchive import archive, archives, restore
from gyrostat_agent.cli.checkpointprune import prune
from gyrostat_agent.cli.options import as_json, watched_run_dir
from gyrostat_agent.cli.word import say
from gyrostat_agent.demo.terminal import open_console
from gyrostat_agent.errors import EXIT_FAULT, SetupError
from gyrostat_agent.lookback import engine_of
from gyrostat_agent.rundir import existing, held
from gyrostat_rules.certify import name_of, newest_first
from gyrostat_rules.inputs import CheckpointSeen, Fit, Verb
from gyrostat_rules.keeping import keep
from gyrostat_rules.requests import LAST_STABLE, STABLE, target, why_not
from gyrostat_rules.state import State

_PINNED = "pinned"


@click.group()
def checkpoints() -> None:
    """Look after a run's checkpoints: which can be gone back to, and back to one.

    \b
    gyrostat checkpoints list /var/tmp/my-run
    gyrostat checkpoints rollback --to last-stable /var/tmp/my-run
    gyrostat checkpoints archive checkpoints/step-00000400 --to s3://bucket/my-run
    """


for command in (archive, restore, archives, prune):
    checkpoints.add_command(command)


@checkpoints.command("list")
@watched_run_dir
@as_json
def show_all(run_dir: str, as_json: bool) -> None:
    """List the checkpoints of the run in RUN_DIR, newest first: can one go back to it, and if not, why.

    \b
    gyrostat checkpoints list /var/tmp/my-run
    gyrostat checkpoints list --json /var/tmp/my-run | jq '.[] | select(.certified)'
    """
    state = engine_of(existing(run_dir)).state
    found = [_facts(state, seen) for seen in newest_first(state)]
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("step", "saved", "", "tags", "why not"):
        table.add_column(column, overflow="fold")
    there = [each for each in found if each["why_not"] != "gone"]  # rotation leaves hundreds behind
    for each in there:
        word = "certified" if each["certified"] else each["fit"]
        tags = ", ".join([*each["tags"], *(["a pin"] if each["pin"] else [])])
        table.add_row(str(each["step"]), _ago(each["saved_at"]), word, clean(tags), clean(each["why_not"]))
    open_console().print(table if there else "no checkpoint has been seen" if not found else "none is there any more")
    if len(found) > len(there):
        click.echo(f"{len(found) - len(there)} more are gone, as after rotation; --json lists them")


@checkpoints.command()
@click.argument("step", type=int)
@watched_run_dir
@as_json
def show(step: int, run_dir: str, as_json: bool) -> None:
    """Tell all that is known of the checkpoints of STEP: where, digest, knobs, place in the data, evidence.

    \b
    gyrostat checkpoints show 400 /var/tmp/my-run
    """
    state = engine_of(existing(run_dir)).state
    found = [_facts(state, seen) for seen in newest_first(state) if seen.step == step]
    if not found:
        raise SetupError(
            f"no checkpoint of step {step} is known; gyrostat checkpoints list {run_dir} shows those that are"
        )
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for each in found:
        for name, value in each.items():
            click.echo(clean(f"{name:<15} {_shown(value)}"))
        click.echo("")


@checkpoints.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@as_json
@click.pass_context
def verify(ctx: click.Context, paths: tuple[str, ...], as_json: bool) -> None:
    """Read the checkpoints at PATHS whole: complete, digests right, every number finite? Exit status 1 where not.

    \b
    gyrostat checkpoints verify checkpoints/step-00000400
    """
    from gyrostat_agent.checkpoints.layouts.examine import examine  # brings numpy

    found = [examine(os.path.abspath(path)) for path in paths]
    if as_json:
        click.echo(json.dumps([seen._asdict() for seen in found], indent=1))
    for seen in () if as_json else found:
        click.echo(clean(f"{seen.path}: {seen.fit}" + (f": {seen.why}" if seen.why else "")))
    ctx.exit(0 if all(seen.fit == Fit.VERIFIED for seen in found) else EXIT_FAULT)


@checkpoints.command()
@click.option("--to", required=True, metavar="WHICH", help=f"{LAST_STABLE}, a step, or a tag.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@watched_run_dir
@click.pass_context
def rollback(ctx: click.Context, to: str, yes: bool, run_dir: str) -> None:
    """Go back to a certified checkpoint of the run in RUN_DIR, as the agent would: shown first, then asked.

    In any mode, through the trainer's own rollback, or by a restart where that is gone. `last-stable` is the newest
    that is tagged stable, or the newest certified where none is. Exit status 2 where it cannot be done, and why.

    \b
    gyrostat checkpoints rollback --to last-stable /var/tmp/my-run
    gyrostat checkpoints rollback --to 400 --yes /var/tmp/my-run
    """
    run = existing(run_dir)
    state = engine_of(run).state
    seen, said = target(state, to)
    if seen is None:
        raise SetupError(clean(f"nothing to go back to: {'; '.join(said[:4])}"))
    if reason := why_not(state, seen):
        raise SetupError(clean(f"step {seen.step} cannot be gone back to now: {reason}"))
    if not held(run):
        raise SetupError("no agent watches this run, so that nobody would do it; start gyrostat agent, then ask again")
    for line in said[:4]:
        click.echo(clean(line))
    click.echo(
        clean(f"from step {state.step} back to {seen.step}: {max(0, state.step - seen.step)} steps are done again")
    )
    click.echo(clean(f"checkpoint {seen.path}, saved {_ago(seen.saved_at)}"))
    if not yes and not click.confirm("go back?"):
        click.echo("nothing was done")
        ctx.exit(EXIT_FAULT)
    say(run_dir, Verb.ROLLBACK, {"to": to})


@checkpoints.command()
@click.argument("step", type=int)
@click.option("--tag", default=STABLE, show_default=True, help="The word for it.")
@watched_run_dir
def promote(step: int, tag: str, run_dir: str) -> None:
    """Tag the checkpoint of STEP, after a validation has passed: what is tagged is kept from rotation.

    \b
    gyrostat checkpoints promote 400 /var/tmp/my-run
    gyrostat checkpoints promote 400 --tag before-new-data /var/tmp/my-run
    """
    say(run_dir, Verb.TAG, {"step": str(step), "tag": tag})


@checkpoints.command()
@click.argument("step", type=int)
@watched_run_dir
def pin(step: int, run_dir: str) -> None:
    """Keep the checkpoint of STEP from rotation until `unpin`.

    \b
    gyrostat checkpoints pin 400 /var/tmp/my-run
    """
    say(run_dir, Verb.TAG, {"step": str(step), "tag": _PINNED})


@checkpoints.command()
@click.argument("step", type=int)
@click.option("--tag", default=_PINNED, show_default=True, help="The tag to take away.")
@watched_run_dir
def unpin(step: int, tag: str, run_dir: str) -> None:
    """Take a tag of the checkpoint of STEP away, so that it is kept no longer for that.

    \b
    gyrostat checkpoints unpin 400 /var/tmp/my-run
    gyrostat checkpoints unpin 400 --tag stable /var/tmp/my-run
    """
    say(run_dir, Verb.TAG, {"step": str(step), "tag": tag, "off": "yes"})


def _facts(state: State, seen: CheckpointSeen) -> dict[str, Any]:
    reason = why_not(state, seen, certified_only=True)
    name = name_of(seen.path)
    return {
        "step": seen.step, "segment": seen.segment, "path": seen.path, "saved_at": seen.saved_at, "fit": seen.fit,
        "certified": not reason, "why_not": reason, "tags": state.tags.get(name, []),
        "kept": name in keep(state, 2).names, "pin": os.path.basename(os.path.dirname(seen.path)) == FOLDER,
        "digest": seen.digest, "data_cursor": seen.data_cursor, "last_directive": seen.last_directive,
        "knobs": dict(seen.knobs),
    }  # fmt: skip


def _ago(at: float) -> str:
    """How long ago, in the largest unit that says it."""
    seconds = max(0.0, time.time() - at)
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name} ago"
    return f"{seconds:.0f} s ago"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={v:g}" for k, v in value.items()) or "none"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
