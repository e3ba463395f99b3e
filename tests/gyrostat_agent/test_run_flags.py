"""Flags: what a command is told when it is started again, for whom, and never by a guess."""

import ast
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import Run, calling, one_line
from output_runs import Begin, OutputRun, beginning
from supervised_runs import FIRST_TIME, python, until

from gyrostat.wire import Ack, Directive, Hello, Kind, RunDirectory
from gyrostat_agent.actuators.directivefiles import DirectiveFiles
from gyrostat_agent.errors import SetupError
from gyrostat_agent.launch.flags import recognise, resumed, table
from gyrostat_agent.launch.turns import Turns

OWN = r"""
launchers:
  - name: ours
    command: ['(.*/)?our_train\.py']
    checkpoint: '(?P<folder>.*)/step(?P<n>[0-9]+)'
    style: flags
    resume: {--from: '{folder}', --at: '{n}'}
"""


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts supervisors."""
    yield from beginning(tmp_path)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS`` that start nothing."""
    return calling(monkeypatch, capsys)


# -- the table ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, checkpoint, wanted",
    [
        ("trl grpo --lr 1", "/c/checkpoint-20", "trl grpo --lr 1 --resume_from_checkpoint /c/checkpoint-20"),
        (
            "torchrun -m trl.scripts.dpo --resume_from_checkpoint /c/checkpoint-1 --x",
            "/c/gyrostat-pins/checkpoint-20",
            "torchrun -m trl.scripts.dpo --resume_from_checkpoint /c/gyrostat-pins/checkpoint-20 --x",
        ),
        (
            "python my.py --resume_from_checkpoint=True",
            "/c/checkpoint-3",
            "python my.py --resume_from_checkpoint=/c/checkpoint-3",
        ),
        (
            "python my.py --resume_from_checkpoint",
            "/c/checkpoint-3",
            "python my.py --resume_from_checkpoint /c/checkpoint-3",
        ),
        (
            "python3 -m verl.trainer.main_ppo trainer.resume_mode=auto data.x=1",
            "/c/global_step_40/actor",
            "python3 -m verl.trainer.main_ppo trainer.resume_mode=resume_path data.x=1 "
            "trainer.resume_from_path=/c/global_step_40",
        ),
        (
            "python3 -m verl.trainer.main_ppo ++trainer.resume_from_path=null",
            "/c/a,b/global_step_40",
            "python3 -m verl.trainer.main_ppo ++trainer.resume_from_path='/c/a,b/global_step_40' "
            "trainer.resume_mode=resume_path",
        ),
        (
            "torchrun /m/pretrain_gpt.py --load /old --save /c",
            "/c/iter_0000100",
            "torchrun /m/pretrain_gpt.py --load /c --save /c --ckpt-step 100",
        ),
        (
            "accelerate launch run_clm.py",
            "/c/checkpoint-7",
            "accelerate launch run_clm.py --resume_from_checkpoint /c/checkpoint-7",
        ),
    ],
    ids=["trl", "behind torchrun", "joined", "bare", "verl", "quoted for hydra", "megatron", "examples"],
)
def test_a_command_is_told_where_to_resume(command: str, checkpoint: str, wanted: str) -> None:
    """Each launcher in its own words; what was given is replaced in its place, the rest stays as it is."""
    launcher = recognise(command.split(), table())
    assert launcher is not None
    found = resumed(command.split(), launcher, checkpoint)
    assert found is not None and list(found.command) == wanted.split()
    assert len(found.said) == len(launcher.resume)


@pytest.mark.parametrize(
    "command",
    ["python train.py", "bash train.sh --load x", "torchrun train.py --config grpo", "trl", "trl env", "echo pretrain"],
)
def test_what_no_row_knows_gets_no_flag(command: str) -> None:
    """Not by a likeness either."""
    assert recognise(command.split(), table()) is None


def test_a_checkpoint_of_another_trainer_is_not_named_to_it() -> None:
    """Megatron is not given a folder of Hugging Face's."""
    launcher = recognise(["pretrain_gpt.py"], table())
    assert launcher is not None and resumed(["pretrain_gpt.py"], launcher, "/c/checkpoint-20") is None


def test_a_persons_own_rows_go_before_ours(tmp_path: Path) -> None:
    """Their table adds to it and wins."""
    place = tmp_path / "flags.yaml"
    place.write_text(
        OWN + OWN.partition("launchers:\n")[2].replace("name: ours", "name: mine").replace(r"our_train\.py", "trl")
    )
    rows = table(str(place))
    ours, mine = (recognise(words, rows) for words in (["python", "our_train.py"], ["trl", "grpo"]))
    assert ours is not None and mine is not None and (ours.name, mine.name) == ("ours", "mine")
    found = resumed(["python", "our_train.py"], ours, "/c/step12")
    assert found is not None and found.command == ("python", "our_train.py", "--from", "/c", "--at", "12")


