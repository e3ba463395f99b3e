"""``gyrostat journal show``: turns for people to read: what was given, what was decided on it, and why nothing else."""

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import click

from gyrostat.wire import Record
from gyrostat.wire.fields import clean
from gyrostat_agent.cli.incidents import line, shown
from gyrostat_agent.cli.journalplace import opened
from gyrostat_agent.cli.options import as_json, watched_run_dir
from gyrostat_agent.errors import SetupError
from gyrostat_agent.journal import Turn
from gyrostat_agent.journal.lookup import Page, page, pages
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import Batch, CheckpointSeen, Command
from gyrostat_rules.snapshot import to_plain

_KINDS = sorted(value for name, value in vars(EntryKind).items() if name.isupper())
_WIDEST = 240  # characters of a fact: the whole of it is in --json
_FACTS = 24


@click.command()
@watched_run_dir
@click.option("--turn", type=click.IntRange(1), metavar="N", help="Turn N alone, whatever is in it.")
@click.option("--incident", default="", metavar="ID", help="What was decided of one incident, e.g. i0001.")
@click.option("--since", type=int, default=-1, metavar="STEP", help="What was decided from that step on.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(_KINDS), help="Entries of this kind; repeat for more."
)
@click.option("--limit", type=click.IntRange(1, 10000), default=20, show_default=True, help="The newest so many turns.")
@as_json
def show(
    run_dir: str, turn: int | None, incident: str, since: int, kinds: tuple[str, ...], limit: int, as_json: bool
) -> None:
    """Show turns of RUN_DIR's journal, the newest last: each input, and the entries that it led to with their facts.

    An action's entries say what the guards allowed, which rungs were passed by and why, who approved it and what came
    of it; `rules` is the digest of the pack that was in force. RUN_DIR may be a file of `journal export`.

    \b
    gyrostat journal show /var/tmp/my-run
    gyrostat journal show --incident i0001 /var/tmp/my-run
    gyrostat journal show --turn 512 --json /var/tmp/my-run
    """
    with opened(run_dir) as journal, journal.standing():
        if turn is not None:
            one = page(journal, turn)
            if one is None:
                raise SetupError(f"there is no turn {turn}; the last one is {journal.head().partition(':')[0]}")
            found = [one]
        else:
            found = pages(journal, _wanted(incident, since, kinds), limit)
    if as_json:
        click.echo(json.dumps([_plain(each) for each in found], indent=1))
        return
    for each in found:
        _print(each)
    if not found:
        click.echo("no turn says anything of that")


def _wanted(incident: str, since: int, kinds: tuple[str, ...]) -> Callable[[Entry], bool]:
    def wanted(entry: Entry) -> bool:
        about = entry.subject == incident or entry.subject.startswith(f"{incident}.")
        return (
            (not incident or about or entry.data.get("incident") == incident)
            and entry.step >= since
            and (not kinds or entry.kind in kinds)
        )

    return wanted


def _print(each: Page) -> None:
    given = _given(each.turn) if each.turn else f"its input is gone: {each.gone}"
    click.echo(clean(f"turn {each.seq}  {given}  rules {each.rules or 'none'}  hash {each.hash}"))
    for entry in each.entries:
        click.echo(f"  {line(entry)}")
        for name, value in list(entry.data.items())[:_FACTS]:
            if value not in (None, "", [], {}):
                click.echo(clean(f"      {name}: {_short(value)}"))


def _given(turn: Turn) -> str:
    """An input in a line: when, what, and how much of it."""
    try:
        when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(turn.at))
    except (OverflowError, ValueError, OSError):
        when = f"at {turn.at}"
    said = turn.given
    if isinstance(said, Batch):
        counts = Counter(type(item).__name__ for item in said.items)
        steps = [item.step for item in said.items if isinstance(item, Record | CheckpointSeen)]
        what = ", ".join(f"{count} {name}" for name, count in counts.items())
        return f"{when}  Batch: {what}{f', steps {min(steps)} to {max(steps)}' if steps else ''}"
    more = f": {said.verb} {_short(said.arguments)}" if isinstance(said, Command) else ""
    return f"{when}  {type(said).__name__}{more}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(to_plain(value), ensure_ascii=False)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}... ({len(text)} characters)"


def _plain(each: Page) -> dict[str, Any]:
    return {
        "turn": each.seq, "at": to_plain(each.turn.at) if each.turn else None,
        "input": _given(each.turn) if each.turn else None, "gone": each.gone or None, "rules": each.rules,
        "hash": each.hash, "entries": [shown(entry) for entry in each.entries],
    }  # fmt: skip
