"""Recognise: each log by its own signs, and none by chance."""

from pathlib import Path

import pytest

from gyrostat_agent.sources.logs.lines import Lines
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.recognise import recognise
from gyrostat_agent.sources.logs.said import EVAL, TRAIN
from gyrostat_agent.sources.logs.table import FORMATS

VERL = "step:12 - actor/pg_loss:0.1 - actor/grad_norm:0.2\n"
HF = "{'loss': '0.0132', 'grad_norm': '0.214', 'learning_rate': '9.91e-07', 'reward': '0.34', 'epoch': '0.04'}\n"
DEEPSPEED = "[2026-01-02 03:04:05,678] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=4, lr=[8.8e-06]\n"
MEGATRON = (
    " [2026-01-02 03:04:05] iteration      251/    9000 | consumed samples:        16064 | learning rate: 5.5E-05 |"
    " global batch size:    64 | lm loss: 3.1E+00 | grad norm: 0.777 | number of nan iterations:   0 |\n"
)


def of(text: str, path: str = "run.log") -> str:
    """The name of the format that a text is recognised as; '' for none."""
    lines = Lines()
    found = recognise([*lines.feed(text.encode()), *lines.end()], path, FORMATS)
    return found.name if found else ""


@pytest.mark.parametrize(
    ("text", "name"),
    [(VERL, "verl"), (HF, "hf"), (MEGATRON, "megatron"), (200 * DEEPSPEED + HF, "hf"), (3 * DEEPSPEED, "deepspeed")],
    ids=["verl", "hf", "megatron", "hf under deepspeed", "deepspeed alone"],
)
def test_a_log_is_known_by_its_lines(text: str, name: str) -> None:
    """One line that no other trainer writes is enough; a library below that chatters does not outvote it."""
    assert of("loading shards\n" * 50 + text) == name


@pytest.mark.parametrize("text", ["1 0.5\n2 0.4\n3 0.3\n" * 10, "hello\n" * 100, "", "\x00\xff" * 500],
                         ids=["numbers", "words", "nothing", "junk"])  # fmt: skip
def test_what_is_no_trainers_log_is_called_none(text: str) -> None:
    """A table of two columns is no entropy log, but for one that is called so."""
    assert of(text) == ""


def test_the_founding_files_are_known_by_their_names() -> None:
    """Step first, entropy last: only where the file says that it is entropy."""
    assert of("1 0.5\n2 0.4\n3 0.3\n" * 10, "/runs/entropy_log.txt") == "entropy-log"


@pytest.mark.parametrize(
    ("name", "canonical", "phase"),
    [
        ("train/loss", "loss", TRAIN), ("loss_scale", "loss_scale", TRAIN), ("grad_norm_clip_fraction", "", TRAIN),
        ("eval_loss", "", EVAL), ("val-core/acc/mean", "", EVAL), ("actor/grad_norm", "grad_norm", TRAIN),
        ("validation/reward", "", EVAL), ("reward", "reward", TRAIN), ("interval", "", TRAIN),
        ("lr", "learning_rate", TRAIN),
    ],
)  # fmt: skip
def test_names_are_read_by_their_words(name: str, canonical: str, phase: str) -> None:
    """Never by a part of a word: a loss scale is no loss, and an interval holds no val."""
    assert Names({}).of(name) == (canonical, phase)


def test_an_alias_to_nothing_keeps_a_name_its_own() -> None:
    """A critic's gradient norm is in the hundreds at first: it must not be taken for the policy's."""
    names = Names({"critic/*": "", "critic/kl": "kl"})
    assert names.of("critic/grad_norm").canonical == "" and names.of("critic/kl").canonical == "kl"


def test_true_logs_are_recognised() -> None:
    """Whole logs of real trainers, as they were written."""
    folder = Path(__file__).parent / "data"
    expected = {"verl-console.log": "verl", "lightning-metrics.csv": "lightning"}
    found = {path.name: of(path.read_text(errors="replace"), str(path)) for path in folder.iterdir()
             if path.name in expected or (path.name.startswith("trl-grpo") and path.suffix == ".log")}  # fmt: skip
    assert found and found == {name: expected.get(name, "hf") for name in found}
