"""How ``gyrostat run`` begins and ends: what is missing, which status means what, and a trainer known by its output."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_runs import Run, calling
from output_runs import Begin, beginning
from supervised_runs import DEADLINE, environment, python
from test_run_flags import order

from gyrostat.wire import Ack
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.launch.capabilities import lines, rows
from gyrostat_agent.launch.flags import recognise, table
from gyrostat_agent.launch.person import EXIT_PERSON, needed
from gyrostat_agent.launch.tail import Plan
from gyrostat_agent.settings import Settings
from gyrostat_rules.entries import Entry, EntryKind

PATIENCE = 3 * DEADLINE  # an agent's start, and its decision, beside other work

# A trainer that knows nothing of us: it prints rows, saves as Hugging Face does, and dies of a NaN unless it resumed.
TRAINER = r"""
import json, os, struct, sys
root, resume = sys.argv[1], sys.argv[3]
step = int(resume.rpartition("-")[2]) if resume != "None" else 0
print("begins at", step, flush=True)
while step < 36:
    step += 1
    bad = step >= 33 and resume == "None"
    loss = float("nan") if bad else 1.0 / step
    print(f"step: {step} loss: {loss} grad_norm: {loss} lr: 1e-6", flush=True)
    if step in (10, 20, 30) and root:
        place = os.path.join(root, f"checkpoint-{step}")
        os.makedirs(place, exist_ok=True)
        head = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        with open(os.path.join(place, "model.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head + struct.pack("<4f", 1.0, 2.0, 3.0, step))
        with open(os.path.join(place, "trainer_state.json"), "w") as file:
            json.dump({"global_step": step, "log_history": []}, file)
    if step == 31 and resume == "None":
        input()
    if step == 35 and bad:
        sys.exit(9)
"""


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts supervisors."""
    yield from beginning(tmp_path)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS`` that start nothing."""
    return calling(monkeypatch, capsys)


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts ``gyrostat run WORDS``, with an agent; ends what a failed test leaves behind."""
    begun: list[subprocess.Popen[str]] = []

    def one(*words: str) -> "subprocess.Popen[str]":
        argv = [sys.executable, "-m", "gyrostat_agent", "run", "--listen", "", *words]
        pipe = subprocess.PIPE
        begun.append(subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment()))
        return begun[-1]

    yield one
    for process in begun:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)


def awaited(condition: Callable[[], object]) -> None:
    """Wait for what an agent does beside other work; fails after its time."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)


def entries(run: Path, kind: str) -> list[Entry]:
    """What a living agent has written down so far."""
    try:
        with contextlib.closing(Journal(str(run / "agent" / "journal.db"), readonly=True)) as journal:
            return list(journal.entries(kinds=(kind,)))
    except JournalError:
        return []


# -- statuses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, status, word", [("/no/such", 127, "not found"), ("", 126, "chmod +x")], ids=["not found", "not executable"]
)
def test_a_command_that_cannot_be_started_has_the_shells_status(
    start: Start, tmp_path: Path, name: str, status: int, word: str
) -> None:
    """As a batch script knows it, with what to do, and without an agent left behind."""
    (tmp_path / "plain").write_text("no program")
    process = start("--run-dir", str(tmp_path / "run"), "--", name or str(tmp_path / "plain"))
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status and word in err.splitlines()[-1]
    assert not (tmp_path / "run" / "agent" / "journal.db").exists()


def test_a_trainer_that_ignores_sigterm_is_killed_for_its_restart(begin: Begin, tmp_path: Path) -> None:
    """It has its grace, and what is done then is said."""
    lives = tmp_path / "lives"
    program = (
        f"import os, signal, time; first = not os.path.exists({str(lives)!r}); open({str(lives)!r}, 'a').close()\n"
    )
    program += "signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile first: time.sleep(60)"
    run = begin(*python(program), "--resume_from_checkpoint", "x", mode="act", grace=0.2)
    assert run.process.stdout is not None and run.process.stdout.readline() == b"up\n"
    assert order(run, 1, "/c/checkpoint-20").result == Ack.APPLIED
    status, _, err = run.end()
    assert status == 0 and b"has not ended within 0.2 s of SIGTERM: it gets SIGKILL" in err
    assert [(e.status, e.asked) for e in run.exits()] == [(-signal.SIGKILL, True), (0, False)]


def test_a_trainer_that_outlives_a_signal_is_never_killed_for_it(begin: Begin) -> None:
    """A SIGTERM from outside is passed on, and the trainer takes the time it takes: it may be saving."""
    program = "import signal\nsignal.signal(15, lambda *_: print('saving', flush=True)); print('up', flush=True)\n"
    run = begin(*python(program + "signal.pause(); input()"), grace=0.0, stdin=subprocess.PIPE)
    assert run.process.stdout is not None and run.process.stdout.readline() == b"up\n"
    run.process.send_signal(signal.SIGTERM)
    assert run.process.stdout.readline() == b"saving\n"
    run.process.communicate(b"\n", timeout=DEADLINE)
    assert run.process.returncode == 0


def entry(kind: str, subject: str, state: str, text: str = "", at: float = 5.0, **data: str) -> Entry:
    return Entry(f"e{at}", at, 1, kind, subject, state, text, data)


@pytest.mark.parametrize(
    "told, wanted",
    [
        ([], False),
        ([entry("incident", "i1", "open")], False),
        ([entry("incident", "i1", "stopped", "nonfinite: budget spent")], True),
        ([entry("incident", "i1", "stopped", at=1.0)], False),
        ([entry("incident", "i1", "held", "x: needs approval: gyrostat approve i1.1")], True),
        ([entry("incident", "i1", "held", "x: waits for a person")], True),
        ([entry("incident", "i1", "held", "x: blind: no word")], False),
        ([entry("incident", "i1", "held", "x: waits for a person"), entry("incident", "i1", "resolved")], False),
        ([entry("action", "i1.1", "applied", remedy="stop")], True),
        ([entry("action", "i1.1", "applied", remedy="rollback")], False),
    ],
    ids=["healthy", "open", "stopped", "another life", "approval", "page", "blind", "mended", "stop", "rollback"],
)
def test_when_a_person_is_needed(told: list[Entry], wanted: bool) -> None:
    """Where nothing more is tried without somebody's word; not for what passes by itself."""
    assert bool(needed(told, 2.0)) is wanted


