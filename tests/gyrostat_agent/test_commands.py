"""People's words to the agent: read in order, once, from a folder that is the agent's alone."""

import os
from pathlib import Path

import pytest

from gyrostat.wire import RunDirectory
from gyrostat_agent.rundir import prepare
from gyrostat_agent.sources.commands import CommandFiles, give
from gyrostat_rules.inputs import Verb


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """An empty run directory."""
    return prepare(str(tmp_path / "run"))


def folder(run: RunDirectory) -> Path:
    return Path(run.agent, "commands")


def test_commands_come_in_the_order_given(run: RunDirectory) -> None:
    """With who gave them; they stay until the journal has them."""
    for verb in (Verb.PAUSE, Verb.RESUME, Verb.APPROVE):
        give(run, verb, {"by": "ada"})
    files = CommandFiles(run)
    drained = files.drain(5.0)
    assert [(c.at, c.verb, c.arguments) for _, c in drained] == [
        (5.0, v, {"by": "ada"}) for v in (Verb.PAUSE, Verb.RESUME, Verb.APPROVE)
    ]
    assert files.drain(6.0)[0][0] == drained[0][0]
    for name, _ in drained:
        files.done(name)
    assert not files.drain(7.0) and not os.listdir(folder(run))


def test_a_command_file_is_its_owners_alone(run: RunDirectory) -> None:
    """Mode 0600, and no draft is left."""
    path = give(run, Verb.PAUSE, {})
    assert os.stat(path).st_mode & 0o777 == 0o600 and os.listdir(folder(run)) == [os.path.basename(path)]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"verb": "pause"}', '{"verb": "configure", "arguments": {}}', '{"verb": "pause", "arguments": 1}',
     '{"verb": "ledger", "arguments": {}}', "[" * 60_000, "x" * (65 << 10)],
    ids=["empty", "half", "a list", "no arguments", "not a person's", "odd arguments", "ledger", "deep", "long"],
)  # fmt: skip
def test_what_is_no_command_is_removed(run: RunDirectory, text: str) -> None:
    """And obeyed by nobody: only approve, deny, pause, resume and trust are people's words."""
    file = folder(run) / "1.json"
    file.write_text(text)
    file.chmod(0o600)
    assert not CommandFiles(run).drain(0.0) and not file.exists()


def test_what_others_could_have_written_is_not_obeyed(run: RunDirectory) -> None:
    """A file open to all is removed; a folder open to all is not read at all."""
    Path(give(run, Verb.TRUST, {})).chmod(0o666)
    assert not CommandFiles(run).drain(0.0) and not os.listdir(folder(run))
    give(run, Verb.TRUST, {})
    folder(run).chmod(0o777)
    assert not CommandFiles(run).drain(0.0) and len(os.listdir(folder(run))) == 1


def test_a_folder_that_is_gone_is_no_fault(run: RunDirectory) -> None:
    """The loop goes on without people's words; whoever gives one is told."""
    folder(run).rmdir()
    assert not CommandFiles(run).drain(0.0)
    CommandFiles(run).done("1.json")
    with pytest.raises(FileNotFoundError):
        give(run, Verb.PAUSE, {})


def test_drafts_are_not_read(run: RunDirectory) -> None:
    """Half a command that is being written is no command yet, and stays."""
    (folder(run) / ".1-23").write_text("{")
    (folder(run) / "notes.txt").write_text("x")
    assert not CommandFiles(run).drain(0.0) and len(os.listdir(folder(run))) == 2
