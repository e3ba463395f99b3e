"""``gyrostat diagnose`` and ``gyrostat series``: logs that are there already, judged, and how they were read."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from gyrostat.wire.fields import clean
from gyrostat_agent.cli.options import as_json, digest_of, read_pack
from gyrostat_agent.diagnose.examination import Examination
from gyrostat_agent.diagnose.findings import Findings
from gyrostat_agent.diagnose.page import page
from gyrostat_agent.diagnose.summary import as_json as figures
from gyrostat_agent.diagnose.summary import lines
from gyrostat_agent.errors import SetupError
from gyrostat_agent.sources.logs.table import FORMATS

ILL, UNREAD = 1, 2
_AUTO = "auto"
_files = click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILES...")
_format = click.option(
    "--format", "form", default=_AUTO, show_default=True, metavar="NAME", help="What wrote them; recognised by itself."
)


@click.command()
@_files
@_format
@click.option("--rules", type=click.Path(), help="A rule pack instead of the one that comes with it.")
@click.option("--html", type=click.Path(), help="Write a page with curves there; it opens offline.")
@as_json
@click.pass_context
def diagnose(
    ctx: click.Context, files: tuple[str, ...], form: str, rules: str | None, html: str | None, as_json: bool
) -> None:
    """Say what went wrong in the logs of a run that is over, or of one that goes on, and since when.

    Several files are read beside each other, step by step: the parts of one run. Exit status 0 healthy, 1 faults,
    2 nothing could be read.

    \b
    gyrostat diagnose train.log
    gyrostat diagnose --html report.html --json trainer_log.jsonl console.log
    """
    found = _examined(files, form, rules)
    if html is not None:
        _write(html, page(found))
    if as_json:
        click.echo(json.dumps(figures(found), indent=1, allow_nan=False))
    else:
        for line in lines(found):
            click.echo(clean(line))
    whole = found.read and not any(source.error for source in found.sources)
    ctx.exit(ILL if found.ill else 0 if whole else UNREAD)  # a file that was not read may hold the fault


@click.command()
@_files
@_format
@as_json
def series(files: tuple[str, ...], form: str, as_json: bool) -> None:
    """Show how each name in the logs was read: its canonical name, or its own.

    \b
    gyrostat series console.log
    """
    found = _examined(files, form, None)
    rows: list[dict[str, Any]] = [
        {"file": source.path, "format": source.form, "name": name, "read_as": to or None}
        for source in found.sources
        for name, to in source.names.items()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for source in found.sources:
        click.echo(clean(source.error or f"{source.path}: {source.form}"))
        for name, to in source.names.items():
            click.echo(clean(f"  {name:<48} {to or '(its own name)'}"))


def _examined(files: tuple[str, ...], form: str, rules: str | None) -> Findings:
    if form != _AUTO and form not in FORMATS:
        raise SetupError(f"--format {clean(form)}: there are {', '.join(FORMATS)}, and {_AUTO}")
    text = read_pack(rules)
    total = sum(Path(path).stat().st_size for path in files if Path(path).is_file())
    if not sys.stderr.isatty() or total < 8 << 20:
        return Examination(text, digest_of(text), FORMATS.get(form)).examine(files)
    with click.progressbar(length=total, label="reading", file=sys.stderr) as bar:
        return Examination(text, digest_of(text), FORMATS.get(form), bar.update).examine(files)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SetupError(
            f"--html {clean(path)}: {error.strerror}; give a file in a folder that can be written"
        ) from None
