"""``gyrostat run -- COMMAND``: a trainer with the sidecar beside it."""

import contextlib
import fcntl
import os
import shlex
import signal
import sys
import time
from typing import Any

import click

from gyrostat.wire import RunDirectory
from gyrostat.wire.rights import check_folder
from gyrostat_agent.cli.home import homes
from gyrostat_agent.cli.options import deciding, passed_on, settings
from gyrostat_agent.errors import HeldError, SetupError
from gyrostat_agent.rundir import prepare


def _seconds(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not value >= 0.0:  # NaN neither
        raise SetupError(f"--mend-within {value:g}: give 0 or more seconds")
    return value


# What stands behind the first word is the command's own, with or without -- before it.
@click.command(context_settings={"allow_interspersed_args": False})
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
@deciding
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.pass_context
def run(
    ctx: click.Context, /, run_dir: str | None, mend_within: float, command: tuple[str, ...], listen: str, **given: Any
) -> None:
    """Run COMMAND with the sidecar beside it; signals and exit status pass through unchanged.

    Gyrostat's own options stand before COMMAND. What went wrong is counted at the end, on stderr.

    \b
    gyrostat run -- python train.py --config rl.yaml
    gyrostat run --mode act --run-dir /var/tmp/my-run -- torchrun --nproc-per-node 8 train.py
    """
    from gyrostat_agent.supervisor import Supervisor, say

    path = os.path.abspath(run_dir) if run_dir else _new_run_dir(given["run_name"])
    chosen = settings(path, given)
    place = prepare(path)
    _refuse_second(place)
    argv = [sys.executable, "-m", "gyrostat_agent", "agent", path, *passed_on(chosen, listen, given["rules"])]
    say(f"run directory {path}; look with: gyrostat status {shlex.quote(path)}")
    status = Supervisor(
        command, path, chosen.run, argv, mode=chosen.mode, mend_within=mend_within, agent_takes_up=(signal.SIGTERM,)
    ).run()
    if count := _count_incidents(place):
        what = "1 incident" if count == 1 else f"{count} incidents"
        say(f"{what} in this run; look with: gyrostat incidents {shlex.quote(path)}")
    ctx.exit(status)


def _new_run_dir(run_name: str) -> str:
    """A folder of this user's, on tmpfs where there is one."""
    home = homes()[0]
    name = run_name or time.strftime("run-%Y%m%d-%H%M%S")
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


def _count_incidents(place: RunDirectory) -> int:
    """Incidents in the journal; 0 where that cannot be read, whatever the reason: the trainer's status counts."""
    from gyrostat_agent.journal import Journal
    from gyrostat_rules.entries import EntryKind

    try:
        found = Journal(os.path.join(place.agent, "journal.db"), readonly=True)
        with contextlib.closing(found):
            return len({entry.subject for entry in found.entries(kinds=(EntryKind.INCIDENT,))})
    except Exception:
        return 0
