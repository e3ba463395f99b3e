"""``gyrostat journal``: the group, and ``verify``: the hash chain, turn by turn."""

import contextlib
import json
import time
from typing import Any

import click

from gyrostat.wire.fields import clean
from gyrostat_agent import ledgerfile
from gyrostat_agent.cli.journalcompact import compact
from gyrostat_agent.cli.journalexport import export
from gyrostat_agent.cli.journalplace import is_excerpt, opened
from gyrostat_agent.cli.journalshow import show
from gyrostat_agent.cli.options import as_json, watched_run_dir
from gyrostat_agent.errors import EXIT_DISTRUST
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.lookback import checkpoint_root
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Verb


@click.group()
def journal() -> None:
    """Look into the journal of a run, prove it, carry it elsewhere, make it smaller.

    \b
    gyrostat journal show --incident i0001 /var/tmp/my-run
    gyrostat journal verify /var/tmp/my-run
    gyrostat journal export /var/tmp/my-run --out my-run.jsonl
    gyrostat journal compact /var/tmp/my-run
    """


for command in (show, export, compact):
    journal.add_command(command)


@journal.command()
@watched_run_dir
@click.option(
    "--head", "heads", multiple=True, metavar="TURN:HASH",
    help="A head that was noted elsewhere, which the chain must pass; repeat for more.",
)  # fmt: skip
@as_json
@click.pass_context
def verify(ctx: click.Context, run_dir: str, heads: tuple[str, ...], as_json: bool) -> None:
    """Walk the hash chain of RUN_DIR's journal; exit status 4 where it is broken.

    It must pass every head that the run's ledger notes, beside its checkpoints, and those given with --head: whoever
    rewrites a whole journal computes every hash anew, and cannot change what stands elsewhere. RUN_DIR may be a file of
    `journal export`.

    \b
    gyrostat journal verify /var/tmp/my-run
    gyrostat journal verify --head 512:0f1e2d3c4b5a69788796a5b4c3d2e1f0 /var/tmp/my-run
    """
    with opened(run_dir) as found:
        ledger, noted, doubt = ("", [], "") if is_excerpt(run_dir) else _ledger(found)
        verdict = found.verify(*noted, *heads)
        said = {**verdict._asdict(), "head": found.head(), "first": found.origin[0] + 1, "passed": [*noted, *heads]}
        gone = _gone(found) if verdict.ok else []
        trusted = "" if verdict.ok else _trusted(found)
        outside = bool(heads) and not verdict.ok and found.verify(*noted).ok
    if as_json:
        click.echo(json.dumps({**said, "ledger": ledger or doubt, "let_go": gone}))
    elif verdict.ok:
        click.echo(f"{verdict.turns} turns, the chain is whole; head {said['head']}")
        _tell(said, ledger or doubt, gone)
    else:
        consequence = trusted or "the agent observes only until: gyrostat trust --reason WHY"
        if outside:  # the agent knows the ledger's heads alone
            consequence = "without what --head gives the chain is whole, and the agent goes on"
        what = "do not rely on this file" if is_excerpt(run_dir) else consequence
        click.echo(f"broken at turn {verdict.broken_at}: {clean(verdict.why)}; {what}")
    ctx.exit(0 if verdict.ok else EXIT_DISTRUST)


def _tell(said: dict[str, Any], ledger: str, gone: list[dict[str, Any]]) -> None:
    for each in gone:
        days = " to ".join(dict.fromkeys(time.strftime("%Y-%m-%d", time.gmtime(at)) for at in each["at"]))
        click.echo(clean(f"{each['turns']} inputs let go by {each['by']} ({each['why']}), {days}"))
    if said["first"] > 1:
        click.echo(f"it begins at turn {said['first']}: whether it follows on what was before, only a noted head tells")
    if said["passed"]:
        click.echo(clean(f"it passes {len(said['passed'])} heads noted elsewhere{f', in {ledger}' if ledger else ''}"))
    else:
        why = f"{ledger}; " if ledger else ""
        click.echo(clean(f"{why}no head noted elsewhere: one written anew as a whole would look the same; see --head"))


def _ledger(found: Journal) -> tuple[str, list[str], str]:
    """Where the run's ledger is, and what it notes of the journal; else why it cannot be believed, where one is."""
    root = checkpoint_root(found)
    written, doubt = ledgerfile.read(root) if root else (None, "")
    return (ledgerfile.path_of(root), ledgerfile.heads_of(written), "") if written else ("", [], doubt)


def _gone(found: Journal) -> list[dict[str, Any]]:
    """What was let go, by whom and why: a line each, however many statements there are."""
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for said in found.gone():
        each = lines.setdefault((said.by, said.why), {"by": said.by, "why": said.why, "turns": 0, "at": [said.at] * 2})
        each["turns"] += said.last - said.first + 1
        each["at"] = [min(each["at"][0], said.at), max(each["at"][1], said.at)]
    return list(lines.values())


def _trusted(journal: Journal) -> str:
    """Who has trusted the run since an agent last refused to; '' where nobody has, or it cannot be read."""
    with contextlib.suppress(JournalError):
        for said in journal.entries(kinds=(EntryKind.COMMAND,), newest_first=True):
            if said.subject in (Verb.TRUST, Verb.DISTRUST):
                return clean(f"since then, entry {said.id}: {said.text}") if said.subject == Verb.TRUST else ""
    return ""
