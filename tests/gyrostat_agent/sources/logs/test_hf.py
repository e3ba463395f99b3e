"""The console of Hugging Face's Trainer and TRL: numbers, steps off the bars, hidden NaNs, checkpoints."""

import math
import random
from pathlib import Path

import pytest

from gyrostat.wire import Record
from gyrostat_agent.sources.logs.formats.hf import HF, HfReader
from gyrostat_agent.sources.logs.gathered import Gathered
from gyrostat_agent.sources.logs.lines import Line, Lines
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, TRAIN, Fault, Note, Said, Told

DATA = Path(__file__).parent / "data"
NAN = math.nan
STRINGS = (
    "{'loss': '0.0132', 'grad_norm': '0.214', 'learning_rate': '9.91e-07', 'num_tokens': '4.1e+05', "
    "'completions/mean_length': '211.4', 'completions/clipped_ratio': '0.125', 'rewards/acc/mean': '0.34', "
    "'rewards/acc/std': '0.41', 'reward': '0.34', 'reward_std': '0.29', 'frac_reward_zero_std': '0.25', "
    "'kl': '0.0031', 'entropy': '0.52', 'clip_ratio/high_mean': '0.0012', 'step_time': '8.9', 'epoch': '0.04'}"
)
FLOATS = (
    "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-06, 'reward': 0.0, 'reward_std': 0.0, "
    "'frac_reward_zero_std': 1.0, 'completion_length': 128.0, 'kl': nan, 'epoch': 0.01}"
)
CLOSING = (
    "{'train_runtime': '9000', 'train_samples_per_second': '0.2', 'train_steps_per_second': '0.05', "
    "'train_loss': '0.031', 'epoch': '1'}"
)
EVALUATED = "{'eval_loss': '1.204', 'eval_runtime': '12.1', 'epoch': '0.5'}"
ROW = "{{'loss': {0}, 'grad_norm': 1.5, 'epoch': 0.1}}"


def bar(done: int, total: int = 405, pace: str = "01:00<39:00,  8.90s/it") -> str:
    """A progress bar as tqdm draws it."""
    return f" {100 * done // total:2}%|█▎        | {done}/{total} [{pace}]"


def said(*lines: str) -> list[Said]:
    """All that a log of these lines says."""
    reader, text = HfReader(), Lines()
    found = [*text.feed("\n".join(lines).encode()), *text.end()]
    return [*(one for line in found for one in reader.read(line)), *reader.end()]


def told(*lines: str) -> list[Told]:
    """The rows alone."""
    return [one for one in said(*lines) if isinstance(one, Told)]


def same(found: float, expected: float) -> bool:
    return found == expected or (math.isnan(found) and math.isnan(expected))


