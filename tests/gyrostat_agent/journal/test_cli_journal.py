"""``gyrostat journal``: show, verify, export and compact, and ``replay`` of what was exported."""

import json
import os
from pathlib import Path

import pytest
from agent_runs import Bench
from cli_runs import Run, calling, one_line
from journal_runs import opened
from kept_runs import written
from test_tampering import rewrite

from gyrostat.wire import RunDirectory
from gyrostat_agent import ledgerfile
from gyrostat_agent.rundir import Lock, prepare
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Tick


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that is over: an incident at step 500 of 1200, nothing let go, no checkpoints."""
    made = prepare(str(tmp_path / "run"))
    written(os.path.join(made.agent, "journal.db"), 1200, (500,))[0].close()
    return made


def test_an_incident_is_shown_with_all_that_led_to_it(cli: Run, run: RunDirectory) -> None:
    """The input, the rules in force, what was planned, what was passed by and why, and what came of it."""
    status, out, _ = cli("journal", "show", "--incident", "i0001", run.path)
    assert status == 0
    for word in (
        "Batch: 1 Record, steps 501 to 501",
        "rules blake2b:",
        "onset: 500",
        "verdict: deny",
        "evidence:",
        "hash ",
    ):
        assert word in out, word
    turns = [int(line.split()[1]) for line in out.splitlines() if line.startswith("turn ")]
    assert turns == sorted(turns) and turns


@pytest.mark.parametrize(
    ("asked", "keep"),
    [
        (["--kind", "pack"], lambda e: e["kind"] == "pack"),
        (["--since", "500", "--kind", "alert"], lambda e: e["kind"] == "alert" and e["step"] >= 500),
        (["--incident", "i0001", "--kind", "action"], lambda e: e["subject"].startswith("i0001.")),
    ],
    ids=["kind", "since", "incident"],
)
def test_turns_are_found_by_what_they_say(cli: Run, run: RunDirectory, asked: list[str], keep) -> None:  # type: ignore[no-untyped-def]
    """Every turn that is shown has what was asked for, and every such entry is shown."""
    found = json.loads(cli("journal", "show", "--limit", "1000", "--json", *asked, run.path)[1])
    assert found and all(any(map(keep, turn["entries"])) for turn in found)
    everything = [
        (t.seq, e) for t in opened(os.path.join(run.agent, "journal.db"), readonly=True).turns() for e in t.entries
    ]
    wanted = {seq for seq, e in everything if keep({"kind": e.kind, "step": e.step, "subject": e.subject})}
    assert {turn["turn"] for turn in found} == wanted


def test_what_is_shown_is_bounded(cli: Run, run: RunDirectory) -> None:
    """The newest few, the newest last; one turn by its number, also one that says nothing."""
    assert len(json.loads(cli("journal", "show", "--limit", "2", "--json", run.path)[1])) == 2
    assert "Record" in cli("journal", "show", "--turn", "7", run.path)[1]
    status, _, err = cli("journal", "show", "--turn", "99999", run.path)
    assert status == 2
    one_line(err, "no turn 99999", "1202")
    assert "no turn says" in cli("journal", "show", "--incident", "i9999", run.path)[1]


def test_hostile_text_commands_no_terminal(cli: Run, tmp_path: Path) -> None:
    """What a trainer put into names, words and facts is shown as what it is."""
    made = prepare(str(tmp_path / "run"))
    evil = "\x1b]0;owned\x07\x1b[2J\r\n\x9b31mfake"
    journal = opened(os.path.join(made.agent, "journal.db"))
    journal.commit(
        Tick(float("inf")), [Entry(evil, 1.0, 1, evil, evil, evil, evil, {evil: evil, "deep": [evil] * 999})], {}
    )
    for words in (["show"], ["show", "--json"], ["verify"]):
        status, out, err = cli("journal", *words, made.path)
        assert status == 0 and not set("\x1b\x07\x9b\r") & set(out + err)
        assert max(map(len, out.splitlines())) < 2000 or "--json" in words
    journal.commit(Tick(1.0), [], {evil: 1})
    journal.write([("DELETE FROM offsets WHERE source <> ?", [(b"\xff",)])])
    status, out, err = cli("journal", "verify", made.path)
    assert status == 4 and "offset of" in out and not set("\x1b\x07\x9b\r") & set(out + err)


def ended(bench: Bench) -> str:
    """A run with a ledger, its agent gone; its journal."""
    agent = bench.agent()
    for step in range(1, 9):
        bench.tell(step)
        agent.once()
    agent.close()
    return os.path.join(bench.run.agent, "journal.db")


def test_a_head_of_another_run_does_not_alarm(cli: Run, bench: Bench) -> None:
    """The agent knows the ledger's heads alone: a wrong --head fails, and is not said to make it only observe."""
    ended(bench)
    status, out, _ = cli("journal", "verify", "--head", f"99999:{'0f' * 16}", bench.run.path)
    assert status == 4 and "another run's" in out and "the agent goes on" in out and "observes only" not in out


