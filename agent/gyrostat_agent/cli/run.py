"""``gyrostat run -- COMMAND``: a trainer with the sidecar beside it."""

import contextlib
import fcntl
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from gyrostat.wire import RunDirectory
from gyrostat.wire.rights import check_folder
from gyrostat_agent.childprocess import in_words
from gyrostat_agent.cli.home import homes
from gyrostat_agent.cli.options import deciding, is_named, passed_on, settings
from gyrostat_agent.errors import HeldError, SetupError
from gyrostat_agent.launch.person import EXIT_PERSON, needed
from gyrostat_agent.rundir import prepare
from gyrostat_rules.entries import Entry

_ENDS = f"""Leaves with COMMAND's own exit status, or dies of its signal; with {EXIT_PERSON} in mode act where a
person is needed: do not queue it again. Before it is started: 2 something given cannot be used, 3 the run directory is
in use, 126 it cannot be executed, 127 it is not found."""


def _seconds(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not value >= 0.0:  # NaN neither
        raise SetupError(f"--{str(param.name).replace('_', '-')} {value:g}: give 0 or more seconds")
    return value


# What stands behind the first word is the command's own, with or without -- before it.
@click.command(context_settings={"allow_interspersed_args": False}, epilog=_ENDS)
@click.option(
    "--run-dir",
    type=click.Path(),
    help="Where the two talk; by default a new folder of yours under TMPDIR or /var/tmp.",
)
@click.option(
    "--mend-within",
    default=60.0,
    show_default=True,
    callback=_seconds,
    help="Seconds that a dead trainer waits for a verdict (mode act); with approvals on, a person has so long.",
)
@click.option(
    "--grace",
    default=60.0,
    show_default=True,
    callback=_seconds,
    help="Seconds from SIGTERM to SIGKILL for a trainer that is to be restarted; torchrun's workers take 30.",
)
@click.option(
    "--tail/--no-tail",
    default=None,
    help="Read what COMMAND prints, as a log; by default where that is no terminal and there is no --log.",
)
@click.option("--flags", type=click.Path(), default="", help="A table of launchers and their flags, beside our own.")
@click.option("--explain", is_flag=True, help="Say what can be done to this command and what not, and end.")
@deciding
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.pass_context
def run(
    ctx: click.Context, /, run_dir: str | None, mend_within: float, grace: float, tail: bool | None, flags: str,
    explain: bool, command: tuple[str, ...], listen: str, **given: Any,
) -> None:  # fmt: skip
    """Run COMMAND with the sidecar beside it; signals, output and exit status pass through unchanged.

    Gyrostat's own options stand before COMMAND. What went wrong is counted at the end, on stderr.

    \b
    gyrostat run -- python train.py --config rl.yaml
    gyrostat run --mode act --run-dir /var/tmp/my-run -- torchrun --nproc-per-node 8 train.py
    gyrostat run --explain --mode act -- trl grpo --config rl.yaml
    """
    from gyrostat_agent.launch import capabilities
    from gyrostat_agent.launch.flags import recognise, table
    from gyrostat_agent.launch.tail import LOG, Plan, plan
    from gyrostat_agent.supervisor import Supervisor, say
    from gyrostat_agent.takenport import check_free

    path = os.path.abspath(run_dir) if run_dir else _new_run_dir(given["run_name"], make=not explain)
    launcher = recognise(command, table(flags))
    reads = plan(terminals=tail is True)
    tails = reads.reads and (not given["logs"] if tail is None else tail)
    given["logs"] += (os.path.join(path, LOG),) if tails else ()
    chosen = settings(path, given)
    told = capabilities.rows(chosen, reads, tails, launcher)
    if explain:
        click.echo("\n".join(capabilities.lines(told)))
        return
    named = listen if is_named(ctx, "listen") else None
    if named:
        check_free(named, "--listen")
    place = prepare(path)
    _refuse_second(place)
    argv = [sys.executable, "-m", "gyrostat_agent", "agent", path, *passed_on(chosen, named, given["rules"])]
    say(f"run directory {path}; look with: gyrostat status {shlex.quote(path)}")
    for line in ("turned off by what is missing:", *capabilities.lines(told, missing=True)):
        say(line)
    began = time.time()
    status = Supervisor(
        command, path, chosen.run, argv, mode=chosen.mode, mend_within=mend_within, agent_takes_up=(signal.SIGTERM,),
        grace=grace, tail=reads if tails else Plan(), launcher=launcher,
        at_end=lambda status, asked: _leave(place, chosen.mode, began, status, asked, say),
    ).run()  # fmt: skip
    ctx.exit(status)


def _leave(
    place: RunDirectory, mode: str, began: float, status: int, asked: bool, say: Callable[[str], None]
) -> int:  # fmt: skip
    """The status to leave with, after the last words: how much went wrong, and whether a person is needed."""
    entries = _entries(place)
    count = len({entry.subject for entry in entries if entry.kind == "incident"})
    if count:
        what = "1 incident" if count == 1 else f"{count} incidents"
        say(f"{what} in this run; look with: gyrostat incidents {shlex.quote(place.path)}")
    why = needed(entries, began) if mode == "act" and not asked else ""
    if not why or (not status and "stopped by the agent" not in why):
        return status
    say(f"a person is needed, do not queue it again: {why}; leaving with {EXIT_PERSON} instead of {in_words(status)}")
    return EXIT_PERSON


def _new_run_dir(run_name: str, *, make: bool) -> str:
    """A folder of this user's, on tmpfs where there is one."""
    home = homes()[0]
    name = run_name or time.strftime("run-%Y%m%d-%H%M%S")
    if not make:
        return os.path.join(home, name)
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        check_folder(home)  # anybody may have made it first: whoever owns it could put another run in this one's place
    except OSError as error:
        raise SetupError(f"{home} cannot be used: {error}; give a folder of your own with --run-dir") from None
    return os.path.join(home, name if run_name else f"{name}-{os.getpid()}")


def _refuse_second(place: RunDirectory) -> None:
    """Raise HeldError where a living supervisor writes there: two would each start and restart a trainer."""
    path = os.path.join(place.records, ".supervisor-00000.lock")
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeldError(
                f"{place.path} has a living `gyrostat run` already; give each run a directory of its own with --run-dir"
            ) from None
        finally:
            os.close(fd)


def _entries(place: RunDirectory) -> list[Entry]:
    """What the journal has of incidents and actions; nothing where that cannot be read: the trainer's status counts."""
    from gyrostat_agent.journal import Journal
    from gyrostat_rules.entries import EntryKind

    try:
        found = Journal(os.path.join(place.agent, "journal.db"), readonly=True)
        with contextlib.closing(found):
            return list(found.entries(kinds=(EntryKind.INCIDENT, EntryKind.ACTION)))
    except Exception:
        return []
