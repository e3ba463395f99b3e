"""prime-rl: trainer and orchestrator on the console, JSON lines that leave out what is not finite."""

import json
from typing import Any

import pytest
from rl_log_runs import NAN, records, said, segments, survives, told

from gyrostat_agent.sources.logs.formats.prime_rl import PRIME_RL
from gyrostat_agent.sources.logs.said import RESUMED, SAVED, TRAIN, Note, Told

COLOURED = "\x1b[2m03:04:05\x1b[0m \x1b[1mSUCCESS\x1b[0m "
TRAINER = COLOURED + (
    "Step 12 |  31.20s | Loss 0.0021 | Entropy 0.4127 | Mismatch KL 0.0011 | Grad. Norm 0.1873 | LR 1.00e-06 | "
    "Throughput 15300 tokens/s | MFU 21.4% | Peak Mem. 61.2 GiB | Max Vio 0.4100 | Routing Conf. 0.8100"
)
ORCHESTRATOR = (
    "03:04:05 SUCCESS Step 12 |  31.20s | Reward 0.4414 | Trainable 60/64 (93.8%) | Turns 1.0 | Branches 1.0 | "
    "Max Off-Policy 1 | Error 0.0% | Cancelled 0.0% | Truncation 3.1%"
)
DROPPED = "03:04:05 WARNING Dropping 2 non-finite value(s) from /out/metrics.jsonl: loss/mean, optim/grad_norm"
OLD = "03:04:05 SUCCESS Step 12 | Time: 5.13s | Loss: 12.25 | Grad. Norm: 0.5 | LR: 1.00e-06 |"
ROW = '{"step": 12, "time": 1767323045.5, "loss/mean": 0.0021, "entropy/all/mean": 0.41, "mismatch_kl/all/mean": 0.001}'
EMPTY = "03:04:05 WARNING Step 12: empty train batch after filtering (consecutive empty batches: 1/3)"


def step(number: int, *fields: str) -> str:
    """A step's line with these fields."""
    return f"03:04:05 SUCCESS Step {number} |  31.20s | " + " | ".join(fields)


FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    "loss": ("Loss 0.5", {"Loss": 0.5}),
    "negative": ("Loss -0.0123", {"Loss": -0.0123}),
    "nan": ("Loss nan", {"Loss": NAN}),
    "inf": ("Loss inf", {"Loss": float("inf")}),
    "minus inf": ("Loss -inf", {"Loss": float("-inf")}),
    "dotted name": ("Grad. Norm 0.1873", {"Grad. Norm": 0.1873}),
    "dotted name, nan": ("Grad. Norm nan", {"Grad. Norm": NAN}),
    "two words, nan": ("Mismatch KL nan", {"Mismatch KL": NAN}),
    "exponent": ("LR 1.00e-06", {"LR": 1e-6}),
    "unit": ("Throughput 15300 tokens/s", {"Throughput": 15300.0}),
    "percent": ("MFU 21.4%", {"MFU": 0.214}),
    "bytes": ("Peak Mem. 61.2 GiB", {"Peak Mem.": 61.2}),
    "of a capacity": ("Peak Mem. 61.2/79.1 GiB (77.4%)", {"Peak Mem.": 61.2}),
    "share": ("Trainable 48/64 (75.0%)", {"Trainable": 0.75}),
    "share of none": ("Trainable 0/0 (0.0%)", {"Trainable": 0.0}),
    "share, old": ("Trainable: 48/64", {"Trainable": 0.75}),
    "hyphen": ("Max Off-Policy 3", {"Max Off-Policy": 3.0}),
    "old colon": ("Loss: 12.25", {"Loss": 12.25}),
    "old dotted colon": ("Grad. Norm: 0.5", {"Grad. Norm": 0.5}),
    "old length": ("Seq. Length: 811.2 tokens/sample", {"Seq. Length": 811.2}),
    "thousands": ("Throughput 15,300 tokens/s", {"Throughput": 15300.0}),
    "no number": ("Loss n/a | Reward 0.5", {"Reward": 0.5}),
    "no name": ("0.5 | Reward 0.5", {"Reward": 0.5}),
}


@pytest.mark.parametrize(("text", "values"), FIELDS.values(), ids=FIELDS.keys())
def test_every_field_is_read(text: str, values: dict[str, Any]) -> None:
    """A name of several words, dots or hyphens, with or without a colon, and a number with its unit."""
    assert told(PRIME_RL, step(7, text)) == [(7, TRAIN, {**values, "Time": 31.2})]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("31.20s", 31.2), ("1m 31s", 91.0), ("1h 2m 3s", 3723.0), ("2.5m", 150.0), ("850ms", 0.85), ("  5s", 5.0)],
)
def test_how_long_a_step_took(text: str, seconds: float) -> None:
    """The time stands first and bears no name; it may be minutes."""
    [(_, _, values)] = told(PRIME_RL, f"03:04:05 SUCCESS Step 3 | {text} | Loss 0.5")
    assert values["Time"] == pytest.approx(seconds)


