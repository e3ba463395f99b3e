"""``gyrostat rules test``: files of tests run against the rules, and what did not hold."""

import json

import click

from gyrostat.wire.fields import clean
from gyrostat_agent.cli.options import as_json, builtin
from gyrostat_agent.demo.terminal import open_console
from gyrostat_agent.errors import EXIT_FAULT, EXIT_OK, EXIT_SETUP, SetupError
from gyrostat_agent.ruletest.report import Result, results, show
from gyrostat_agent.ruletest.report import as_json as facts
from gyrostat_agent.ruletest.testfile import load
from gyrostat_rules.packerrors import PackError


@click.command("test")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@as_json
@click.pass_context
def rules_test(ctx: click.Context, files: tuple[str, ...], as_json: bool) -> None:
    """Run the tests in FILE: numbers in, and the alerts, incidents and actions that must come of them, or must not.

    Nothing but virtual time passes. docs/rule_tests.md says how to write one. Exit status 0 where all hold, 1 where
    one does not, 2 where a file cannot be used: every mistake at FILE:LINE:COLUMN with its fix.

    \b
    gyrostat rules test my-rules.test.yaml
    gyrostat rules test --json tests/*.yaml

    \b
    A file, my-rules.test.yaml:
      tests:
        - name: a gradient that jumps is told at once
          rule: GradientSpike
          series: [{name: grad_norm, values: "1~0.1x39 50x2"}]
          expect: [{step: 40, alerts: [{rule: GradientSpike, onset: 40}]}]
    """
    found, errors = list[Result](), list[str]()
    for file in files:
        try:
            found += results(load(file, builtin()))
        except (PackError, SetupError) as error:
            errors += [clean(line) for line in str(error).splitlines()]
    if as_json:
        click.echo(json.dumps(facts(found, errors), indent=1, allow_nan=False))
    else:
        show(open_console(), found)
        for line in errors:
            click.echo(line, err=True)
    ctx.exit(EXIT_SETUP if errors else EXIT_OK if all(result.holds for result in found) else EXIT_FAULT)
