"""Lightning: metrics.csv and the numbers of its bars."""

import math
import random
from pathlib import Path

import pytest

from gyrostat_agent.sources.logs.formats.lightning import LIGHTNING, LightningReader
from gyrostat_agent.sources.logs.lines import Lines
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Said, Told

DATA = Path(__file__).parent / "data"
NAN = math.nan
HEADER = "epoch,lr-Adam,step,train_loss,val_loss"
RICH = "Epoch 0/-2 ━━━━━━━━━━━━━━━━━ 10/10 0:00:00 • 0:00:00 96.36it/s v_num: 0 loss:   "
TQDM = "Epoch 3:  40%|████      | 40/100 [00:04<00:06,  9.50it/s, v_num=0, loss=0.123, train_loss_step=0.5]"


def said(*lines: str) -> list[Said]:
    """All that a log of these lines says."""
    reader, text = LightningReader(), Lines()
    found = [*text.feed("\n".join(lines).encode()), *text.end()]
    return [*(one for line in found for one in reader.read(line)), *reader.end()]


ROWS: dict[str, tuple[str, int | None, str, dict[str, float]]] = {
    "full": ("1,1e-3,40,0.5,0.6", 40, TRAIN, {"epoch": 1.0, "lr-Adam": 1e-3, "train_loss": 0.5, "val_loss": 0.6}),
    "empty-cells": ("1,,40,0.5,", 40, TRAIN, {"epoch": 1.0, "train_loss": 0.5}),
    "only-a-rate": (",1e-3,40,,", 40, TRAIN, {"lr-Adam": 1e-3}),
    "evaluation": ("1,,40,,0.6", 40, EVAL, {"epoch": 1.0, "val_loss": 0.6}),
    "nan": ("1,,40,nan,", 40, TRAIN, {"epoch": 1.0, "train_loss": NAN}),
    "capital-nan": ("1,,40,NaN,", 40, TRAIN, {"epoch": 1.0, "train_loss": NAN}),
    "inf": ("1,,40,inf,", 40, TRAIN, {"epoch": 1.0, "train_loss": math.inf}),
    "minus-inf": ("1,,40,-inf,", 40, TRAIN, {"epoch": 1.0, "train_loss": -math.inf}),
    "negative": ("1,,40,-0.25,", 40, TRAIN, {"epoch": 1.0, "train_loss": -0.25}),
    "exponent": ("1,,40,2.5e-08,", 40, TRAIN, {"epoch": 1.0, "train_loss": 2.5e-08}),
    "integer": ("1,,40,2,", 40, TRAIN, {"epoch": 1.0, "train_loss": 2.0}),
    "quoted": ('1,,40,"0.5",', 40, TRAIN, {"epoch": 1.0, "train_loss": 0.5}),
    "tensor": ('1,,40,"tensor(nan)",', 40, TRAIN, {"epoch": 1.0, "train_loss": NAN}),
    "step-0": ("0,,0,0.5,", 0, TRAIN, {"epoch": 0.0, "train_loss": 0.5}),
    "no-step": ("0,,,0.5,", None, TRAIN, {"epoch": 0.0, "train_loss": 0.5}),
    "cut": ("1,,40,0.5", 40, TRAIN, {"epoch": 1.0, "train_loss": 0.5}),
    "carriage-return": ("1,,40,0.5,\r", 40, TRAIN, {"epoch": 1.0, "train_loss": 0.5}),
    "text": ("1,abc,40,0.5,", 40, TRAIN, {"epoch": 1.0, "train_loss": 0.5}),
    "blanks": ("1, ,40, 0.5,", 40, TRAIN, {"epoch": 1.0, "train_loss": 0.5}),
}


@pytest.mark.parametrize(("line", "step", "phase", "expected"), ROWS.values(), ids=ROWS)
def test_a_row_is_read(line: str, step: int | None, phase: str, expected: dict[str, float]) -> None:
    """The cells that are filled, under their columns' names."""
    [row] = said(HEADER, line)
    assert isinstance(row, Told) and (row.step, row.phase) == (step, phase)
    assert str(dict(row.values)) == str(expected)


@pytest.mark.parametrize(
    "lines",
    [
        ["1,2,3"], [HEADER], [HEADER, "1,,40,,"], [HEADER, ",,,,"], [HEADER, "1,2,3,4,5,6"], [HEADER, "40"],
        ["GPU available: False, used: False"], ["TPU available: False, using: 0 TPU cores"],
        [HEADER, "a, b", "Total FLOPs: 0"], ["Epoch 1 begins, step 3"], [""],
    ],
)  # fmt: skip
def test_what_is_no_row(lines: list[str]) -> None:
    """A header alone, rows of another table, and what is said in words."""
    assert said(*lines) == []


