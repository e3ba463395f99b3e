"""``gyrostat silence``, ``unsilence``, ``silences``: nothing is done about some alerts for a while, or about any."""

import json
import os
import re
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import click
from click.core import ParameterSource

from gyrostat.wire.fields import clean
from gyrostat.wire.layout import RUN_DIR
from gyrostat_agent.cli.options import as_json, watched_run_dir
from gyrostat_agent.cli.remote import meant, over_http
from gyrostat_agent.cli.status import last_shown, silence_line, standing
from gyrostat_agent.cli.word import say
from gyrostat_agent.errors import EXIT_FAULT, SetupError
from gyrostat_agent.rundir import existing, held
from gyrostat_rules.inputs import Verb
from gyrostat_rules.lasting import lasting

_MATCHER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")


@click.command()
@click.argument("words", nargs=-1, metavar="[RUN_DIR] [MATCHER]...")
@click.option("--all", "everything", is_flag=True, help="Every alert: a maintenance window.")
@click.option("--for", "span", metavar="TIME", default="", help="How long: 90s, 30m, 2h, 1d; at most 30 days.")
@click.option("--until", default="", metavar="TIME", help="Until when: 18:00, 2026-12-24T18:00, or with +08:00 or Z.")
@click.option("--from", "begin", default="", metavar="TIME", help="From when, written as --until; else from now.")
@click.option("--reason", required=True, help="Why; whoever looks next reads it.")
@over_http
def silence(words: tuple[str, ...], everything: bool, span: str, until: str, begin: str, reason: str) -> None:
    """Do nothing about the alerts that all MATCHERs fit, until then: no action and no page for what they open.

    A MATCHER is alert=NAME, kind=KIND of incident, severity=SEVERITY, or a label, e.g. rank=3. The alerts fire and are
    written down, what is under way is finished, and other alerts are heard as ever. Times without a zone are local.
    RUN_DIR may be left out where your agent watches one run only. Exit status 2 where it cannot be.

    \b
    gyrostat silence alert=EntropyLow --for 2h --reason "known, the new reward warms up"
    gyrostat silence /var/tmp/my-run kind=hardware rank=3 --until 18:00 --reason "node is being swapped"
    gyrostat silence --all --from 2026-12-24T18:00 --for 4h --reason "switches are replaced"
    """
    run_dir, matchers = _parted(words)
    now = time.time()
    if bool(span) == bool(until):
        raise SetupError(
            "say until when with --for, e.g. --for 2h, or with --until, e.g. --until 18:00: one of the two"
        )
    given = {"matchers": "\n".join(matchers), "reason": reason}
    given |= {"all": "yes"} if everything else {}
    since = _moment("--from", begin, now) if begin else now
    given |= {"begins": repr(since)} if begin else {}
    given |= {"seconds": repr(_seconds(span))} if span else {"ends": repr(_moment("--until", until, since))}
    say(run_dir, Verb.SILENCE, given)


@click.command()
@click.argument("name", metavar="ID")
@watched_run_dir
@over_http
def unsilence(name: str, run_dir: str) -> None:
    """End the silence ID (e.g. s0001) before its time; what it held goes on at once. Exit status 2 where none is.

    \b
    gyrostat unsilence s0001
    """
    say(run_dir, Verb.UNSILENCE, {"silence": name})


@click.command()
@watched_run_dir
@as_json
@click.pass_context
def silences(ctx: click.Context, run_dir: str, as_json: bool) -> None:
    """Show which silences stand or will, of the run in RUN_DIR, as its agent showed them last.

    Exit status 1 where that cannot be read, else 0.

    \b
    gyrostat silences
    gyrostat silences --json /var/tmp/my-run | jq .silences
    """
    run = existing(run_dir)
    said, trouble = last_shown(run)
    found = standing(said)
    if as_json:
        shown = [{**one, "state": _state(one)} for one in found]
        click.echo(json.dumps({"silences": shown, "agent": held(run) or None, "trouble": trouble or None}, indent=2))
    else:
        for line in (*map(silence_line, found), *([trouble] if trouble else [] if found else ["nothing is silenced"])):
            click.echo(clean(line))
    ctx.exit(EXIT_FAULT if trouble else 0)


def _state(one: dict[str, Any]) -> str:
    return "active" if one["begins"] <= time.time() else "pending"


def _parted(words: Sequence[str]) -> tuple[str, list[str]]:
    """The run's directory and the matchers; a path in which there is a = is written with a / before that."""
    matchers = [word for word in words if _MATCHER.fullmatch(word)]
    paths = [word for word in words if not _MATCHER.fullmatch(word)]
    if len(paths) > 1:
        odd = clean(" and ".join(paths[:3]))
        raise SetupError(f"{odd}: one RUN_DIR at most; a matcher is written NAME=VALUE, e.g. alert=EntropyLow")
    source = ParameterSource.COMMANDLINE if paths else ParameterSource.ENVIRONMENT
    return meant(click.get_current_context(), paths[0] if paths else os.environ.get(RUN_DIR), source), matchers


def _seconds(span: str) -> float:
    found = lasting(span.replace(" ", ""))
    if found is None or not found.seconds:
        raise SetupError(f"--for {clean(span)}: write how long, e.g. 90s, 30m, 2h, 1d or 1h30m")
    return found.seconds


def _moment(option: str, said: str, now: float) -> float:
    """Unix seconds; a time of day is the next one. Raises SetupError."""
    try:
        if clock := _CLOCK.fullmatch(said):
            today = datetime.fromtimestamp(now)
            at = today.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
            return (at if at > today else at + timedelta(days=1)).timestamp()
        return datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", said)).timestamp()
    except (ValueError, OverflowError, OSError):
        example = "18:00, 2026-12-24T18:00 or 2026-12-24T18:00+08:00"
        raise SetupError(f"{option} {clean(said)}: is no time; write it like {example}") from None
