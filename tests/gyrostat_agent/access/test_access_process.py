"""Agents in processes of their own: where the token is, where it is not, and what each file of a run allows."""

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_runs import Bench
from cli_runs import calling, one_line
from http_posts import Said, post
from supervised_runs import DEADLINE, environment, until

from gyrostat import Telemetry
from gyrostat_agent.settings import Settings

PAGE = (Path(__file__).parents[3] / "docs" / "access.md").read_text(encoding="utf-8")


class Living:
    """A process of ours that watches a run, and what it has said."""

    def __init__(self, run: Path, log: Path, *words: str) -> None:
        self.run, self.log = run, log
        argv = [sys.executable, "-m", "gyrostat_agent", *words]
        with log.open("ab") as out:
            self.process = subprocess.Popen(argv, stdout=out, stderr=out, env=environment())

    def address(self) -> str:
        """Where it takes words, once it does."""
        until(lambda: self.notice().get("address"))
        return str(self.notice()["address"])

    def notice(self) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads((self.run / "agent" / "control.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def token(self) -> str:
        return Path(self.notice()["token_file"]).read_text().strip()

    def ask(self, token: str = "") -> Said:
        address = self.address()
        shown = f"Bearer {token or self.token()}"
        return post(address, "/v1/words/pause", b"{}", Authorization=shown)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE)


def agent(folder: Path, *words: str) -> Living:
    """``gyrostat agent RUN --control=127.0.0.1:0 WORDS``."""
    run = folder / "run"
    return Living(run, folder / "log", "agent", str(run), "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", *words)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Living]]:
    """Starts one; killed at the end."""
    begun: list[Living] = []

    def one(*words: str) -> Living:
        begun.append(agent(tmp_path, *words))
        return begun[-1]

    yield one
    for each in begun:
        each.process.kill()
        each.process.wait()


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    """One that several tests look at."""
    made = agent(tmp_path_factory.mktemp("living"))
    yield made
    made.process.kill()
    made.process.wait()


def spread(pid: int) -> bytes:
    """What other users may read of a process, and its environment."""
    return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ", "comm"))


def test_a_word_reaches_a_real_agent_and_the_token_nothing_else(living: Living) -> None:
    """Not its log, its command line, its status, its journal, nor any file but its own; wrong ones neither."""
    wrong = "f" * 64
    said = living.ask()
    assert said.status == 200 and json.loads(said.body) == {"said": "paused: nothing is done until resumed"}
    assert living.ask(wrong).status == 401
    token, pid = living.token(), living.process.pid
    until(lambda: "a wrong token from 127.0.0.1" in living.log.read_text())
    assert token.encode() not in spread(pid) and f"words to http://{living.address()}" in living.log.read_text()
    assert holding(living, token) == [living.run / "agent" / "control.token"] and not holding(living, wrong)


def holding(living: Living, text: str) -> list[Path]:
    """The files of a run, and the log, that a text is in."""
    found = []
    for path in (living.log, *living.run.rglob("*")):
        with contextlib.suppress(OSError):  # a folder, or gone meanwhile
            found += [path] if text.encode() in path.read_bytes() else []
    return found


def test_a_restart_keeps_the_token(start: Callable[..., Living]) -> None:
    """Killed or ended: whoever has it need not be told anew."""
    first = start()
    assert first.ask().status == 200
    token = first.token()
    first.process.kill()
    first.process.wait()
    (first.run / "agent" / "control.json").unlink()
    second = start()
    assert second.ask(token).status == 200 and second.end() == 0


def test_a_token_of_the_wrong_mode_is_refused_at_start(start: Callable[..., Living], tmp_path: Path) -> None:
    """Status 2 and the command that mends it; nothing listens."""
    given = tmp_path / "token"
    given.write_text("0123456789abcdef" * 4)
    given.chmod(0o644)
    refused = start("--control-token", str(given))
    assert refused.process.wait(DEADLINE) == 2
    (command,) = re.findall(r"chmod 600 \S+(?=,)", refused.log.read_text())
    assert command == f"chmod 600 {given}" and not refused.notice()


def test_beside_a_trainer_too(tmp_path: Path) -> None:
    """``gyrostat run --control``: the agent that it starts is given the options, never the token."""
    run, go = tmp_path / "run", tmp_path / "go"
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    own = ("run", "--listen", "", "--control", "127.0.0.1:0", "--control-name", "gyro.lan", "--run-dir", str(run))
    living = Living(run, tmp_path / "log", *own, "--", sys.executable, "-c", wait)
    try:
        assert living.ask().status == 200
        named = post(
            living.address(), "/v1/words/pause", b"{}", Authorization=f"Bearer {living.token()}", Host="gyro.lan"
        )
        assert named.status == 200
        pids = [int(n) for n in os.listdir("/proc") if n.isdigit()]
        ours = [pid for pid in pids if str(run).encode() in cmdline(pid)]
        assert len(ours) >= 2 and not any(living.token().encode() in cmdline(pid) for pid in ours)
    finally:
        go.touch()
        assert living.process.wait(DEADLINE) == 0


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# -- the table of the page --------------------------------------------------------------------------------


