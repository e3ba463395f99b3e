"""The command line in this process: what each command prints and leaves with. Real processes are in tests/e2e."""

import json

import click
import pytest
from agent_runs import Bench, said
from cli_runs import Run, calling

from gyrostat_agent.cli.group import COMMANDS, gyrostat
from gyrostat_agent.sources.commands import CommandFiles, give


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


def mended(bench: Bench, **settings: object) -> None:
    """A run in which an item was passed over, its agent gone."""
    control = bench.control()
    agent = bench.agent(**settings)
    bench.tell(1)
    agent.once()  # met in good health: one that is ill when first seen is looked at before it is treated
    bench.skip_twice(2)
    agent.once()
    control.apply(4)
    for step in range(4, 21):
        bench.tell(step)
    agent.once()
    agent.close()


def test_every_command_of_the_table_is_there() -> None:
    """Its name and its module agree, and it says what it is for."""
    context = click.Context(gyrostat)
    for name in COMMANDS:
        command = gyrostat.get_command(context, name)
        assert command is not None and command.name == name and command.help
    assert gyrostat.get_command(context, "mend") is None


def test_an_unknown_command(cli: Run) -> None:
    """Status 2 and the way to the list."""
    status, _, err = cli("mend")
    assert status == 2 and "mend" in err and "--help" in err


def test_incidents_tell_what_was_done(cli: Run, bench: Bench) -> None:
    """From the fault to the proof, oldest first; --all adds what led to it, --json is one document."""
    mended(bench)
    status, out, _ = cli("incidents", bench.run.path)
    assert status == 0 and out.split()[5] == "open"
    *_, proof, bill = out.splitlines()
    assert "mended by skip_data" in proof and "bill of nonfinite" in bill and "alert" not in out
    everything = json.loads(cli("incidents", "--all", "--json", bench.run.path)[1])
    assert {"alert", "incident", "action", "run", "pack"} <= {e["kind"] for e in everything}


def test_no_incident_is_said(cli: Run, bench: Bench) -> None:
    """An empty answer would look like a fault."""
    bench.agent().close()
    assert cli("incidents", bench.run.path)[:2] == (0, "no incident so far\n")


def test_status_without_an_agent(cli: Run, bench: Bench) -> None:
    """Nobody watches: status 1, and it says so, however well the run was."""
    mended(bench)
    status, out, _ = cli("status", bench.run.path)
    assert status == 1 and "none: nobody watches this run" in out


def test_replay_gives_the_same(cli: Run, bench: Bench) -> None:
    """Every entry again, with its id; --quiet only says so."""
    mended(bench)
    status, out, err = cli("replay", bench.run.path)
    assert status == 0 and out == "".join(
        f"{line}\n" for line in cli("incidents", "--all", bench.run.path)[1].splitlines()
    )
    assert "all as in the journal" in err
    assert cli("replay", "--quiet", bench.run.path)[:2] == (0, "")


def test_verify_says_how_long_the_chain_is(cli: Run, bench: Bench) -> None:
    """With its head, to be noted elsewhere."""
    mended(bench)
    status, out, _ = cli("journal", "verify", bench.run.path)
    assert status == 0 and "the chain is whole; head " in out
    said = json.loads(cli("journal", "verify", "--json", bench.run.path)[1])
    assert said["ok"] and said["head"].startswith(f"{said['turns']}:")


@pytest.mark.parametrize(
    "words, verb, arguments",
    [
        (("pause",), "pause", {}),
        (("resume",), "resume", {}),
        (("trust", "--reason", "gesehen"), "trust", {"reason": "gesehen"}),
    ],
    ids=lambda w: w if isinstance(w, str) else None,
)
def test_words_reach_the_agent(
    cli: Run, bench: Bench, words: tuple[str, ...], verb: str, arguments: dict[str, str]
) -> None:
    """With who gave them; that nobody watches now is said, and the next agent reads it."""
    bench.agent().close()
    status, out, _ = cli(*words, bench.run.path)
    assert status == 0 and "the next one reads it" in out
    ((_, command),) = CommandFiles(bench.run).drain(0.0)
    assert command.verb == verb and {**arguments, "by": command.arguments["by"]} == command.arguments


@pytest.mark.parametrize("word", ["approve", "deny"])
def test_an_answer_needs_somebody_who_asks(cli: Run, bench: Bench, word: str) -> None:
    """Where nobody watches, nothing waits: it is refused, and not kept for whoever comes next."""
    bench.agent().close()
    status, out, err = cli(word, "i0001.2", bench.run.path)
    assert status == 2 and not out and "no agent watches" in err and "gyrostat status" in err
    assert not list(CommandFiles(bench.run).drain(0.0))


def test_an_action_waits_for_its_approval(cli: Run, bench: Bench) -> None:
    """With approvals on, what cannot be undone is held; ``gyrostat approve`` lets that one go ahead."""
    control = bench.control()
    agent = bench.agent(approvals=True)
    for step in range(1, 15):
        bench.tell(step)
    bench.verdicts.tell("/c/2", 2)
    agent.once()
    bench.tell(15, float("nan"))
    agent.once()
    (held,) = [e for e in said(agent, "action") if e.state == "hold"]
    assert f"needs approval: gyrostat approve {held.subject}" in held.text and not bench.directives()
    give(bench.run, "approve", {"action": held.subject, "by": "ada"})
    agent.once()
    control.apply(16)
    assert bench.targets == ["/c/2"]