def test_a_journal_rewritten_as_a_whole_is_found_by_the_ledger(cli: Run, bench: Bench) -> None:
    """Every hash is right again: what stands beside the checkpoints is not, and verify looks there by itself."""
    path = ended(bench)
    status, out, _ = cli("journal", "verify", bench.run.path)
    assert status == 0 and "heads noted elsewhere, in " in out and "ledger.json" in out
    noted = json.loads(cli("journal", "verify", "--json", bench.run.path)[1])["passed"]
    rewrite(path, 3)
    status, out, _ = cli("journal", "verify", bench.run.path)
    assert status == 4 and "written anew" in out
    os.unlink(ledgerfile.path_of(bench.root))
    status, out, _ = cli("journal", "verify", bench.run.path)
    assert status == 0 and "no head noted elsewhere" in out
    status, out, _ = cli("journal", "verify", "--head", noted[0], bench.run.path)
    assert status == 4 and "written anew" in out
    assert cli("journal", "verify", "--head", "nonsense", bench.run.path)[0] == 4


def test_a_journal_is_proved_and_fed_again_elsewhere(cli: Run, run: RunDirectory, tmp_path: Path) -> None:
    """Exported, carried away, verified by a noted head, shown and replayed; never written over a file."""
    out = str(tmp_path / "日志.jsonl")
    status, said, _ = cli("journal", "export", run.path, "--out", out)
    assert status == 0 and "turns 1 to 1202" in said and os.stat(out).st_mode & 0o777 == 0o600
    head = json.loads(cli("journal", "verify", "--json", run.path)[1])["head"]
    status, said, _ = cli("journal", "verify", "--head", head, out)
    assert status == 0 and "it passes 1 heads" in said
    assert "1202 turns fed again" in cli("replay", "--quiet", out)[2]
    assert "i0001" in cli("journal", "show", "--incident", "i0001", out)[1]
    status, _, err = cli("journal", "export", run.path, "--out", out)
    assert status == 2
    one_line(err, "is there already")
    data = Path(out).read_bytes()
    Path(out).write_bytes(data.replace(b'"loss":0.5', b'"loss":0.4', 1))
    status, _, err = cli("journal", "verify", out)
    assert status == 4 and "not as it was written" in err


