"""``gyrostat checkpoints archive``, ``restore`` and ``archives``: checkpoints in object storage.

Hung into the group ``checkpoints``. What needs the extra ``archive`` is imported when it is used, so that the group's
``--help`` works without it.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gyrostat.wire.fields import clean
from gyrostat.wire.layout import RUN_NAME
from gyrostat_agent.archive.pace import Pace, rate_of
from gyrostat_agent.cli.options import as_json
from gyrostat_agent.errors import SetupError

if TYPE_CHECKING:
    from gyrostat_agent.archive.index import Index
    from gyrostat_agent.archive.progress import Progress

_F = TypeVar("_F", bound=Callable[..., Any])
_bandwidth = click.option("--bandwidth", default="", metavar="RATE", help="Bytes a second at most, e.g. 50MB.")


def _storing(command: _F) -> _F:
    """The options of whatever carries bytes."""
    return _bandwidth(as_json(command))


@click.command()
@click.argument("path", type=click.Path(), metavar="PATH")
@click.option(
    "--to", "url", required=True, metavar="URL", help="Where: s3://bucket/prefix, gs://, az://, file:///disk."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="What to find it by, e.g. stable; repeat for more.")
@click.option("--storage-class", default="", metavar="CLASS", help="Of the parts, e.g. STANDARD_IA, GLACIER_IR.")
@click.option("--run", envvar=RUN_NAME, default="", help="The run's name; else its folder's.")
@_storing
def archive(
    path: str, url: str, tags: tuple[str, ...], storage_class: str, run: str, bandwidth: str, as_json: bool
) -> None:
    """Send the checkpoint in the folder PATH to object storage, under its own name; one prefix for each run.

    A part that is there is not sent again: what was interrupted goes on when it is told again. The index with every
    file's digest comes last; without it there is no archive. Credentials are those of the environment (AWS_...) or of
    the machine's role.

    Exit status 0 it is archived, or was already; 1 it is not: the storage did not take it, it changed meanwhile, it is
    damaged, or another checkpoint bears that name there; 2 something given cannot be used.

    \b
    gyrostat checkpoints archive ckpts/step-4000 --to s3://my-bucket/run-7 --tag stable
    gyrostat checkpoints archive ckpts/step-1000 --to s3://my-bucket/run-7 --storage-class GLACIER_IR --bandwidth 50MB
    """
    pace = Pace(rate_of(bandwidth))
    with extra():
        from gyrostat_agent.archive.store import opened
        from gyrostat_agent.archive.upload import archive as send
        from gyrostat_agent.archive.upload import labels
    said = labels(run or os.path.basename(os.path.dirname(os.path.abspath(path))), tags, storage_class)
    with _shown("archiving") as progress:
        done = send(path, opened(url, make=True), said, pace, progress)
    if as_json:
        _say({"state": done.state, "url": done.url, "sent_bytes": done.sent, "note": done.note, **_told(done.archive)})
        return
    what = "archived" if done.state == "archived" else "was archived already"
    click.echo(clean(f"{what}: {done.url}, {_size(done.archive)}, {amount(done.sent)} sent, {done.archive.digest}"))
    if done.note:
        click.echo(f"gyrostat: the archive is whole, but {clean(done.note)}", err=True)


@click.command()
@click.argument("url", metavar="URL")
@click.option("--into", required=True, type=click.Path(), metavar="DIR", help="Folder in which the checkpoint is put.")
@click.option("--tag", metavar="TAG", help="The newest that bears this tag.")
@click.option("--step", type=click.IntRange(0), help="The one of this step.")
@_storing
def restore(url: str, into: str, tag: str | None, step: int | None, bandwidth: str, as_json: bool) -> None:
    """Fetch a checkpoint from the archive at URL, prove every file's digest, and put it into DIR under its name.

    URL is that of one archive, or the prefix of several with --tag or --step. What is there is never overwritten. What
    was interrupted goes on when it is told again.

    Exit status 0 it is there, whole and proven; 1 it is not: a digest differs, the disk is too full, the storage did
    not give it, or something is there already; 2 something given cannot be used.

    \b
    gyrostat checkpoints restore s3://my-bucket/run-7 --into ckpts --tag stable
    gyrostat checkpoints restore s3://my-bucket/run-7/step-4000 --into ckpts
    """
    if tag is not None and step is not None:
        raise SetupError("--tag and --step: give one of them")
    pace = Pace(rate_of(bandwidth))
    with extra():
        from gyrostat_agent.archive.catalogue import chosen, listed
        from gyrostat_agent.archive.restore import restore as fetch
        from gyrostat_agent.archive.store import opened
    store = opened(url)
    base, index = chosen(listed(store), store.url, tag, step)
    with _shown("restoring") as progress:
        done = fetch(store, base, index, into, pace, progress)
    if as_json:
        _say({"state": "restored", "path": done.path, "fetched_bytes": done.fetched, **_told(index)})
    else:
        click.echo(clean(f"restored: {done.path}, {_size(index)}, {amount(done.fetched)} fetched, {index.digest}"))


@click.command()
@click.argument("url", metavar="URL")
@as_json
@click.pass_context
def archives(ctx: click.Context, url: str, as_json: bool) -> None:
    """List the archives at URL: step, size, tags, digest; what is broken or unfinished says why.

    Exit status 0 all of them can be believed; 1 one cannot, or the storage does not answer; 2 URL cannot be used.

    \b
    gyrostat checkpoints archives s3://my-bucket/run-7
    """
    with extra():
        from gyrostat_agent.archive.catalogue import listed
        from gyrostat_agent.archive.store import opened
    store = opened(url)
    found = listed(store)
    if as_json:
        _say(
            [
                _told(each.archive) if each.archive else {"name": each.base.rstrip("/"), "why": each.why}
                for each in found
            ]
        )
    elif not found:
        click.echo(f"{clean(store.url)}: no archive")
    for each in () if as_json else found:
        index = each.archive
        words = (index.name, f"step {index.step}", index.format, _size(index), ",".join(index.tags) or "-",
                 index.digest) if index else (each.base.rstrip("/"), each.why)  # fmt: skip
        click.echo(clean("  ".join(words)))
    ctx.exit(1 if any(each.broken for each in found) else 0)


@contextmanager
def extra() -> Iterator[None]:
    """Where what needs the extra is imported: says which package is missing; raises SetupError."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("obstore", "xxhash"):
            raise
        raise SetupError(f"{error.name} is not installed; install it: pip install 'gyrostat[agent,archive]'") from None


@contextmanager
def _shown(what: str) -> "Iterator[Progress]":
    """A bar on a terminal, and nothing else where there is none."""
    from gyrostat_agent.archive.progress import Silent

    if not sys.stderr.isatty():
        yield Silent()
        return
    from gyrostat_agent.cli.transferbar import bar

    with bar(what) as shown:
        yield shown


def _told(index: "Index") -> dict[str, Any]:
    return {
        "name": index.name, "run": index.run, "step": None if index.step < 0 else index.step, "format": index.format,
        "tags": list(index.tags), "storage_class": index.storage_class, "archived_at": index.archived_at,
        "files": len(index.files), "bytes": index.bytes, "digest": index.digest,
    }  # fmt: skip


def _say(document: object) -> None:
    click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


def _size(index: "Index") -> str:
    return f"{len(index.files)} file{'s' * (len(index.files) != 1)}, {amount(index.bytes)}"


def amount(count: float) -> str:
    """Bytes in the largest unit that says it."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} TB"