def test_trainer_and_orchestrator_are_one_step() -> None:
    """What both say of a step is one record under canonical names, whichever comes first."""
    for log in (f"{TRAINER}\n{ORCHESTRATOR}\n", f"{ORCHESTRATOR}\n{TRAINER}\n"):
        [(number, values)] = records(PRIME_RL, log)
        assert number == 12
        assert values.pop("truncated_fraction") == pytest.approx(0.031)
        assert values == {
            "loss": 0.0021, "entropy": 0.4127, "mismatch_kl": 0.0011, "grad_norm": 0.1873, "learning_rate": 1e-6,
            "throughput": 15300.0, "MFU": 0.214, "Peak Mem.": 61.2, "expert_violation": 0.41, "Routing Conf.": 0.81,
            "step_time": 31.2, "reward": 0.4414, "Trainable": 0.9375, "Turns": 1.0, "Branches": 1.0,
            "Max Off-Policy": 1.0, "Error": 0.0, "Cancelled": 0.0,
        }  # fmt: skip


def test_an_orchestrator_ahead_waits() -> None:
    """It draws steps before they are trained on: nothing goes backwards, each reward is that of its own step."""
    log: list[str] = []
    for number in range(12):
        log.append(step(number, f"Reward {number / 100}"))
        if number >= 2:
            log.append(step(number - 2, "Loss 0.5"))
    both = records(PRIME_RL, "\n".join(log))
    assert [(n, v["reward"]) for n, v in both] == [(n, n / 100) for n in range(12)]
    assert {segment for segment, _ in segments(PRIME_RL, "\n".join(log))} == {0}


def test_an_orchestrators_own_log() -> None:
    """Where no trainer writes, its rows are steps by themselves, and all are there."""
    log = "\n".join(step(number, "Reward 0.5", "Truncation 3.0%") for number in range(30))
    assert [n for n, _ in records(PRIME_RL, log)] == list(range(30))
    assert [n for n, _ in records(PRIME_RL, "\n".join(log.splitlines()[:3]))] == [0, 1, 2]


def test_lines_of_one_environment_are_not_the_runs() -> None:
    """The orchestrator's continuation lines are a part of the reward, and are not taken for it."""
    lines = [ORCHESTRATOR, "  ╰─ math | Reward 0.9 | Turns 1.0", TRAINER]
    assert records(PRIME_RL, "\n".join(lines))[0][1]["reward"] == 0.4414


def test_the_dropped_are_nan() -> None:
    """A value that the writer left out because it was not finite is told as what it was, at its step."""
    [(number, values)] = records(PRIME_RL, f"{TRAINER}\n{DROPPED}\n")
    assert (number, values["loss"], values["grad_norm"]) == (12, NAN, NAN)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("WARNING Dropping 1 non-finite value(s) from /out/metrics.jsonl: loss/mean", {"loss/mean"}),
        ("WARNING Dropping 1 non-finite value(s) from metrics.jsonl: loss/mean", {"loss/mean"}),
        (
            "WARNING Dropping 2 non-finite value(s) from Prime monitor metrics payload: metrics.loss/mean, values[1]",
            {"loss/mean"},
        ),
        ("WARNING Dropping 7 non-finite value(s) from m.jsonl: a/b, c, d, e, f ...", {"a/b", "c", "d", "e"}),
        ("WARNING Dropping 1 non-finite value(s) from m.jsonl: values[0]", set()),
        ("WARNING Dropping 1 non-finite value(s) from m.jsonl", set()),
    ],
    ids=["file", "bare", "monitor", "shortened", "an item", "cut"],
)
def test_the_names_of_the_dropped(line: str, names: set[str]) -> None:
    """Names are read from every writer's warning; items of lists are no series."""
    assert {name for _, _, values in told(PRIME_RL, line) for name in values} == names


def test_json_rows_of_one_step_are_merged() -> None:
    """Several rows with different names are one step; the time is read, rows of the wall clock are none."""
    optim = '{"step": 12, "time": 1767323046.0, "optim/lr": 1e-6, "optim/grad_norm": 0.2}'
    clock = '{"step": null, "time": 1767323046.5, "inference/running": 3}'
    [(number, values)] = records(PRIME_RL, f"{ROW}\n{optim}\n{clock}\n")
    assert (number, values) == (
        12, {"loss": 0.0021, "entropy": 0.41, "mismatch_kl": 0.001, "learning_rate": 1e-6, "grad_norm": 0.2},
    )  # fmt: skip
    [row] = said(PRIME_RL, ROW)
    assert isinstance(row, Told) and row.at == 1767323045.5