@pytest.mark.parametrize(
    "text, words",
    [
        ("launchers: [", ["no YAML"]),
        ("- a", ["`launchers:`"]),
        (OWN.replace("style: flags", "style: flag") + "  - 3\n", ["row 1", "row 2", "overrides"]),
        (OWN.replace("'{n}'", "'{m}'"), ["row 1", "--at", "{m}"]),
        (OWN.replace("'{n}'", "'{'"), ["row 1", "--at"]),
        (OWN.replace("[0-9]+", "[0-9+"), ["row 1", "checkpoint", "regular expression"]),
        (OWN.replace("    style: flags\n", ""), ["row 1", "style"]),
        (OWN.replace("name: ours", "name: 7"), ["row 1", "name"]),
        (OWN + "    knobs: {max_grad_norm: 3}\n", ["row 1", "knobs", "max_grad_norm"]),
        (OWN + "    knobs: [max_grad_norm]\n", ["row 1", "knobs"]),
    ],
    ids=[
        "no yaml",
        "no list",
        "all at once",
        "no such group",
        "a brace",
        "a pattern",
        "a key",
        "a type",
        "a knob",
        "no knobs",
    ],
)
def test_mistakes_in_a_table_are_said_at_once(cli: Run, tmp_path: Path, text: str, words: list[str]) -> None:
    """One line, status 2, nothing started."""
    place = tmp_path / "flags.yaml"
    place.write_text(text)
    status, _, err = cli("run", "--run-dir", str(tmp_path / "run"), "--flags", str(place), "--", "true")
    assert status == 2 and not (tmp_path / "run").exists()
    one_line(err, str(place), *words)


def test_a_table_that_is_not_there_is_said() -> None:
    """As every file that was given."""
    with pytest.raises(SetupError, match="--flags /no/such"):
        table("/no/such")


# -- a restart ----------------------------------------------------------------------------------------


def order(run: OutputRun, number: int, checkpoint: str, **knobs: float) -> Ack:
    """Have the supervisor restart from a checkpoint, as the agent does; its answer."""
    until(lambda: run.frames(Kind.HELLO))
    me = Hello.decode(run.frames(Kind.HELLO)[-1])
    (run.path / "directives").mkdir(mode=0o700, exist_ok=True)
    directive = Directive(
        number, me.run, "supervisor", me.incarnation, 0, f"a-{number}", time.time() + 60, procedure="restart",
        arguments={"checkpoint": checkpoint, "step": 20, "knobs": knobs},
    )  # fmt: skip
    assert (
        DirectiveFiles(RunDirectory(str(run.path))).carry_out("a", {"directive": directive.encode().decode()}) is None
    )
    until(lambda: any(a.number == number for a in run.acks()))
    return next(a for a in run.acks() if a.number == number)


def dying_first(tmp_path: Path) -> list[str]:
    """A trainer that shows its words and dies in its first two lives."""
    lives = tmp_path / "lives"
    program = "import os, sys; print(sys.argv[1:], flush=True);"
    program += f"open({str(lives)!r}, 'a').write('x'); sys.exit(7 if os.path.getsize({str(lives)!r}) < 3 else 0)"
    return python(program)


def test_a_restart_changes_the_flags_for_that_life_alone(begin: Begin, tmp_path: Path) -> None:
    """Each begins from the command that a person gave; what was changed is said and answered."""
    run = begin(*dying_first(tmp_path), "--resume_from_checkpoint", "None", "--lr", "1", mode="act")
    until(lambda: len(run.exits()) == 1)
    ack = order(run, 1, "/c/checkpoint-20")
    assert (ack.result, ack.detail["flags"]) == (Ack.APPLIED, "--resume_from_checkpoint /c/checkpoint-20 (was None)")
    until(lambda: len(run.exits()) == 2)
    assert order(run, 2, "/c/checkpoint-10").result == Ack.APPLIED
    status, out, err = run.end()
    assert status == 0 and b"with --resume_from_checkpoint /c/checkpoint-20 (was None)" in err
    assert out.decode().splitlines() == [
        f"['--resume_from_checkpoint', '{path}', '--lr', '1']"
        for path in ("None", "/c/checkpoint-20", "/c/checkpoint-10")
    ]


