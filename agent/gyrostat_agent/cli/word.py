"""A person's word to the agent: approve, deny, pause, resume, trust.

One file each in the agent's own folder; or, to an agent elsewhere, one request to its ``--control`` address.
"""

import getpass
import os
import shlex

import click

from gyrostat.wire import RunDirectory
from gyrostat.wire.fields import clean
from gyrostat_agent.access.client import tell
from gyrostat_agent.access.words import is_refusal
from gyrostat_agent.cli.answer import Ear
from gyrostat_agent.cli.options import watched_run_dir
from gyrostat_agent.cli.remote import AGENT, TOKEN_FILE, given, over_http
from gyrostat_agent.errors import SetupError
from gyrostat_agent.rundir import existing, held
from gyrostat_agent.sources.commands import give
from gyrostat_rules.inputs import Verb

_ANSWERS = (Verb.APPROVE, Verb.DENY)  # to an agent that asks; the other words hold for whoever watches next


@click.command()
@click.argument("action")
@watched_run_dir
@over_http
def approve(action: str, run_dir: str) -> None:
    """Let ACTION (its id, e.g. i0001.2) go ahead: that one action of that one incident, once.

    RUN_DIR may be left out where your agent watches one run only. Exit status 2 where no such action waits.

    \b
    gyrostat approve i0001.2
    gyrostat approve i0001.2 /var/tmp/my-run
    gyrostat approve i0001.2 --agent http://127.0.0.1:9467 --token-file ~/gyrostat.token
    """
    say(run_dir, Verb.APPROVE, {"action": action})


@click.command()
@click.argument("action")
@watched_run_dir
@over_http
def deny(action: str, run_dir: str) -> None:
    """Refuse ACTION; nothing more is tried for its incident. Exit status 2 where no such action waits.

    \b
    gyrostat deny i0001.2 /var/tmp/my-run
    """
    say(run_dir, Verb.DENY, {"action": action})


@click.command()
@watched_run_dir
@over_http
def pause(run_dir: str) -> None:
    """Do nothing to the run in RUN_DIR until `gyrostat resume`; go on observing.

    \b
    gyrostat pause /var/tmp/my-run
    """
    say(run_dir, Verb.PAUSE, {})


@click.command()
@watched_run_dir
@over_http
def resume(run_dir: str) -> None:
    """End a pause.

    \b
    gyrostat resume /var/tmp/my-run
    """
    say(run_dir, Verb.RESUME, {})


@click.command()
@watched_run_dir
@click.option("--reason", required=True, help="Why it may be trusted again; goes into the journal.")
def trust(run_dir: str, reason: str) -> None:
    """End observe-only, after a broken journal or a lost ledger has been looked into.

    \b
    gyrostat trust /var/tmp/my-run --reason "restored from last night's copy, checked by hand"
    """
    say(run_dir, Verb.TRUST, {"reason": reason})


def say(path: str, verb: str, arguments: dict[str, str]) -> None:
    """Give it, and print what the agent answers; raises SetupError where it cannot be given, or is refused.

    Over HTTP where the command has the options of ``over_http`` and an address was given: ``path`` is '' then.
    """
    words = {**arguments, "by": _who()}
    ctx = click.get_current_context()
    if url := given(ctx, AGENT):
        click.echo(clean(tell(url, given(ctx, TOKEN_FILE), verb, words)))
    else:
        _lay(existing(path), verb, words)


def _lay(run: RunDirectory, verb: str, words: dict[str, str]) -> None:
    """Lay it before the agent of this machine's run, and listen to its journal."""
    holder = held(run)
    if not holder and verb in _ANSWERS:
        raise SetupError(
            f"no agent watches {run.path} now, so nothing there waits for that word; gyrostat status tells how it ended"
        )
    ear = Ear(run)
    try:
        give(run, verb, words)
        answer = ear.hear(verb, words) if holder else ""
    except OSError as error:
        raise SetupError(f"{run.agent}: {error.strerror}; run this as the agent's user") from None
    finally:
        ear.close()
    if is_refusal(answer):
        raise SetupError(clean(f"{answer}; {_look(verb)} {shlex.quote(run.path)} shows what there is"))
    click.echo(clean(answer) if answer else _unanswered(verb, holder))


def _look(verb: str) -> str:
    return "gyrostat checkpoints list" if verb in (Verb.ROLLBACK, Verb.TAG) else "gyrostat status"


def _unanswered(verb: str, holder: str) -> str:
    if not holder:
        return f"{verb} laid down; no agent watches this run now, the next one reads it"
    return f"{verb} given to {holder}, which has not answered yet; gyrostat incidents --all shows its answer"


def _who() -> str:
    """The user's name; in a container, a user may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"UID {os.getuid()}"
