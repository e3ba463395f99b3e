"""``gyrostat token``: the token is found and changed without being shown, and shown only where that is meant."""

import json
from pathlib import Path

import pytest
from agent_runs import Bench
from cli_runs import Run, calling, one_line
from word_runs import Speaking, listening, speaking

from gyrostat_agent.access import tokenfile


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def run_dir(bench: Bench) -> str:
    """A run that an agent has watched."""
    bench.agent().close()
    bench.agents.clear()
    return bench.run.path


def test_the_file_is_named(cli: Run, bench: Bench, run_dir: str) -> None:
    """The agent's own one, or that which it was started with; where it listens too, for machines."""
    with listening(bench) as server:
        status, out, _ = cli("token", "path", run_dir)
        assert (status, out) == (0, f"{tokenfile.place(bench.run)}\n")
        status, out, _ = cli("token", "path", "--json", run_dir)
        assert json.loads(out) == {"address": server.server.address, "token_file": tokenfile.place(bench.run)}


def test_a_given_file_is_found_and_changed(cli: Run, bench: Bench, run_dir: str, tmp_path: Path) -> None:
    """The one that the agent reads is changed, not the one that it would have made."""
    given = str(tmp_path / "我的.token")
    assert cli("token", "rotate", "--control-token", given)[0] == 0
    with listening(bench, token_file=given) as server:
        old = server.token
        status, out, err = cli("token", "rotate", run_dir)
        assert status == 0 and given in out
        assert server.ask("/v1/status", b"", "GET", token=old).status == 401
        assert server.ask("/v1/status", b"", "GET").status == 503  # let in; there is no status yet
    assert not Path(tokenfile.place(bench.run)).exists()
    assert not any(token in out + err for token in (old, tokenfile.read(given).decode()))


def test_a_change_is_heard_of_at_once(cli: Run, bench: Bench) -> None:
    """Without a restart."""
    with speaking(bench) as spoken:
        old = spoken.token
        assert cli("token", "rotate", bench.run.path)[0] == 0
        assert spoken.ask("/v1/words/pause", token=old).status == 401
        assert spoken.ask("/v1/words/pause").status == 200


def test_it_is_not_shown_by_chance(cli: Run, bench: Bench, run_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stdout goes into a file or a log only with --yes; on a terminal at once."""
    with listening(bench) as server:
        token = server.token
    status, out, err = cli("token", "show", run_dir)
    assert (status, out) == (2, "") and token not in err
    one_line(err, "no terminal", "--yes")
    assert cli("token", "show", "--yes", run_dir) == (0, f"{token}\n", "")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli("token", "show", run_dir) == (0, f"{token}\n", "")


@pytest.mark.parametrize("word", ["path", "show"])
def test_there_is_none(cli: Run, run_dir: str, word: str) -> None:
    """Of an agent that took no words over HTTP: status 2, and how one is made."""
    status, out, err = cli("token", word, run_dir)
    assert (status, out) == (2, "")
    one_line(err, "no such token file", "gyrostat token rotate")


def test_one_that_others_may_read_is_said(cli: Run, bench: Bench, run_dir: str) -> None:
    """And mended by the command that is shown: a new token, for its owner alone."""
    with listening(bench):
        pass
    path = Path(tokenfile.place(bench.run))
    path.chmod(0o644)
    before = path.read_text()
    status, _, err = cli("token", "path", run_dir)
    assert status == 2
    one_line(err, f"chmod 600 {path}", f"gyrostat token rotate --control-token {path}")
    assert cli("token", "rotate", "--control-token", str(path))[0] == 0
    assert cli("token", "path", run_dir)[0] == 0 and path.read_text() != before


def test_a_notice_that_somebody_else_wrote_is_not_believed(
    cli: Run, bench: Bench, run_dir: str, tmp_path: Path
) -> None:
    """It could lead us to change, or to show, another file."""
    notice = Path(bench.run.agent, "control.json")
    for text in ('{"address": "", "token_file": 1}', "[]", "{", json.dumps({"address": "", "token_file": "/x"})):
        notice.write_text(text)
        notice.chmod(0o666)
        assert cli("token", "path", "--json", run_dir)[1].count(tokenfile.place(bench.run)) == 1


def test_help_shows_how(cli: Run) -> None:
    """Each with an example that can be typed."""
    for word in ("path", "rotate", "show"):
        status, out, _ = cli("token", word, "-h")
        assert status == 0 and f"gyrostat token {word}" in out


def test_the_speaker_is_the_same(bench: Bench) -> None:
    """What tests ask with is what the agent reads."""
    with listening(bench) as server:
        assert isinstance(server, Speaking) and server.token == tokenfile.read(server.server.token_file).decode()