# -- a trainer known by its output alone --------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False], ids=["flags known", "no checkpoints"])
def test_without_a_line_of_code(start: Start, tmp_path: Path, known: bool) -> None:
    """A NaN is found in what it prints: it is restarted from the certified checkpoint; else a person is asked for."""
    run, root = tmp_path / "lauf 跑", tmp_path / "ckpts"
    root.mkdir()
    options = ["--checkpoints", str(root)] if known else []
    command = [sys.executable, "-c", TRAINER, str(root) if known else "", "--resume_from_checkpoint", "None"]
    process = start("--mode", "act", "--no-approvals", "--run-dir", str(run), *options, "--", *command)
    assert process.stdin is not None
    if known:
        awaited(lambda: {e.step for e in entries(run, EntryKind.CHECKPOINT) if e.state == "verified"} >= {10, 20, 30})
    else:
        awaited(lambda: entries(run, EntryKind.SOURCE))
    out, err = process.communicate("\n", timeout=PATIENCE)
    if known:
        assert process.returncode == 0, err
        assert [line for line in out.splitlines() if line.startswith("begins")] == ["begins at 0", "begins at 20"]
        assert out.endswith(f"step: 36 loss: {1 / 36} grad_norm: {1 / 36} lr: 1e-6\n")
        assert f"with --resume_from_checkpoint {root}/checkpoint-20 (was None)" in err
    else:
        assert process.returncode == EXIT_PERSON, err
        assert "a person is needed, do not queue it again: i0001 is stopped" in err
        assert err.endswith(f"leaving with {EXIT_PERSON} instead of exit 9\n")


def test_who_asked_for_the_end_gets_the_trainers_own_status(start: Start, tmp_path: Path) -> None:
    """A preemption is queued again, whatever else is open."""
    run = tmp_path / "run"
    program = "import time\nfor n in range(15): print(f'step: {n} loss: nan', flush=True)\nwhile True: time.sleep(60)"
    process = start("--mode", "act", "--run-dir", str(run), "--", *python(program))
    awaited(lambda: any(e.state == "stopped" for e in entries(run, EntryKind.INCIDENT)))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGTERM, err


# -- what is missing ----------------------------------------------------------------------------------


def test_what_is_missing_is_said_with_what_it_turns_off() -> None:
    """Where nothing is, each thing has its line; where all is there, the SDK alone is open."""
    bare = lines(rows(Settings("r", "", ""), Plan(left={1: "stdout is a terminal"}), False, None), missing=True)
    assert [line.split("  ")[0] for line in bare] == ["--mode", "its output", "--checkpoints", "its flags", "the SDK"]
    full = Settings("r", "", "", mode="act", approvals=False, checkpoints=("/c",), logs=("/r/output.log",))
    launcher = recognise(["trl", "grpo"], table())
    told = lines(rows(full, Plan((1, 2), (), {}), True, launcher), missing=True)
    assert len(told) == 1 and told[0].startswith("the SDK")
    asking = lines(rows(full._replace(approvals=True), Plan((1, 2), (), {}), True, launcher), missing=True)
    assert len(asking) == 2 and "gyrostat approve" in asking[0]


def test_explain_says_it_and_starts_nothing(cli: Run, tmp_path: Path) -> None:
    """The whole table, status 0, no folder, no process."""
    status, out, err = cli("run", "--explain", "--run-dir", str(tmp_path / "run"), "--", "torchrun", "pretrain_gpt.py")
    assert (status, err) == (0, "") and not os.listdir(tmp_path)
    assert "known: Megatron-LM" in out and out.count("\n") == 6


def test_help_documents_the_statuses(cli: Run) -> None:
    """Who writes a batch script finds them there."""
    said = " ".join(cli("run", "--help")[1].split())
    assert f"with {EXIT_PERSON} in mode act" in said and "127 it is not found" in said
