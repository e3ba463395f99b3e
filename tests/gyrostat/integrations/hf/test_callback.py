"""The callback on trainers it was not written for: what they lack is said by name, and nothing is raised."""

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from sdk_runs import python, records

from gyrostat.integrations.hf.names import NAMES
from gyrostat.integrations.hf.versions import TRIED, unfit
from gyrostat.integrations.transformers import GyrostatCallback


class Bare:
    """A trainer of which nothing is known but what every Trainer has had from the beginning."""

    def __init__(self, output: Path) -> None:
        self.model: Any = torch.nn.Linear(2, 1)
        self.args = types.SimpleNamespace(output_dir=str(output), process_index=0, world_size=1)
        self.control = types.SimpleNamespace(should_save=False)
        self.state = types.SimpleNamespace(global_step=0, stateful_callbacks={})

    def train(self, callback: GyrostatCallback, logs: dict[str, Any]) -> None:
        """Three steps, as a trainer calls its callbacks; one of long ago has no call before the update."""
        given = (self.args, self.state, self.control)
        callback.on_train_begin(*given, model=self.model)
        for _ in range(3):
            callback.on_step_begin(*given)
            callback.on_substep_end(*given)
            self.state.global_step += 1
            callback.on_step_end(*given)
            callback.on_log(*given, logs=dict(logs))
        callback.on_train_end(*given)


@pytest.fixture
def bare(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bare:
    """A bare trainer under a run directory, and versions that nobody has tried."""
    monkeypatch.setenv("GYROSTAT_RUN_DIR", str(run))
    for package in ("transformers", "trl"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    return Bare(tmp_path)


def test_importing_it_imports_no_framework() -> None:
    """A script that trains with something else pays nothing for it."""
    script = "import sys, gyrostat.integrations.transformers\n"
    script += "print([m for m in ('torch', 'transformers', 'trl', 'numpy', 'inspect') if m in sys.modules])"
    assert python(script).strip() == "[]"


def test_a_bare_trainer_says_what_it_lacks(bare: Bare, run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each thing is named once, on a line of its own; what can be told is told, from the log where need be."""
    bare.train(GyrostatCallback(bare), {"loss": 0.5, "grad_norm": 2.0, "learning_rate": 0.1, "epoch": 1.0})
    said = capfd.readouterr().err
    assert "Traceback" not in said
    for lacking in (
        "loss is told as it is logged only",
        "grad_norm is told as it is logged only",
        "learning_rate is told",
    ):
        assert said.count(lacking) == 1, lacking
    told = records(run)
    assert [record.values["params_finite"] for record in told if "params_finite" in record.values] == [1.0] * 4
    logged = [record.values for record in told if "loss" in record.values]
    assert logged == [{"loss": 0.5, "grad_norm": 2.0, "learning_rate": 0.1}] * 3


@pytest.mark.parametrize(
    ("transformers", "trl", "said"),
    [
        ("5.24.0", "1.16.2", ""),
        ("4.30.2", "1.16.0", "not tried with transformers 4.30.2 (older than 5.24)"),
        (
            "9.0.0.dev0",
            "0.7.1",
            "not tried with transformers 9.0.0.dev0 (newer than 5.24) and trl 0.7.1 (older than 1.16)",
        ),
        ("5.24.0", "unknown", ""),
    ],
    ids=["tried", "older", "newer and older", "no number"],
)
def test_versions_that_nobody_tried_are_named(
    monkeypatch: pytest.MonkeyPatch, transformers: str, trl: str, said: str
) -> None:
    """In one line: which package, which version, and which was tried."""
    for package, version in (("transformers", transformers), ("trl", trl)):
        module = types.ModuleType(package)
        module.__version__ = version  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, package, module)
    assert unfit().partition(";")[0] == said


def test_a_training_that_died_can_be_begun_again(bare: Bare, run: Path) -> None:
    """An error that somebody caught leaves no watch on watch: the second training's steps are told once each."""
    callback = GyrostatCallback(bare)
    calls: list[int] = []
    bare.training_step = lambda: calls.append(1) or torch.tensor(1.0)  # type: ignore[attr-defined]
    original = bare.training_step  # type: ignore[attr-defined]
    given = (bare.args, bare.state, bare.control)
    callback.on_train_begin(*given)
    callback.on_train_begin(*given)
    callback.on_step_begin(*given)
    bare.training_step()  # type: ignore[attr-defined]
    bare.state.global_step = 1
    callback.on_step_end(*given)
    callback.on_train_end(*given)
    assert [record.values["loss"] for record in records(run) if "loss" in record.values] == [1.0]
    assert bare.training_step is original  # type: ignore[attr-defined]
    assert calls == [1]


def test_a_model_that_is_no_model_is_said(bare: Bare, run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Not even that raises into the loop; the log is told all the same."""
    bare.model = None
    bare.train(GyrostatCallback(bare), {"loss": 0.5})
    said = capfd.readouterr().err
    assert "looking at the weights failed, training goes on without it" in said
    assert [record.values["loss"] for record in records(run) if "loss" in record.values] == [0.5] * 3


def test_other_points_of_the_loop_do_nothing(bare: Bare) -> None:
    """Later versions may call a callback at points that are not known yet; other names are no attributes."""
    callback = GyrostatCallback(bare)
    assert callback.on_some_point_of_tomorrow(1, two=3) is None
    with pytest.raises(AttributeError, match="has no attribute 'train'"):
        callback.train  # noqa: B018


def test_the_page_shows_the_names() -> None:
    """docs/trl.md lists each metric that is told under another name, and no other."""
    page = (Path(__file__).parents[4] / "docs" / "trl.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", page, re.MULTILINE)
    assert dict(rows) == NAMES


def test_the_page_says_which_versions_were_tried() -> None:
    """And the callback says nothing of those."""
    page = (Path(__file__).parents[4] / "docs" / "trl.md").read_text(encoding="utf-8")
    assert f"Tried: Transformers {TRIED['transformers'][1]} with TRL {TRIED['trl'][1]}." in page