def test_a_header_that_comes_again() -> None:
    """A run that is appended, or has a column more, begins with a header of its own."""
    rows = [one for one in said(HEADER, "0,,1,0.5,", "epoch,step,loss", "0,1,0.7") if isinstance(one, Told)]
    assert [dict(row.values) for row in rows] == [{"epoch": 0.0, "train_loss": 0.5}, {"epoch": 0.0, "loss": 0.7}]


def test_quoted_column_names() -> None:
    """A name with a comma in it is one name."""
    assert said('step,loss,"acc, top 5"', '3,0.5,"0.25"') == [Told({"loss": 0.5, "acc, top 5": 0.25}, 3)]


BARS = {
    "tqdm": ([TQDM], 340, {"loss": 0.123, "train_loss_step": 0.5}),
    "tqdm-nan": ([TQDM.replace("0.123", "nan")], 340, {"loss": NAN, "train_loss_step": 0.5}),
    "tqdm-first": (["Epoch 0:   1%|  | 1/100 [00:04<00:06, 9it/s, v_num=1, loss=2]"], 1, {"loss": 2.0}),
    "rich-wrapped": ([RICH, " " * 63 + "0.004 reward:    ", " " * 63 + "-0.004  ", "", "real 0m19s"], 10,
                     {"loss": 0.004, "reward": -0.004}),
    "rich-in-a-line": (["Epoch 2/9 ━━━╸━━ 5/10 0:00:01 • 0:00:01 96.36it/s v_num: 0 loss: nan kl: 0.5"], 25,
                       {"loss": NAN, "kl": 0.5}),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "step", "expected"), BARS.values(), ids=BARS)
def test_numbers_of_a_bar(lines: list[str], step: int, expected: dict[str, float]) -> None:
    """Those that a bar shows, of the step it has come to; wrapped or not, without the version's number."""
    [row] = said(*lines)
    assert isinstance(row, Told) and row.step == step
    assert str(dict(row.values)) == str(expected)


def test_true_output() -> None:
    """A true table has its ten steps, and a true console the numbers of its last bar."""
    rows = [one for one in said(*(DATA / "lightning-metrics.csv").read_text().split("\n")) if isinstance(one, Told)]
    assert [row.step for row in rows] == list(range(10))
    assert rows[4].values == {"epoch": 0.0, "loss": 0.05345708131790161, "reward": -0.05345708131790161}
    [last] = said(*(DATA / "lightning.log").read_text().split("\n"))
    assert last == Told({"loss": 0.004, "reward": -0.004}, 10)


def test_names() -> None:
    """A loss of the step is the loss, one of the epoch is none; evaluations stand apart."""
    read = {
        "train_loss_step": "loss", "train_loss": "loss", "loss": "loss", "train_loss_epoch": "",
        "lr-Adam": "learning_rate",
        "grad_2.0_norm_total": "grad_norm", "grad_2.0_norm/layer.weight": "", "epoch": "", "reward": "reward",
    }  # fmt: skip
    names = Names(LIGHTNING.aliases)
    assert {name: names.of(name).canonical for name in read} == read
    assert names.of("val_loss").phase == names.of("test_loss_epoch").phase == EVAL


def test_half_and_broken_lines() -> None:
    """Any cut and any changed byte raises nothing."""
    random_ = random.Random(7)
    lines = [HEADER, *(row[0] for row in ROWS.values()), RICH, TQDM, " " * 60 + "0.004 reward:"]
    for line in lines:
        for end in range(len(line)):
            said(HEADER, line[:end], line[end:])
    for _ in range(2000):
        data = bytearray("\n".join(random_.sample(lines, 4)).encode())
        for _ in range(random_.randint(1, 6)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        said(*data.decode("utf-8", "replace").split("\n"))


@pytest.mark.parametrize("piece", ["Epoch 1/1 ", "Epoch 1: 1%|", ",step", 'a,"', "epoch,", "a: 1 ", ", a=1", " "])
def test_a_hostile_line_costs_no_more_than_its_length(piece: str) -> None:
    """A long line of what rows and bars are made of is read as fast as any."""
    line = piece * (200_000 // len(piece))
    assert said(HEADER, line, RICH + line, line) is not None


def test_how_it_is_recognised() -> None:
    """By its header, and by its bars."""
    assert [LIGHTNING.sign(line) for line in (HEADER, "epoch,loss,reward,step", RICH, TQDM)] == [3] * 4
    assert LIGHTNING.sign("step,loss") == 1
    assert [LIGHTNING.sign(line) for line in ("1,2,3", "loss,step 3", "Epoch 1: 10%| 1/10 [00:01, 9it/s]", "")] == [
        0
    ] * 4
