"""The group ``gyrostat``: its commands in one table, errors without stack traces, exit statuses documented."""

import difflib
import importlib

import click

from gyrostat_agent.errors import AgentError

COMMANDS = {
    "demo": ("demo", "Train a small looped MoE, break it, mend it, and show what happened."),
    "run": ("run", "Run a training command with the sidecar beside it."),
    "agent": ("agent", "Watch a run directory (what `run` starts, and a sidecar container)."),
    "status": ("status", "How the run and its agent fare now."),
    "top": ("top", "The run live in the terminal: its curves, what is wrong, what is being done."),
    "incidents": ("incidents", "What went wrong, what was done, what came of it."),
    "report": ("report", "Post-mortem of an incident or a run: timeline, curves, decision, bill; as a page too."),
    "runbook": ("runbook", "The page for the one on call: of a rule, an alert, a fault or a playbook."),
    "approve": ("word", "Let an action that waits for a person go ahead."),
    "deny": ("word", "Refuse an action that waits; the incident is yours then."),
    "pause": ("word", "Do nothing until `resume`; go on observing."),
    "resume": ("word", "End a pause."),
    "token": ("token", "What words over HTTP need (`agent --control`): find it, change it."),
    "silence": ("silence", "Do nothing about some alerts, or all of them, until a time; a maintenance window."),
    "unsilence": ("silence", "End a silence before its time."),
    "silences": ("silence", "Which silences stand, until when, by whom and why."),
    "trust": ("word", "End observe-only after a broken journal or a lost ledger."),
    "shadow": ("shadow", "What would have been done, against what came: `shadow report`."),
    "arm": ("arm", "Let a rule act in mode shadow, on evidence or for a reason."),
    "disarm": ("arm", "Let it act no more."),
    "checkpoints": ("checkpoints", "Which can be gone back to, and back to one: `checkpoints rollback`."),
    "kubernetes": ("kubernetes", "The job of a pod: show it, plan, hold it, keep a node out, finish what was begun."),
    "replay": ("replay", "Feed a run's journal to the rules again; the entries must be the same."),
    "diagnose": ("diagnose", "Say what went wrong in the logs of any past run, and since when."),
    "series": ("diagnose", "Show how each name in a log was read."),
    "backtest": ("backtest", "Replay recorded cases through the rules, and score the rules."),
    "journal": ("journal", "Show, prove, export and compact the journal: `journal verify`."),
    "selftest": ("selftest", "Try every detector on simulated runs: with its fault, and quiet."),
    "rules": ("rules", "Check, list, explain and test rule packs."),
}
_EPILOG = """Exit statuses: 0 well; 1 a fault was found or the run failed; 2 something given cannot be used; 3 another
agent has the run; 4 what is on the disk does not add up. `run` leaves with its command's own."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"gyrostat_agent.cli.{COMMANDS[name][0]}")
        found: click.Command = getattr(module, name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A slip of the finger is met with what was meant."""
        near = [] if args[0] in COMMANDS or args[0].startswith("-") else difflib.get_close_matches(args[0], COMMANDS)
        if near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table's own words, so that ``--help`` imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=_Lazy, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gyrostat", prog_name="gyrostat")
def gyrostat() -> None:
    """A sidecar that keeps RL post-training of MoE models upright.

    It reads what the trainer tells, decides what is wrong, mends it while the run goes on, and proves the mend or
    undoes it.

    \b
    gyrostat demo                                   see it work, in minutes, on a CPU
    gyrostat run -- python train.py                 beside your own run, changing nothing
    gyrostat run --mode act -- python train.py      and mending it
    """


def main() -> int:
    """Run the command line; a user's mistake is one line, never a stack trace.

    A reader that has gone (``| head``) is click's to see to: status 1, and nothing said.
    """
    try:
        result = gyrostat(standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("gyrostat: ended", err=True)
        return 130
    except AgentError as error:
        click.echo(f"gyrostat: {error}", err=True)
        return error.status
