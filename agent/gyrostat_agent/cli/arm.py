"""``gyrostat arm`` and ``gyrostat disarm``: let one rule act in mode shadow, on evidence or for a reason."""

import os

import click

from gyrostat.wire.fields import clean
from gyrostat_agent.cli.options import watched_run_dir
from gyrostat_agent.cli.shadow import evidence, with_backtests, within
from gyrostat_agent.cli.word import say
from gyrostat_agent.errors import EXIT_FAULT, DistrustError, SetupError
from gyrostat_agent.rundir import existing
from gyrostat_agent.shadow.bound import LEAST, needed, passes
from gyrostat_agent.shadow.chronicle import Chronicle, declarations
from gyrostat_agent.shadow.evidence import Evidence, gather
from gyrostat_agent.shadow.report import Report, Score
from gyrostat_agent.shadow.report import report as count
from gyrostat_agent.shadow.table import rows
from gyrostat_rules.arming import ACT, OBSERVE, unarmable
from gyrostat_rules.inputs import Verb
from gyrostat_rules.packfile import PackError, parse


@click.command()
@click.argument("rule")
@watched_run_dir
@evidence
@click.option(
    "--least", type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True), default=LEAST, show_default=True,
    help="The lower 95 % bound of the hit rate must come to this.",
)  # fmt: skip
@within
@with_backtests
@click.option("--reason", default="", help="Arm it without the bound; goes into the journal.")
@click.pass_context
def arm(
    ctx: click.Context, rule: str, run_dir: str, folders: tuple[str, ...], least: float, within: int,
    with_backtests: bool, reason: str,
) -> None:  # fmt: skip
    """Let RULE act in mode shadow on the run in RUN_DIR, as it would in mode act; all guards and approvals stand.

    The run's own journal is evidence, and so is what --evidence holds. Exit status 1 where the bound does not pass,
    with how many more hits it would need; 2 where the rule cannot be armed.

    \b
    gyrostat arm NonFinitePoison --evidence ~/past-runs
    gyrostat arm NonFinitePoison /var/tmp/my-run --reason "seen it work on three runs, I am at the desk"
    """
    reason = " ".join(reason.split())
    found = gather((existing(run_dir).path,), folders, within)
    own = _own(run_dir, found)
    _refuse(own, rule)
    names = declarations(own.pack)
    told = count(found, pooled=with_backtests, counts=lambda one: one.declared == names.get(rule))
    score = next((one for one in told.scores if one.rule == rule), Score(rule))
    for line in rows([score]):
        click.echo(clean(line))
    for path, why in found.left_out:
        click.echo(clean(f"left out: {path}: {why}"))
    words = {"rule": rule}
    if passes(score.hits, score.misses, least):
        words["evidence"] = _in_words(score, told)
    elif not reason:
        click.echo(_short_of(score, least))
        ctx.exit(EXIT_FAULT)
    say(run_dir, Verb.ARM, words | ({"reason": reason} if reason else {}))


@click.command()
@click.argument("rule")
@watched_run_dir
def disarm(rule: str, run_dir: str) -> None:
    """Let RULE act in mode shadow no more. At once for what was not sent; what is on probation is finished.

    \b
    gyrostat disarm NonFinitePoison
    """
    say(run_dir, Verb.DISARM, {"rule": rule})


def _own(run_dir: str, found: Evidence) -> Chronicle:
    """What the run's own journal says; raises DistrustError where that is not to be believed."""
    path = os.path.realpath(os.path.join(existing(run_dir).agent, "journal.db"))
    for place, why in found.left_out:
        if place == path:
            raise DistrustError(why)
    own = next((one for one in found.runs if one.path == path), None)
    if own is None:
        raise DistrustError(f"{path}: a copy of it among the evidence goes further: this run directory is an older one")
    return own


def _refuse(own: Chronicle, rule: str) -> None:
    """Raise SetupError where the agent would refuse it: before anybody looks at the evidence."""
    if own.mode == OBSERVE:
        raise SetupError("this run's mode is observe: in it nothing acts; start its agent with --mode shadow")
    if own.mode == ACT:
        raise SetupError("this run's mode is act: every rule acts already, and arming is for mode shadow")
    try:
        pack = parse(own.pack)
    except PackError:
        raise SetupError("the rules of this run are another version's: start its agent again") from None
    if why := unarmable(pack, rule):
        raise SetupError(clean(why))


def _in_words(score: Score, told: Report) -> str:
    tests = ", with backtests" if told.pooled and any(score.tested) else ""
    return (
        f"{score.hits} hits of {score.hits + score.misses} in {score.runs} runs{tests}, "
        f"at least {score.share.low:.1%} (95 %)"
    )


def _short_of(score: Score, least: float) -> str:
    more = needed(score.hits, score.misses, least)
    decided = score.hits + score.misses
    if not decided:
        return f"not armed: nothing has been decided about it, and 0 of 0 is no evidence; {more} hits would be"
    would = f"{more} more hits without a miss would" if more is not None else "no number of hits would any more"
    return f"not armed: at least {score.share.low:.1%} were called for, and {least:.1%} is asked; {would} come to it"
