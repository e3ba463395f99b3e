"""``gyrostat rules check``: a pack's mistakes, all at once."""

from pathlib import Path

import click

from gyrostat_agent.cli.options import BUILTIN, builtin
from gyrostat_agent.errors import EXIT_SETUP
from gyrostat_rules.packfile import PackError, parse


@click.group()
def rules() -> None:
    """Look after rule packs: `check` finds their mistakes."""


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


def _complain(text: str) -> int:
    click.echo(text, err=True)
    return EXIT_SETUP
