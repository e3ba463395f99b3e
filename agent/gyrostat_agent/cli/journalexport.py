"""``gyrostat journal export``: a journal, or the part of it about one incident, as a file that proves itself."""

import contextlib
import os
from importlib.metadata import version

import click

from gyrostat.wire.fields import clean
from gyrostat_agent.cli.journalplace import opened
from gyrostat_agent.cli.options import watched_run_dir
from gyrostat_agent.errors import SetupError
from gyrostat_agent.journal import Journal
from gyrostat_agent.journal.excerptwriter import Part, part_of, write


@click.command()
@watched_run_dir
@click.option("--out", required=True, type=click.Path(), metavar="FILE", help="Where to; never over a file.")
@click.option("--incident", default="", metavar="ID", help="The turns around one incident, e.g. i0001.")
@click.option("--from", "first", type=click.IntRange(1), metavar="TURN", help="From this turn on.")
@click.option("--to", "last", type=click.IntRange(1), metavar="TURN", help="Up to this turn.")
def export(run_dir: str, out: str, incident: str, first: int | None, last: int | None) -> None:
    """Write RUN_DIR's journal to FILE, in lines of JSON: a header, then each turn with its input, entries and hash.

    On another machine `gyrostat journal verify FILE` checks it, `gyrostat replay FILE` feeds it again, from its first
    turn or from a snapshot in it. A chain that is broken is not exported; exit status 4.

    \b
    gyrostat journal export /var/tmp/my-run --out my-run.jsonl
    gyrostat journal export /var/tmp/my-run --incident i0001 --out i0001.jsonl
    """
    if incident and (first or last):
        raise SetupError("--incident says which turns; leave --from and --to out")
    with opened(run_dir) as journal:
        part = part_of(journal, incident) if incident else _part(journal, first, last)
        name = clean(os.path.basename(os.path.abspath(run_dir)))
        size = _write(journal, part, {"run": name, "gyrostat": version("gyrostat"), "journal": 2}, out)
    turns = part.last - part.first + 1
    click.echo(f"{clean(out)}: turns {part.first} to {part.last}, {turns} in all, {size} bytes")


def _part(journal: Journal, first: int | None, last: int | None) -> Part:
    head, begin = int(journal.head().partition(":")[0]), journal.origin[0] + 1
    part = Part(first or begin, min(last or head, head))
    if not begin <= part.first <= part.last:
        raise SetupError(f"there are turns {begin} to {head}; give --from and --to within them")
    return part


def _write(journal: Journal, part: Part, header: dict[str, object], out: str) -> int:
    try:
        fd = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise SetupError(f"{clean(out)} is there already; give another name, or remove it") from None
    except OSError as error:
        raise SetupError(f"{clean(out)} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(fd, "wb") as file:
            size = write(journal, part, header, file)
            file.flush()
            os.fsync(file.fileno())
        return size
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(out)  # half of it would only look like a journal
        if isinstance(error, OSError):
            raise SetupError(f"{clean(out)} cannot be written: {error.strerror}") from None
        raise