ROWS = [
    ("strings-of-5", STRINGS, {"loss": 0.0132, "grad_norm": 0.214, "learning_rate": 9.91e-07, "num_tokens": 410000.0}),
    ("slashes", STRINGS, {"completions/mean_length": 211.4, "rewards/acc/mean": 0.34, "clip_ratio/high_mean": 0.0012}),
    ("last-pair", STRINGS, {"epoch": 0.04, "step_time": 8.9}),
    ("floats-of-4", FLOATS, {"grad_norm": NAN, "kl": NAN, "learning_rate": 1e-06, "completion_length": 128.0}),
    ("hidden-beside-a-sick-gradient", FLOATS, {"loss": NAN}),
    ("quoted-nan", "{'loss': 'nan', 'grad_norm': '0', 'epoch': '0.1'}", {"loss": NAN, "grad_norm": 0.0}),
    ("inf", "{'loss': 1.0, 'grad_norm': inf, 'epoch': 0.1}", {"grad_norm": math.inf}),
    ("minus-inf", "{'loss': '-inf', 'epoch': '0.1'}", {"loss": -math.inf}),
    ("upper-nan", "{'loss': NaN, 'epoch': 0.1}", {"loss": NAN}),
    ("none", "{'loss': 0.5, 'kl': None, 'epoch': 0.1}", {"loss": 0.5, "kl": NAN}),
    ("numpy", "{'loss': np.float64(nan), 'grad_norm': np.float32(0.5), 'epoch': 0.1}", {"loss": NAN, "grad_norm": 0.5}),
    ("tensor", "{'loss': tensor(nan, device='cuda:0'), 'grad_norm': 2.0, 'epoch': 0.1}", {"loss": NAN, "grad_norm": 2}),
    ("negative", "{'loss': '-0.1256', 'epoch': '0.3125'}", {"loss": -0.1256}),
    ("exponent", "{'loss': '1.5e-05', 'epoch': '3e+00'}", {"loss": 1.5e-05, "epoch": 3.0}),
    ("cut-in-a-value", "{'loss': '0.5', 'grad_norm': '0.2", {"loss": 0.5}),
    ("cut-in-a-bare-value", "{'loss': 0.5, 'grad_norm': 0.2", {"loss": 0.5}),
    ("cut-in-a-name", "{'loss': '0.5', 'grad_n", {"loss": 0.5}),
    ("beginning-cut-off", "_norm': '0.2', 'kl': nan, 'epoch': '0.1'}", {"kl": NAN, "epoch": 0.1}),
    ("text-among-numbers", "{'loss': 0.5, 'note': 'a, b', 'kl': 0.1, 'epoch': 0.1}", {"loss": 0.5, "kl": 0.1}),
    ("ray-prefix", f"(main pid=4711, ip=10.0.0.1) {ROW.format(0.25)}", {"loss": 0.25}),
    ("torchrun-prefix", f"[rank0]: {ROW.format(0.25)}", {"loss": 0.25}),
    ("colours", f"\x1b[32m{ROW.format(0.25)}\x1b[0m", {"loss": 0.25}),
    ("logger-prefix", f"2026-01-02 03:04:05 INFO {ROW.format(0.25)}", {"loss": 0.25}),
    ("blanks-that-cleared-a-bar", f"{' ' * 46}{ROW.format(0.25)}", {"loss": 0.25}),
    ("behind-a-bar", bar(10) + ROW.format(0.25), {"loss": 0.25}),
    ("evaluation", EVALUATED, {"eval_loss": 1.204}),
    ("preference", "{'loss': 0.69, 'rewards/chosen': 1, 'rewards/margins': nan, 'epoch': 1}", {"rewards/margins": NAN}),
    ("mixture-of-experts", "{'loss': '0.06', 'aux_loss': '2.008', 'epoch': '0.03'}", {"aux_loss": 2.008}),
    ("no-loss", "{'grad_norm': nan, 'reward': 0.5, 'epoch': 0.1}", {"grad_norm": NAN, "reward": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_row_is_read(line: str, expected: dict[str, float]) -> None:
    """Every spelling of a number, and what is whole of a row that is not."""
    [row] = told(line)
    assert all(same(row.values[name], value) for name, value in expected.items()), row.values


NOT_ROWS = {
    "closing": CLOSING,
    "output": "TrainOutput(global_step=10, training_loss=0.02, metrics={'train_runtime': 1.3, 'train_loss': 0.02})",
    "settings": "{'learning_rate': 1e-06, 'num_beams': 4, 'use_cache': True}",
    "words": "it's {'a': 'b'} and 'c': d",
    "another-trainer": "Global step 41: {'policy_loss': nan, 'actor_grad_norm': nan, 'reward': 0.0}",
    "empty": "LOAD {}",
    "json": 'ON_LOG {"step": 1, "loss": 0.07, "epoch": 0.03}',
}


@pytest.mark.parametrize("line", NOT_ROWS.values(), ids=NOT_ROWS)
def test_what_is_no_row(line: str) -> None:
    """The closing row is no step, and a dict of settings no metrics."""
    assert said(line) == []


@pytest.mark.parametrize(
    ("lines", "steps"),
    [
        ((bar(10) + ROW.format(1),), [10]),
        ((bar(10) + "\r" + " " * 40 + "\r" + ROW.format(1), bar(10)), [10]),
        ((bar(9, 40, "00:00<00:01,  8.61it/s"), ROW.format(1), bar(10, 40, "00:00<00:01,  8.87it/s")), [10]),
        ((bar(10), ROW.format(1), bar(20), ROW.format(2)), [10, 20]),
        ((ROW.format(1), ROW.format(2)), [None, None]),
        ((bar(1), ROW.format(1), bar(1), bar(2), ROW.format(2), bar(2)), [1, 2]),
        ((bar(11), ROW.format(1), ROW.format(2), ROW.format(3), "", bar(12)), [4, 8, 12]),
        ((bar(0, 405), "Map: 100%|██| 9000/9000 [00:01<00:00, 9it/s]", bar(5), ROW.format(1), bar(5)), [5]),
        ((bar(10), ROW.format(1), bar(10), bar(7, 7), bar(20), ROW.format(2), bar(20)), [10, 20]),
        ((bar(200), ROW.format(1), bar(200), bar(100), ROW.format(2), bar(100)), [200, 100]),
    ],
    ids=["behind", "around", "stale-bar", "no-redraw", "no-bars", "every-step", "burst", "titled-bar",
         "evaluation-bar", "resumed"],
)  # fmt: skip
def test_the_step_is_read_off_the_bars(lines: tuple[str, ...], steps: list[int | None]) -> None:
    """A row tells no step: the bar drawn right after it does, or the one before it where steps are slow."""
    assert [row.step for row in told(*lines)] == steps


def test_what_comes_between_a_row_and_its_bar() -> None:
    """Output of others is not taken for the bar, and is left to those who know errors."""
    reader = HfReader()
    said_ = [[*reader.read(Line(text))] for text in (bar(10), ROW.format(1), "CUDA out of memory", bar(10))]
    assert [len(one) for one in said_] == [0, 0, 0, 1]


def test_rows_in_bursts_keep_their_stride() -> None:
    """Output that was buffered comes late and several rows at once: they stay in order and as far apart as before."""
    lines = [bar(10), ROW.format(1), bar(10), bar(20), ROW.format(2), bar(20), bar(55)]
    assert [r.step for r in told(*lines, ROW.format(3), ROW.format(4), ROW.format(5), bar(56))] == [10, 20, 30, 40, 50]


def test_an_evaluation_is_of_the_step_it_comes_at() -> None:
    """Its own bar counts batches, no steps."""
    rows = told(bar(10), ROW.format(1), bar(10), bar(15), bar(5, 5), EVALUATED, bar(15))
    assert [(row.step, row.phase) for row in rows] == [(10, TRAIN), (15, EVAL)]


def test_a_row_cut_in_two_is_one() -> None:
    """A full buffer is written amid a row, and a bar comes between: the NaN in the second half is not lost."""
    rows = told(bar(10), "{'loss': '0.5', 'grad_n", bar(10), "orm': '0.2', 'kl': 'nan', 'epoch': '0.1'}", bar(11))
    assert [row.step for row in rows] == [10, 10]
    assert math.isnan(rows[1].values["kl"])


def test_two_rows_in_a_line() -> None:
    """Two processes wrote at once: one step, and what is not finite in either stays."""
    [row] = told("{'loss': 1.0, 'grad_n" + "{'loss': nan, 'grad_norm': 2.0, 'epoch': 0.1}")
    assert math.isnan(row.values["loss"]) and row.values["grad_norm"] == 2.0


def test_only_a_closing_row() -> None:
    """A run that logged no step: the NaN of its closing row is all that there is, and is told."""
    [row] = told("{'train_runtime': '9000', 'train_loss': 'nan', 'epoch': '1'}")
    assert math.isnan(row.values["train_loss"])
    assert len(told(ROW.format(1), "{'train_runtime': '9000', 'train_loss': 'nan', 'epoch': '1'}")) == 1


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("Saving model checkpoint to out/checkpoint-200", Note(SAVED, 200)),
        (
            "[INFO|trainer.py:3993] 2026-01-02 03:04:05,678 >> Saving model checkpoint to /o/checkpoint-7",
            Note(SAVED, 7),
        ),
        (bar(200) + "Saving model checkpoint to out/checkpoint-200", Note(SAVED, 200)),
        ("Saving model checkpoint to out", Note(SAVED, -1)),
        ("Resuming training from checkpoint with epoch 0 and global step 200", Note(RESUMED, 200)),
        ("  Continuing training from global step 200", Note(RESUMED, 200)),
    ],
    ids=["saved", "logger", "behind-a-bar", "last", "resumed-5", "resumed-4"],
)
def test_checkpoints(line: str, note: Note) -> None:
    """Saved and resumed, at which step."""
    assert said(line) == [note]


def test_a_policy_from_which_nothing_can_be_drawn() -> None:
    """Dead weights show in no row: the line that ends the run says it, of the step it ends at."""
    error = "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"
    *_, parameters, fault = said(bar(3), ROW.format(1), bar(3) + "Traceback (most recent call last):", error)
    assert isinstance(fault, Fault) and fault.kind == "nan"
    assert parameters == Told({"params_finite": 0.0}, 3)
    assert [type(one) for one in said(error)] == [Fault]  # nothing was trained yet: the weights may be well


@pytest.mark.parametrize(
    ("name", "steps", "sick"),
    [
        ("nan-weights", 3, {3: "params_finite"}),
        ("nan-loss-filter", 8, {4: "loss", 5: "loss"}),
        ("nan-loss-nofilter", 8, {4: "loss", 5: "loss", 6: "loss", 7: "loss", 8: "loss"}),
        ("llama", 10, {}),
        ("mixtral", 10, {}),
        ("qwen3_moe", 10, {}),
        ("deepseek_v3", 10, {}),
    ],
)
def test_true_output(name: str, steps: int, sick: dict[int, str]) -> None:
    """Of true runs each step is told, the sick ones as such, and nothing of the healthy ones is called sick."""
    text, reader, gathered = Lines(), HfReader(), Gathered(Names(HF.aliases), "life")
    found = []
    for line in [*text.feed((DATA / f"trl-grpo-{name}.log").read_bytes()), *text.end()]:
        found += gathered.take(reader.read(line))
    found += [*gathered.take(reader.end()), *gathered.flush()]
    records = [one for one in found if isinstance(one, Record)]
    assert [one.step for one in records] == list(range(1, steps + 1))
    shown = {r.step: n for r in records for n, v in r.values.items() if not math.isfinite(v) or n == "params_finite"}
    assert shown == sick
    assert {"loss", "grad_norm", "reward", "entropy", "kl", "response_length"} <= records[0].values.keys()


EXAMPLES = [*(row[1] for row in ROWS), *NOT_ROWS.values(), bar(10), "Saving model checkpoint to out/checkpoint-200"]


@pytest.mark.parametrize("line", EXAMPLES)
def test_half_a_line(line: str) -> None:
    """A trainer that is killed amid a line raises nothing here."""
    for end in range(len(line)):
        said(bar(3), line[:end], bar(4))
        said(line[end:])


def test_broken_lines() -> None:
    """Bytes that are not what they were raise nothing."""
    random_ = random.Random(7)
    for _ in range(3000):
        line = bytearray(random_.choice(EXAMPLES).encode())
        for _ in range(random_.randint(1, 6)):
            line[random_.randrange(len(line))] = random_.randrange(256)
        said(line.decode("utf-8", "replace"), bar(3), ROW.format(1))


@pytest.mark.parametrize(
    "piece", ["{'", "'a': ", "'loss': 1", "1%|", "1%|| 1/1 [", "Resuming training from checkpoint ", "'epoch': 1,"]
)
def test_a_hostile_line_costs_no_more_than_its_length(piece: str) -> None:
    """A long line of what a row begins with is read as fast as any."""
    line = piece * (200_000 // len(piece))
    assert len(said(line)) <= 66


@pytest.mark.parametrize(
    ("line", "sure"),
    [
        (STRINGS, 3),
        (FLOATS, 3),
        (CLOSING, 3),
        ("{'loss': 0.5, 'grad_no", 1),
        ("Global step 41: {'policy_loss': nan, 'reward': 0.0}", 0),
        ("{'loss': 0.5, 'epoch': 0.1, 'global_step/max_steps': '7/900'}", 0),
        (bar(10), 0),
        ('{"loss": 0.5, "epoch": 0.1}', 0),
    ],
)
def test_how_sure_a_line_makes(line: str, sure: int) -> None:
    """Rows are the Trainer's own; those of trainers built on it are theirs."""
    assert HF.sign(line) == sure
