"""``gyrostat report``: the post-mortem of an incident, or of a run with all of them."""

import json
import os
import re
import sys
from pathlib import Path

import click

from gyrostat.wire.fields import clean
from gyrostat.wire.layout import RUN_DIR
from gyrostat_agent.cli.home import watched_one
from gyrostat_agent.cli.options import as_json
from gyrostat_agent.demo.strokes import UNICODE, for_encoding
from gyrostat_agent.errors import SetupError
from gyrostat_agent.report.machine import document
from gyrostat_agent.report.markdown import document as text_of
from gyrostat_agent.report.page import page
from gyrostat_agent.report.postmortem import PLOTS, postmortem
from gyrostat_agent.rundir import existing

_INCIDENT = re.compile(r"i\d{4,}")


@click.command()
@click.argument("words", nargs=-1, metavar="[RUN_DIR] [INCIDENT]")
@click.option("--html", type=click.Path(), help="Write a page there; it opens offline.")
@click.option("--md", type=click.Path(), help="Write Markdown there; without --html and --md it is printed.")
@click.option(
    "--plots", type=click.IntRange(0), default=PLOTS, show_default=True, metavar="N",
    help="Of a run: draw curves for its newest N incidents.",
)  # fmt: skip
@as_json
def report(words: tuple[str, ...], html: str | None, md: str | None, plots: int, as_json: bool) -> None:
    """Tell an incident from its onset to its bill, or a run with all its incidents, from its journal alone.

    Timeline, curves around the onset, evidence, what was decided and what was passed by, and the bill: steps and
    seconds lost, against an estimate for doing nothing. RUN_DIR may be left out where your agent watches one run only.
    Exit status 2 where there is no such run or incident, 4 where the journal cannot be read.

    \b
    gyrostat report /var/tmp/my-run
    gyrostat report /var/tmp/my-run i0003 --html i0003.html
    gyrostat report --md run.md /var/tmp/my-run
    """
    run_dir, incident = _meant(words)
    found = postmortem(existing(run_dir), incident, plots)
    if html is not None:
        _write("--html", html, page(found))
    if md is not None:
        _write("--md", md, text_of(found, UNICODE))
    if as_json:
        click.echo(json.dumps(document(found), indent=1, allow_nan=False))
    elif html is None and md is None:
        click.echo(text_of(found, for_encoding(sys.stdout.encoding or "ascii")), nl=False)


def _meant(words: tuple[str, ...]) -> tuple[str, str]:
    """The run directory and the incident, '' for all; a word like ``i0003`` alone is an incident, if no such folder."""
    rest = list(words)
    alone = len(rest) == 1 and not os.path.isdir(rest[0])
    incident = rest.pop() if len(rest) == 2 or (alone and _INCIDENT.fullmatch(rest[0])) else ""
    if len(rest) > 1:
        raise SetupError("give one RUN_DIR and one INCIDENT at most, e.g. gyrostat report /var/tmp/my-run i0003")
    return (rest[0] if rest else os.environ.get(RUN_DIR) or watched_one()), incident


def _write(option: str, path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SetupError(
            f"{option} {clean(path)}: {error.strerror}; give a file in a folder that can be written"
        ) from None
    click.echo(f"written: {clean(path)}", err=True)
