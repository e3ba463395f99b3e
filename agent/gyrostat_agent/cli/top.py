"""``gyrostat top``: the run live in the terminal."""

import json
import math
import time
from typing import Any

import click
from rich.live import Live

from gyrostat.wire import RunDirectory
from gyrostat.wire.fields import read_numbers
from gyrostat_agent.cli.options import as_json, watched_run_dir
from gyrostat_agent.cli.status import shown_now
from gyrostat_agent.demo.terminal import is_live, open_console
from gyrostat_agent.rundir import existing
from gyrostat_agent.top.frame import frame, speaker
from gyrostat_agent.top.keys import keys
from gyrostat_agent.top.past import Past


@click.command()
@watched_run_dir
@click.option(
    "--every", type=click.FloatRange(0.2, 3600), default=1.0, show_default=True, metavar="SECONDS",
    help="How often it is drawn.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Draw it once, and end; so it does where this is no terminal.")
@click.option("--no-color", is_flag=True, help="No colours, and no bars that a plain font lacks.")
@as_json
def top(run_dir: str, every: float, once: bool, no_color: bool, as_json: bool) -> None:
    """Show the run in RUN_DIR as it goes: its curves, what is wrong, what is being done. q ends it.

    \b
    gyrostat top /var/tmp/my-run
    gyrostat top --once --no-color /var/tmp/my-run         one screenful, for a pipe or a mail
    gyrostat top --json --every 5 /var/tmp/my-run          one line of JSON every 5 s
    """
    run = existing(run_dir)
    first = speaker(shown_now(run)[0])
    past = Past(first["rank"] if first is not None else 0)
    past.read(run)
    try:
        if as_json:
            _lines(run, past, every, once=once)
        else:
            _draw(run, past, every, once=once, no_color=no_color)
    except KeyboardInterrupt:
        return


def _draw(run: RunDirectory, past: Past, every: float, *, once: bool, no_color: bool) -> None:
    console = open_console(no_color)
    said, trouble = _look(run, past)
    if once or not is_live(console):
        console.print(frame(said, trouble, past, console.width, plain=no_color))
        return
    with keys() as ended, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(frame(said, trouble, past, console.width), refresh=True)
            if ended(every):
                return
            said, trouble = _look(run, past)


def _lines(run: RunDirectory, past: Past, every: float, *, once: bool) -> None:
    while True:
        said, trouble = _look(run, past)
        pace = past.pace if math.isfinite(past.pace) else None
        click.echo(json.dumps({**said, "trouble": trouble, "seconds_a_step": pace}))
        if once:
            return
        time.sleep(every)


def _look(run: RunDirectory, past: Past) -> tuple[dict[str, Any], str]:
    said, trouble = shown_now(run)
    newest = speaker(said)
    if newest is not None and newest["rank"] == past.rank:
        past.add(said.get("segment", 0), newest["step"], newest["at"], read_numbers(newest, "values"))
    return said, trouble