def table(heading: str) -> list[list[str]]:
    """Cells of the rows of the first table under a heading."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n|")[2].partition("\n\n")[0]
    rows = [line.strip("|").split("|") for line in part.splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_table_lists_each_file_of_a_run_with_its_mode(living: Living) -> None:
    """What a real agent makes is what the page says: every file and folder, and nobody else may write any."""
    listed = {re.findall(r"`([^`]+)`", row[0])[0]: row[1] for row in table("Files")}
    assert living.ask().status == 200
    telemetry = Telemetry(str(living.run), run="run", rank=0)
    telemetry.record(1, loss=0.5)
    until(lambda: '"step": 1' in shown(living))
    odd = []
    for path in (living.run, *sorted(living.run.rglob("*"))):
        name = str(Path("RUN_DIR") / path.relative_to(living.run))
        rows = [mode for pattern, mode in listed.items() if re.fullmatch(_pattern(pattern), name)]
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:  # the journal's own, or a draft: gone meanwhile
            continue
        if rows != [f"{mode:04o}"]:
            odd.append((name, f"{mode:04o}", rows))
    telemetry.close()
    assert not odd


def shown(living: Living) -> str:
    try:
        return (living.run / "agent" / "status.json").read_text()
    except FileNotFoundError:
        return ""


def test_the_ledger_is_as_listed(bench: Bench) -> None:
    """Beside the checkpoints, where others may read: this folder is its user's alone."""
    agent = bench.agent()
    bench.tell(1)
    agent.once()
    agent.close()
    listed = {re.findall(r"`([^`]+)`", row[0])[0]: row[1] for row in table("Files")}
    for name in (".gyrostat", ".gyrostat/ledger.json"):
        found = stat.S_IMODE(os.stat(os.path.join(bench.root, name)).st_mode)
        assert listed[f"CHECKPOINTS/{name}"] == f"{found:04o}"


def _pattern(written: str) -> str:
    """Words in capitals and ... stand for anything; the run directory for itself."""
    return re.sub(r"\\\.\\\.\\\.|\b(?!RUN_DIR)[A-Z]{2,}\b", r"[^/]+", re.escape(written.rstrip("/")))


def test_the_table_lists_each_port() -> None:
    """Every option that listens or reads from elsewhere stands there with its default, and no other."""
    from gyrostat_agent.access import wordserver
    from gyrostat_agent.cli.agent import agent
    from gyrostat_agent.sources import httpin

    rows = {re.findall(r"`(--[\w-]+)", row[0])[0]: row[1] for row in table("Ports")}
    options = {name: p for p in agent.params for name in p.opts if getattr(p, "metavar", None) or p.default}
    asks = {"--listen", "--scrape", "--alertmanager", "--otlp", "--kubernetes"} & {
        n for p in agent.params for n in p.opts
    }
    places = {n for n, p in options.items() if "HOST:PORT" in str(p.metavar)} | asks
    assert set(rows) == places
    assert "127.0.0.1:9466" in rows["--listen"] and wordserver.DEFAULT in rows["--control"]
    assert httpin.DEFAULT in rows["--receive"] and "off" in rows["--receive"] and "off" in rows["--control"]


def test_the_page_lists_the_words_that_there_are() -> None:
    """Those that may come over HTTP, with their arguments; and those that may not."""
    from gyrostat_agent.access.words import WORDS
    from gyrostat_rules.inputs import Verb

    rows = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in table("Words over HTTP")}
    assert rows == {verb: {*must, *may} for verb, (must, may) in WORDS.items()}
    others = {v for k, v in vars(Verb).items() if k.isupper()} - set(WORDS)
    stay = PAGE.partition("never come over HTTP")[2].partition("\n\n")[0]
    assert all(f"`{verb}`" in stay for verb in others)


@pytest.mark.parametrize(
    "words, said",
    [
        (("--control", "here"), "--control here: write HOST:PORT, e.g. --control=127.0.0.1:9467"),
        (("--control-token", "x"), "are of --control"),
        (("--control-name", "x"), "are of --control"),
    ],
    ids=["address", "token alone", "name alone"],
)
def test_options_that_cannot_be_meant(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    said: str,
) -> None:
    """Refused before anything is made; ``--control RUN_DIR`` is the slip that is near."""
    status, _, err = calling(monkeypatch, capsys)("agent", str(tmp_path / "run"), *words)
    assert status == 2 and not (tmp_path / "run").exists()
    one_line(err, said)


def test_without_an_address_it_is_the_usual_one() -> None:
    """``--control`` alone; and the agent that ``gyrostat run`` starts is given what it was."""
    from gyrostat_agent.access import wordserver
    from gyrostat_agent.cli.agent import agent
    from gyrostat_agent.cli.options import passed_on, settings

    def chosen(*words: str) -> Settings:
        given = agent.make_context("agent", ["/r", *words]).params
        return settings("/r", {name: value for name, value in given.items() if name not in ("run_dir", "listen")})

    assert chosen().control == "" and chosen("--control").control == wordserver.DEFAULT
    there = chosen("--control", "--control-token", "/t", "--control-name", "a", "--control-name", "b")
    again = chosen(*(w for w in passed_on(there, "", None)))
    assert again == there and again.control_names == ("a", "b") and again.control_token == "/t"
