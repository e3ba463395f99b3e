"""``gyrostat checkpoints prune``: pins, and archives where asked for, that no rule keeps: shown, asked, gone."""

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import click
from rich.table import Table

from gyrostat.wire.fields import clean
from gyrostat_agent.checkpoints.pins import FOLDER, Pins
from gyrostat_agent.checkpoints.pruning import Wish, judged, needed, pins_of
from gyrostat_agent.cli.checkpointarchive import amount, extra
from gyrostat_agent.cli.options import as_json, watched_run_dir
from gyrostat_agent.demo.terminal import open_console
from gyrostat_agent.errors import EXIT_FAULT, AgentError, HeldError, SetupError
from gyrostat_agent.lookback import engine_of
from gyrostat_agent.rundir import Lock, existing, held
from gyrostat_rules.state import State

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_AGE = re.compile(r"(\d{1,9})(s|min|h|d|w)")


class Row(NamedTuple):
    """What is shown of a pin or an archive. ``frees``: bytes that its removal gives back, at most."""

    what: str
    name: str
    bytes: int
    frees: int
    stays: bool
    why: str


class Places(NamedTuple):
    """The checkpoints' root, and the URL of the archives, '' where they are not asked for."""

    root: str
    url: str


def _age(ctx: click.Context, param: click.Parameter, value: str) -> float:
    match = _AGE.fullmatch(value)
    if value and match is None:
        raise SetupError(f"--older-than {clean(value)}: write a number and a unit: 90min, 12h, 7d, 4w")
    return int(match[1]) * _UNITS[match[2]] if match else 0.0


@click.command()
@click.option("--keep-newest", type=click.IntRange(1, 1000), default=2, show_default=True, metavar="N",
              help="So many of the newest certified ones stay.")  # fmt: skip
@click.option("--older-than", default="", metavar="AGE", callback=_age, help="Only what is older, e.g. 12h, 7d.")
@click.option("--archives", default="", metavar="URL", help="Archived versions below URL too, e.g. s3://bucket/my-run.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@watched_run_dir
@as_json
@click.pass_context
def prune(
    ctx: click.Context, keep_newest: int, older_than: float, archives: str, yes: bool, run_dir: str, as_json: bool
) -> None:
    """Remove the pins of the run in RUN_DIR that no rule keeps: shown with sizes and reasons, then asked.

    What has a tag, what an open incident points to, the last certified one, and what nobody has judged yet stay. The
    checkpoints themselves are the trainer's: none is touched. An agent at work lets go of pins by itself: while one is
    there, only archives can be pruned. With --json and without --yes it is only shown.

    Exit status 0 it is removed, or nothing was to be; 1 you said no, or something could not be removed; 2 something
    given cannot be used; 3 an agent is at work.

    \b
    gyrostat checkpoints prune /var/tmp/my-run
    gyrostat checkpoints prune --older-than 7d --keep-newest 1 --yes /var/tmp/my-run
    gyrostat checkpoints prune --archives s3://my-bucket/run-7 --keep-newest 5 /var/tmp/my-run
    """
    run = existing(run_dir)
    holder = held(run)
    if holder and not archives:
        raise HeldError(
            clean(f"{run.path} is watched by {holder}, which lets go of pins by itself (--pins N keeps fewer, "
                  "gyrostat checkpoints unpin takes a tag away); prune when it has ended")
        )  # fmt: skip
    with contextlib.ExitStack() as stack:
        if not holder:
            lock = Lock(run)  # so that no agent begins meanwhile
            stack.callback(lock.release)
        state = engine_of(run).state
        places = Places("" if holder else _root(state), archives)
        rows = list(_rows(state, places, Wish(keep_newest, older_than)))
        gone = [row for row in rows if not row.stays]
        _show(rows, gone, places, as_json and not yes)
        if not gone or (as_json and not yes):
            return
        if not yes and not click.confirm(f"remove {len(gone)} of {len(rows)}?"):
            click.echo("nothing was removed")
            ctx.exit(EXIT_FAULT)
        failed = list(_removed(gone, places))
        if as_json:
            click.echo(json.dumps([_told(row, failed) for row in rows], indent=1))
    for name, why in failed:
        click.echo(clean(f"gyrostat: {name} could not be removed: {why}"), err=True)
    ctx.exit(EXIT_FAULT if failed else 0)


def _root(state: State) -> str:
    """Where the checkpoints lie; raises SetupError."""
    trainer = state.trainer()
    root = trainer.root if trainer else ""
    if not root:
        raise SetupError("its trainer never said where its checkpoints lie, so that nothing is pinned")
    if not os.path.isdir(root):
        raise SetupError(
            f"{clean(root)}, where its checkpoints lay, is not there; mount it, or there is nothing to prune"
        )
    return root


def _rows(state: State, places: Places, wish: Wish) -> Iterator[Row]:
    now = time.time()
    if places.root:
        try:
            pins = pins_of(places.root)
        except OSError as error:
            raise SetupError(clean(f"{places.root}/{FOLDER}: {error.strerror}; run this as the agent's user")) from None
        for pin, stays, why in judged(state, pins, wish, now):
            yield Row("pin", pin.name, pin.bytes, pin.frees, stays, why)
    if places.url:
        yield from _archives(state, places.url, wish, now)


def _archives(state: State, url: str, wish: Wish, now: float) -> Iterator[Row]:
    with extra():
        from gyrostat_agent.archive import pruning
        from gyrostat_agent.archive.catalogue import listed
        from gyrostat_agent.archive.store import opened
    trainer = state.trainer()
    runs = {state.run, os.path.basename(trainer.root.rstrip("/")) if trainer else ""} - {""}
    must = needed(state, wish.newest)
    for base, size, stays, why in pruning.judged(listed(opened(url)), runs, must, wish.newest, wish.older, now):
        yield Row("archive", base.rstrip("/"), size, size, stays, why)


def _removed(gone: list[Row], places: Places) -> Iterator[tuple[str, str]]:
    """Remove them; those that could not be, with the reason."""
    pins = Pins(places.root)
    for row in gone:
        try:
            if row.what == "pin":
                pins.drop(row.name)
            else:
                _remove_archive(places.url, row.name)
        except (OSError, AgentError) as error:
            yield row.name, getattr(error, "strerror", None) or str(error)


def _remove_archive(url: str, name: str) -> None:
    from gyrostat_agent.archive.pruning import remove
    from gyrostat_agent.archive.store import opened

    remove(opened(url), f"{name}/")


def _show(rows: list[Row], gone: list[Row], places: Places, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([_told(row, []) for row in rows], indent=1))
    if as_json or not rows:
        if not as_json:
            click.echo("nothing is pinned" + (" or archived" if places.url else ""))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "", "size", "frees", "", "why"):
        table.add_column(column, overflow="fold")
    for row in rows:
        words = (row.what, clean(row.name), amount(row.bytes), amount(row.frees), "stays" if row.stays else "goes")
        table.add_row(*words, clean(row.why))
    open_console().print(table)
    if not places.root:
        click.echo("pins are left to the agent that is at work")
    click.echo(f"{len(gone)} of {len(rows)} can go: {amount(sum(row.frees for row in gone))} at most are freed")


def _told(row: Row, failed: list[tuple[str, str]]) -> dict[str, Any]:
    return {**row._asdict(), "failed": dict(failed).get(row.name, "")}