def test_a_turned_flag_stays_turned(begin: Begin, tmp_path: Path) -> None:
    """Told as a knob, halved by one restart, and still so in the next; said with what it was."""
    run = begin(*dying_first(tmp_path), "--resume_from_checkpoint", "None", "--max_grad_norm", "0.8", mode="act")
    until(lambda: len(run.exits()) == 1)
    (knob,) = Hello.decode(run.frames(Kind.HELLO)[-1]).knobs
    assert (knob.name, knob.value, knob.low, knob.high) == ("max_grad_norm", 0.8, 0.008, 0.8)
    ack = order(run, 1, "/c/checkpoint-20", max_grad_norm=0.4)
    assert (ack.result, ack.values) == (Ack.APPLIED, {"max_grad_norm": 0.4})
    assert str(ack.detail["flags"]).endswith(", --max_grad_norm 0.4 (was 0.8)")
    until(lambda: len(run.exits()) == 2)
    assert order(run, 2, "/c/checkpoint-10").result == Ack.APPLIED
    status, out, _ = run.end()
    assert status == 0
    assert [eval_words(line)[-1] for line in out.decode().splitlines()] == ["0.8", "0.4", "0.4"]


def eval_words(line: str) -> list[str]:
    """A list of words as Python prints it."""
    found = ast.literal_eval(line)
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("value", "why"),
    [(0.3, "too far at once"), (1.6, "outside its bounds"), (0.0, "outside its bounds")],
    ids=["by more than a half", "above what a person gave", "none at all"],
)
def test_a_flag_is_not_turned_beyond_its_bounds(begin: Begin, value: float, why: str) -> None:
    """Checked where it is done, whoever asked: the trainer is left to run."""
    words = ("--resume_from_checkpoint=x", "--max_grad_norm=0.8")
    run = begin(*python("input(); print('still', flush=True)"), *words, mode="act", stdin=-1)
    ack = order(run, 1, "/c/checkpoint-20", max_grad_norm=value)
    assert ack.result == Ack.FAILED and why in ack.reason
    out, _ = run.process.communicate(b"\n", timeout=20)
    assert (run.process.returncode, out) == (0, b"still\n")


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("trl grpo --max_grad_norm 0.8", 0.8),
        ("trl grpo --max_grad_norm=1e-1", 0.1),
        ("python -m verl.trainer.main_ppo ++actor_rollout_ref.actor.grad_clip=2", 2.0),
        ("torchrun pretrain_gpt.py --clip-grad 1.0", 1.0),
        ("trl grpo", None),
        ("trl grpo --max_grad_norm", None),
        ("trl grpo --max_grad_norm 0.8 --max_grad_norm 0.4", None),
        ("trl grpo --max_grad_norm $CLIP", None),
        ("trl grpo --max_grad_norm 0", None),
        ("trl grpo --max_grad_norm nan", None),
        ("trl grpo --max_grad_norm -1", None),
        ("python mine.py --max_grad_norm 0.8", None),
    ],
)
def test_a_flag_is_a_knob_where_it_is_known(command: str, value: float | None) -> None:
    """Borne once, as a plain number, by a command that a row knows; else it is none, and not guessed."""
    words = command.split()
    turns = Turns(words, recognise(words, table()))
    assert turns.values == ({} if value is None else {"max_grad_norm": value})
    assert [k.name for k in turns.knobs()] == list(turns.values)
    if value is None:
        assert turns.unfit({"max_grad_norm": 0.5}) != ""


@pytest.mark.parametrize(
    "words, checkpoint, why",
    [([], "/c/checkpoint-20", "--flags"), (["--resume_from_checkpoint=x"], "/c/iter_0000020", "/c/iter_0000020")],
    ids=["unknown command", "foreign checkpoint"],
)
def test_a_trainer_that_cannot_be_told_is_not_ended(begin: Begin, words: list[str], checkpoint: str, why: str) -> None:
    """Who would begin at its newest checkpoint, perhaps the sick one, is left to run; the answer says why."""
    run = begin(*python("input(); print('still', flush=True)"), *words, mode="act", stdin=-1)
    ack = order(run, 1, checkpoint)
    assert ack.result == Ack.FAILED and why in ack.reason
    out, _ = run.process.communicate(b"\n", timeout=20)
    assert (run.process.returncode, out) == (0, b"still\n")


def test_a_trainer_with_the_sdk_is_given_no_flag(begin: Begin, tmp_path: Path) -> None:
    """It reads what it should resume from by itself, whatever its command looks like."""
    (tmp_path / "run" / "records").mkdir(parents=True, mode=0o700)
    (tmp_path / "run" / "records" / "trainer-00000-0123456789.000").touch()
    lives = tmp_path / "lives"
    program = FIRST_TIME.format(str(lives)) + "print(sys.argv[1:], flush=True); sys.exit(7) if first else None"
    run = begin(*python(program), "--resume_from_checkpoint", "None", mode="act")
    until(lambda: len(run.exits()) == 1)
    assert "flags" not in order(run, 1, "/c/checkpoint-20").detail
    assert run.end()[1].splitlines() == [b"['--resume_from_checkpoint', 'None']"] * 2
