"""Corpora as people write them: every spelling is read, every mistake is told at its line, all at once."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from gyrostat_agent.backtest.case import read
from gyrostat_agent.backtest.corpus import cases, index
from gyrostat_agent.backtest.names import canonical
from gyrostat_agent.backtest.run import rows
from gyrostat_agent.errors import SetupError

Line = Callable[..., dict[str, Any]]
Write = Callable[..., Path]
Called = Callable[..., Result]


@pytest.mark.parametrize(
    ("spelled", "value"),
    [('"NaN"', math.nan), ('"nan"', math.nan), ('"-nan"', math.nan), ("NaN", math.nan), ("null", math.nan),
     ('"inf"', math.inf), ('"-Infinity"', -math.inf), ("Infinity", math.inf), ('"tensor(nan)"', math.nan),
     ('"0.5"', 0.5), ("3", 3.0), ('"1e999"', math.inf)],
)  # fmt: skip
def test_a_number_is_read_in_every_spelling(line: Line, spelled: str, value: float) -> None:
    """A NaN is what this is here for: no way of writing it may be lost or refused."""
    text = json.dumps(line()).replace("[]", f"[[7, {spelled}]]")
    case, wrong = read(text.encode(), "c", 1)
    assert case is not None and not wrong
    assert case.series[0][0] == 7 and (
        case.series[0][1] == value or (math.isnan(value) and math.isnan(case.series[0][1]))
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "this is no JSON"),
        ("[1, 2]", "this is no JSON object"),
        (b"\x80\xff\x00", "this is no text in UTF-8"),
        ("[" * 100_000, "this is no JSON"),
        ('{"id": "a"}', "`must_fire_by_step` is missing; write a whole number, or null"),
    ],
    ids=["words", "list", "binary", "deep", "bare"],
)
def test_a_line_that_is_no_case_is_told(
    called: Called, write: Write, line: Line, text: str | bytes, words: str
) -> None:
    """Exit status 2, the file and line, and what to write; nothing is replayed."""
    path = write(line(1, 2), text)
    result = called(path)
    assert result.exit_code != 0 and isinstance(result.exception, SetupError)
    assert f"{path}:2: " in str(result.exception) and words in str(result.exception)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"id": ""}, "`id`"),
        ({"healthy": "yes"}, '"yes" is neither true nor false'),
        ({"series": {"1": 2}}, "is no list"),
        ({"series": [[1, 2], [3]]}, "point 2, [3], is no pair"),
        ({"series": [["one", 2]]}, 'point 1: "one" is no step'),
        ({"series": [[1.5, 2]]}, "1.5 is no step"),
        ({"series": [[True, 2]]}, "true is no step"),
        ({"series": [[-1, 2]]}, "step -1 is negative"),
        ({"series": [[1 << 70, 2]]}, "is too large"),
        ({"series": [[1, "much"]]}, '"much" is no number'),
        ({"series": [[1, [2]]]}, "[2] is no number"),
        ({"series": [[1, 10**400]]}, "is larger than any number"),
        ({"onset_step": "three"}, '`onset_step`: "three" is no step'),
        ({"must_fire_by_step": math.nan}, "`must_fire_by_step`: NaN is no step"),
        ({"group": ["a"]}, "`group`"),
        ({"step_basis": "order", "series": [[1, 2], [3, 4], [2, 5]]}, "`series` goes from place 3 to 2"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_used_is_told(line: Line, fields: dict[str, Any], words: str) -> None:
    """Which field, what stands there, and the fix."""
    case, [wrong] = read(json.dumps(line(1) | fields).encode(), "c", 1)
    assert case is None and words in wrong and ";" in wrong


def test_all_mistakes_are_told_at_once_and_bounded(called: Called, write: Write, line: Line) -> None:
    """Of all files; a thousand are not written out."""
    path = write(line(1, healthy=1, id=[]), line(1), "{", name="a.jsonl")
    junk = write(*["x"] * 3000, name="b.jsonl")
    said = str(called(path, junk, "absent.jsonl").exception)
    assert [f"{path}:1: `id`" in said, f"{path}:1: `healthy`" in said, f"{path}:3: " in said] == [True] * 3
    assert f"{junk}:47: " in said and f"{junk}:48: " not in said and "more" in said


@pytest.mark.parametrize("what", ["folder", "missing", "fifo", "empty", "junk", "long"])
def test_what_is_no_corpus_is_answered_in_words(
    called: Called, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Its name and what it is; it neither blocks nor fills memory."""
    path = tmp_path / "given"
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "empty":
        path.write_text("\n \n")
    elif what == "junk":
        path.write_bytes(os.urandom(5000) + b"\xff\n")
    elif what == "long":
        monkeypatch.setattr("gyrostat_agent.backtest.corpus.MOST", 1000)
        path.write_text("x" * 5000)
    words = {"folder": "folder", "missing": "No such file", "fifo": "no file on a disk", "empty": "no case",
             "junk": "", "long": "longer than"}  # fmt: skip
    error = called(path).exception
    assert isinstance(error, SetupError) and str(path) in str(error) and words[what] in str(error)