def test_a_part_is_exported(cli: Run, run: RunDirectory, tmp_path: Path) -> None:
    """By incident from the snapshot before it, or by turns; a part that cannot be fed again says so."""
    incident, part = str(tmp_path / "i.jsonl"), str(tmp_path / "p.jsonl")
    assert cli("journal", "export", run.path, "--incident", "i0001", "--out", incident)[0] == 0
    status, said, _ = cli("journal", "verify", incident)
    assert status == 0 and "it begins at turn 4" in said
    assert cli("replay", "--quiet", incident)[0] == 0
    assert cli("journal", "export", run.path, "--from", "7", "--to", "20", "--out", part)[0] == 0
    assert "14 turns, the chain is whole" in cli("journal", "verify", part)[1]
    status, _, err = cli("replay", part)
    assert status == 2
    one_line(err, "no turn 1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "9", "--to", "3"], "turns 1 to 1202"),
        (["--from", "5000"], "turns 1 to 1202"),
        (["--incident", "i0001", "--from", "2"], "leave --from and --to out"),
    ],
    ids=["backwards", "beyond", "both"],
)
def test_a_part_that_is_none(cli: Run, run: RunDirectory, tmp_path: Path, words: list[str], said: str) -> None:
    """A mistake in which turns is one line, and leaves no file."""
    status, _, err = cli("journal", "export", run.path, "--out", str(tmp_path / "x"), *words)
    assert status == 2 and not (tmp_path / "x").exists()
    one_line(err, said)


def test_half_an_export_is_not_left(cli: Run, run: RunDirectory, tmp_path: Path) -> None:
    """Where the chain breaks half-way there is no file that would only look like a journal."""
    opened(os.path.join(run.agent, "journal.db")).write([("UPDATE entries SET subject = ? WHERE seq = 502", [("x",)])])
    status, _, err = cli("journal", "export", run.path, "--out", str(tmp_path / "x"))
    assert status == 4 and not (tmp_path / "x").exists()
    one_line(err, "broken at turn 502")
    status, _, err = cli("journal", "export", run.path, "--out", str(tmp_path / "none" / "x"))
    assert status == 2
    one_line(err, "cannot be written")


def test_a_finished_run_is_compacted_after_a_look(cli: Run, run: RunDirectory) -> None:
    """First what would go, and nothing goes; with --yes it goes, is named, and what is left is proved and fed again."""
    path = os.path.join(run.agent, "journal.db")
    before = os.path.getsize(path)
    status, out, _ = cli("journal", "compact", run.path)
    assert status == 0 and "would let go the inputs of" in out and os.path.getsize(path) == before
    head = json.loads(cli("journal", "verify", "--json", run.path)[1])["head"]
    status, out, _ = cli("journal", "compact", "--yes", run.path)
    assert status == 0 and out.startswith("let go the inputs of") and os.path.getsize(path) < before
    status, out, _ = cli("journal", "verify", "--head", head, run.path)
    assert status == 0 and "let go by journal compact, uid" in out
    status, _, err = cli("replay", "--quiet", run.path)
    assert status == 0 and "cannot be fed again, inputs are gone; fed: " in err
    assert "its input is gone" in cli("journal", "show", "--turn", "9", run.path)[1]
    assert "of 0 turns" in cli("journal", "compact", run.path)[1]


def test_what_is_in_use_or_broken_is_not_compacted(cli: Run, run: RunDirectory) -> None:
    """An agent has the run: status 3 and its name. A chain that is broken is evidence: status 4."""
    lock = Lock(run)
    status, _, err = cli("journal", "compact", "--yes", run.path)
    lock.release()
    assert status == 3
    one_line(err, "is watched by process")
    opened(os.path.join(run.agent, "journal.db")).write([("DELETE FROM turns WHERE seq = ?", [(77,)])])
    status, _, err = cli("journal", "compact", "--yes", run.path)
    assert status == 4
    one_line(err, "broken at turn 77", "evidence")


@pytest.mark.parametrize("size", ["", "x", "-1", "5 MB", "1e9", "512XiB"])
def test_a_size_that_is_none(cli: Run, tmp_path: Path, size: str) -> None:
    """``--journal-bytes`` takes bytes or a unit; anything else is told how it is written."""
    status, _, err = cli("agent", str(tmp_path / "run"), f"--journal-bytes={size}")
    assert status == 2
    one_line(err, "512MiB")
