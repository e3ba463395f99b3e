"""Experts of six MoE families, counted by the callback and by hand, from the same batches (count_experts.py)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sdk_runs import records
from trl_runs import need_trl, results

pytestmark = pytest.mark.trl


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """All models, trained once."""
    need_trl()
    folder = tmp_path_factory.mktemp("experts")
    yield folder / "runs", results("count_experts.py", folder)


@pytest.mark.parametrize("name", ["qwen3_moe", "mixtral", "olmoe", "qwen2_moe", "gpt_oss", "deepseek_v3"])
def test_a_family_is_counted_as_by_hand(counted: tuple[Path, dict[str, Any]], name: str) -> None:
    """Every expert of every layer of every step: tokens that are no padding, once for each expert chosen."""
    runs, parts = counted
    told = [record.load for record in records(runs / name) if record.load is not None]
    assert [[list(counts) for _, _, counts in load.rows()] for load in told] == parts[name]["hand"]
    assert {load.experts for load in told} == {8}
    assert parts[name]["said"] == ""


@pytest.mark.parametrize("name", ["recomputed", "reentrant"])
def test_recomputing_counts_nothing_twice(counted: tuple[Path, dict[str, Any]], name: str) -> None:
    """Gradient checkpointing runs each layer again in the backward pass; the counts are those of one forward."""
    runs, parts = counted
    assert parts[name]["recomputes"]
    told = [record.load for record in records(runs / name) if record.load is not None]
    assert [[list(counts) for _, _, counts in load.rows()] for load in told] == parts[name]["hand"]


def test_a_model_without_experts_is_no_fault(counted: tuple[Path, dict[str, Any]]) -> None:
    """Nothing is counted and nothing is said; all else is told."""
    runs, parts = counted
    told = records(runs / "dense")
    assert not [record for record in told if record.load is not None]
    assert [record.step for record in told if "loss" in record.values] == [1, 2, 3]
    assert parts["dense"]["said"] == ""


def test_an_unknown_router_is_named_and_left_out(counted: tuple[Path, dict[str, Any]]) -> None:
    """It is said once, by its name; no count is guessed."""
    runs, parts = counted
    assert not [record for record in records(runs / "riddle") if record.load is not None]
    assert parts["riddle"]["said"].count("\n") == 1
    assert "model.layers.0.mlp.router are not counted" in parts["riddle"]["said"]