def test_what_is_gone_from_json_is_nan() -> None:
    """A gradient norm that is missing beside the learning rate was not finite; one never told is not missed."""
    rows = [
        {"step": 1, "time": 1.0, "optim/lr": 1e-6, "optim/grad_norm": 0.2},
        {"step": 1, "time": 1.1, "loss/mean": 0.3, "entropy/all/mean": 0.4},
        {"step": 2, "time": 2.0, "optim/lr": 1e-6},
        {"step": 2, "time": 2.1, "entropy/all/mean": 0.4},
        {"step": 2, "time": 2.2, "perf/mfu": 0.2},
    ]
    log = "\n".join(json.dumps(row) for row in rows)
    assert records(PRIME_RL, log)[1] == (
        2, {"learning_rate": 1e-6, "grad_norm": NAN, "entropy": 0.4, "loss": NAN, "perf/mfu": 0.2},
    )  # fmt: skip
    assert all(NAN not in values.values() for _, values in records(PRIME_RL, "\n".join(log.splitlines()[2:])))


def test_a_producer_in_json_waits_as_on_the_console() -> None:
    """Where both processes write into one file, the orchestrator's rows go with the trainer's."""
    rows = [{"step": n, "time": 1.0, "producer": "orchestrator", "reward/all/mean": n / 10} for n in range(3)]
    rows.append({"step": 0, "time": 2.0, "producer": "trainer", "loss/mean": 0.5})
    log = "\n".join(json.dumps(row) for row in rows)
    assert [n for n, _ in records(PRIME_RL, log)] == [0, 1, 2]
    assert {segment for segment, _ in segments(PRIME_RL, log)} == {0}


def test_the_step_of_the_old_form() -> None:
    """Older releases wrote colons and named the time."""
    assert records(PRIME_RL, OLD)[0] == (
        12,
        {"step_time": 5.13, "loss": 12.25, "grad_norm": 0.5, "learning_rate": 1e-6},
    )


def test_two_processes_in_one_line() -> None:
    """Where two wrote into one another, both are read, the torn value is not."""
    torn = step(3, "Loss 0.5", "Entropy 0.41") + step(4, "Loss 0.6")
    assert [(n, v) for n, v in records(PRIME_RL, torn)] == [
        (3, {"loss": 0.5, "step_time": 31.2}), (4, {"loss": 0.6, "step_time": 31.2}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("03:04:05 INFO Saving checkpoint at step 40", Note(SAVED, 40)),
        ("03:04:05 INFO Saving weight checkpoint at step 40", Note(SAVED, 40)),
        ("03:04:05 INFO Resuming training from checkpoint step 40", Note(RESUMED, 40)),
    ],
    ids=["saved", "weights", "resumed"],
)
def test_checkpoints_are_noted(line: str, note: Note) -> None:
    """Saving and resuming are said, and are no fault."""
    assert said(PRIME_RL, line) == [note]


def test_an_empty_batch_is_told() -> None:
    """Nothing was left to train on: a number that a rule can be written on."""
    assert told(PRIME_RL, EMPTY) == [(12, TRAIN, {"consecutive_empty_batches": 1.0})]


@pytest.mark.parametrize(
    "line",
    ["", "Step", "Step 12", "Step 12 |", "DEBUG Micro Step 3/8 | Loss: 0.1 | Entropy: 0.4", "INFO Starting step 12",
     '{"step": 12}', '{"step": true, "loss/mean": 1}', '{"step": 12, "loss/mean": "x"}', '{"step": 12, "los', "[1]",
     '{"step": -3, "loss/mean": 0.1}'],
)  # fmt: skip
def test_other_lines_say_nothing(line: str) -> None:
    """Micro steps are no steps; half a JSON row is none."""
    assert said(PRIME_RL, line) == []


def test_it_is_recognised() -> None:
    """Its lines give it away; those of others do not."""
    plain = TRAINER.replace("\x1b[2m", "").replace("\x1b[0m", "").replace("\x1b[1m", "")
    assert [PRIME_RL.sign(line) for line in (plain, ORCHESTRATOR, OLD, ROW)] == [3, 3, 3, 3]
    others = ("Step 12 | loss:1.2 lr:1e-5", "step:1 - a:2", '{"step":12,"data":{"a":1}}', "{'loss': 1}")
    assert [PRIME_RL.sign(line) for line in others] == [0, 0, 0, 0]


def test_nothing_in_a_line_raises() -> None:
    """Cut, damaged and mixed lines cost their line; so does a number of four hundred digits."""
    huge = '{"step": 12, "time": 1, "loss/mean": ' + "9" * 400 + "}"
    lines = (TRAINER, ORCHESTRATOR, DROPPED, OLD, ROW, EMPTY, huge, *(step(7, text) for text, _ in FIELDS.values()))
    survives(PRIME_RL, lines)
