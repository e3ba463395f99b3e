"""``gyrostat rules``: a pack's mistakes, its rules in a table, their tests, and the schema that editors complete by."""

import json
from pathlib import Path

import click
from rich.table import Table

from gyrostat_agent.cli.options import BUILTIN, as_json, builtin, read_pack
from gyrostat_agent.cli.ruleexplain import rule_explain
from gyrostat_agent.cli.rulestest import rules_test
from gyrostat_agent.demo.terminal import open_console
from gyrostat_agent.errors import EXIT_SETUP
from gyrostat_rules.pack import Rule
from gyrostat_rules.packfile import PackError, parse
from gyrostat_rules.packschema import schema as pack_schema
from gyrostat_rules.wants import words


@click.group()
def rules() -> None:
    """Look after rule packs.

    `list` shows the rules, `explain` one of them, on a run of yours too; `check` finds a pack's mistakes, `test` runs
    tests of its rules, `schema` is for editors.
    """


rules.add_command(rules_test)
rules.add_command(rule_explain)


@rules.command()
@click.argument("files", nargs=-1, type=click.Path())
@click.pass_context
def check(ctx: click.Context, files: tuple[str, ...]) -> None:
    """Check rule packs: every mistake at FILE:LINE:COLUMN with its fix, all at once. Exit status 2 where there are any.

    Without FILES the pack that comes with Gyrostat is checked.

    \b
    gyrostat rules check my-rules.yaml
    """
    worst = 0
    for path in files or ("",):
        try:
            text = Path(path).read_text(encoding="utf-8") if path else builtin()
            pack = parse(text, path or BUILTIN)
        except (OSError, UnicodeDecodeError) as error:
            worst = _complain(f"gyrostat: {path}: {getattr(error, 'strerror', None) or error}")
        except PackError as error:
            worst = _complain(str(error))
        else:
            click.echo(f"{path or BUILTIN}: {len(pack.rules)} rules, {len(pack.playbooks)} playbooks, no mistake")
    ctx.exit(worst)


@rules.command("list")
@click.argument("file", required=False, default="", type=click.Path())
@as_json
def show(file: str, as_json: bool) -> None:
    """Show the rules of a pack: how grave, what kind of fault, what each looks at. Without FILE those built in.

    \b
    gyrostat rules list
    gyrostat rules list my-rules.yaml --json
    """
    pack = parse(read_pack(file or None))
    if as_json:
        click.echo(json.dumps({"pack": pack.name, "rules": [_facts(rule) for rule in pack.rules]}, indent=1))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("alert", "severity", "fault", "opens", "for", "looks at"):
        table.add_column(column, overflow="fold", no_wrap=column == "alert")  # a name in two pieces is not found
    for rule in pack.rules:
        facts = _facts(rule)
        table.add_row(*(str(facts[name]) for name in ("alert", "severity", "fault", "incident", "for", "wants")))
    open_console().print(table)


@rules.command()
def schema() -> None:
    """Print the JSON Schema of a pack file, for editors that complete and check as one types.

    \b
    gyrostat rules schema > gyrostat-pack.schema.json
    """
    click.echo(json.dumps(pack_schema(), indent=1))


def _facts(rule: Rule) -> dict[str, object]:
    return {
        "alert": rule.alert, "group": rule.group, "severity": rule.severity, "fault": rule.fault,
        "incident": rule.incident, "detector": rule.detector, "for": rule.lasts.words(), "wants": words(rule),
        "inhibits": list(rule.inhibits), "runbook_url": rule.runbook_url,
    }  # fmt: skip


def _complain(text: str) -> int:
    click.echo(text, err=True)
    return EXIT_SETUP