def test_lines_of_one_run_are_found_wherever_they_stand(write: Write, line: Line) -> None:
    """Between other runs' lines, and apart from a run of the same name in another file."""
    one = write(line(1, group="a"), line(1, id="x"), line(2, id="F2", group="a"), name="one.jsonl")
    two = write(line(1, group="a"), name="two.jsonl")
    runs = index([str(one), str(two)])
    assert [[case.id for case in cases(run)] for run in runs] == [["F1", "F2"], ["x"], ["F1"]]


def test_two_runs_of_one_name_are_no_run(called: Called, write: Write, line: Line) -> None:
    """Without a group a line is a run of its own: the second of that name would be fed into the first."""
    assert "stands at line 1 already" in str(called(write(line(1), line(2))).exception)


def test_a_file_that_changes_under_the_replay_is_told(write: Write, line: Line) -> None:
    """It is never judged by half of one version and half of another."""
    path = write(line(1), line(2, id="F2"))
    [_, second] = index([str(path)])
    write(line(1, id="longer than before"), line(2, id="F2"))
    with pytest.raises(SetupError, match="was changed while it was read"):
        cases(second)


def made(*lines: dict[str, Any]) -> list[tuple[int, int, dict[str, float]]]:
    """The rows that lines of one run become."""
    found = [read(json.dumps(one).encode(), "c", 1)[0] for one in lines]
    return list(rows([case for case in found if case is not None]))


def test_lines_of_a_run_become_rows_in_order(line: Line) -> None:
    """Step by step, under canonical names; a step back is a resumed run, not a mistake."""
    told = made(line() | {"series": [[2, 1], [4, 2], [3, 9]]}, line(id="b", signal="lr") | {"series": [[3, 5], [4, 6]]})
    assert told == [
        (0, 2, {"loss": 1}), (0, 3, {"learning_rate": 5}), (0, 4, {"loss": 2, "learning_rate": 6}), (1, 3, {"loss": 9}),
    ]  # fmt: skip


def test_a_value_that_is_told_twice_is_not_made_good(line: Line) -> None:
    """The first counts, or the one that is not finite."""
    [(_, _, first)] = made(line() | {"series": [[1, 2], [1, 3]]})
    [(_, _, sick)] = made(line() | {"series": [[1, 2]]}, line(id="b") | {"series": [[1, "NaN"]]})
    assert first == {"loss": 2} and math.isnan(sick["loss"])


def test_a_critics_gradient_does_not_hide_the_policys(line: Line) -> None:
    """A canonical name is given once; the other series keeps its own."""
    critic, policy = line(7, signal="pg_loss"), line(1, id="b")
    assert made(critic, policy) == [(0, 1, {"pg_loss": 7, "loss": 1})]


@pytest.mark.parametrize(
    ("signal", "trainer", "name"),
    [
        ("grad_norm", "trl", "grad_norm"),
        ("lm_loss", "megatron", "loss"),
        ("critic_grad_norm", "verl", "critic_grad_norm"),
        ("train_rollout_logprob_abs_diff", "slime", "mismatch_diff"),
        ("truncated_ratio", "skyrl", "truncated_fraction"),
        ("load_balancing_loss", "", "balance_loss"),
        ("val_acc", "verl", "val_acc"),
        ("reward_component_accuracy", "trl", "reward_component_accuracy"),
        ("residual_gib", "nemo-rl", "residual_gib"),
        ("loss_scale", "deepspeed", "loss_scale"),
        ("step", "nemo", "step"),
    ],
)
def test_signals_are_called_as_in_the_trainers_log(signal: str, trainer: str, name: str) -> None:
    """So that a rule sees in a corpus what it would see beside the trainer."""
    assert canonical(signal, trainer) == name


@pytest.mark.parametrize(("trainer", "hidden"), [("hf_trainer", True), ("trl", True), ("verl", False)])
def test_a_nan_that_the_trainer_prints_as_0_is_one(line: Line, trainer: str, hidden: bool) -> None:
    """As in the logs of that trainer, and of no other."""
    told = made(line(3.5, 0.0, trainer=trainer))
    assert math.isnan(told[1][2]["loss"]) is hidden
