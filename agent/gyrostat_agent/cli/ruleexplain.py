"""``gyrostat rules explain``: what a rule is, and why it spoke or kept silent in a run."""

import json
from collections.abc import Iterable

import click

from gyrostat_agent.cli.options import BUILTIN, as_json, digest_of, read_pack
from gyrostat_agent.demo.terminal import open_console, width_of, wrapped
from gyrostat_agent.errors import SetupError
from gyrostat_agent.explain.account import Account, account, find
from gyrostat_agent.explain.declared import declared
from gyrostat_agent.explain.page import Line, document, rule_lines, run_lines, safe, why_lines
from gyrostat_agent.explain.why import why
from gyrostat_agent.rundir import existing
from gyrostat_rules.inputs import Pack
from gyrostat_rules.packfile import parse

_INDENT = 12


@click.command("explain")
@click.argument("name")
@click.option("--run", "run_dir", type=click.Path(), help="A run that an agent watched: what the rule saw of it.")
@click.option("--step", type=click.IntRange(min=0), help="With --run: why it did or did not fire at that step.")
@click.option("--pack", type=click.Path(), help=f"A rule pack instead of the run's own; {BUILTIN} is what ships.")
@as_json
def rule_explain(name: str, run_dir: str | None, step: int | None, pack: str | None, as_json: bool) -> None:
    """Explain the rule NAME: what it looks at, how it decides, what it opens and what is done then.

    With --run, what it saw of that run, replayed from its journal: its numbers, its thresholds as they stand there,
    and when it was pending, firing, muted or resolved. With --pack too, what the rules of that pack would have said.

    \b
    gyrostat rules explain RewardCollapsed
    gyrostat rules explain RewardCollapsed --run /var/tmp/my-run --step 120
    """
    if step is not None and run_dir is None:
        raise SetupError(f"--step {step}: of which run? Give --run DIR too")
    found = _seen(name, run_dir, step, pack) if run_dir is not None else None
    rules = found.pack if found else parse(_text(pack))
    what = declared(found.rule if found else find(rules, name, _called(pack)), rules)
    answer = why(found, step) if found is not None and step is not None else None
    if as_json:
        click.echo(json.dumps(document(what, found, answer), indent=1))
        return
    _print(rule_lines(what))
    for lines in (run_lines(found) if found else (), why_lines(answer) if answer else ()):
        _print(lines)


def _seen(name: str, run_dir: str, step: int | None, pack: str | None) -> Account:
    text = _text(pack) if pack is not None else ""
    return account(existing(run_dir), name, step, Pack(0.0, digest_of(text), text) if text else None)


def _text(pack: str | None) -> str:
    return read_pack(None if pack == BUILTIN else pack)


def _called(pack: str | None) -> str:
    return "the pack that comes with Gyrostat" if pack in (None, BUILTIN) else f"pack {pack}"


def _print(lines: Iterable[Line]) -> None:
    console = open_console()
    rest = " " * _INDENT
    for line in map(safe, lines):
        first = f"{line.label:<{_INDENT - 1}} "
        console.print(wrapped(line.text, "", width_of(console), first, rest), soft_wrap=True)
