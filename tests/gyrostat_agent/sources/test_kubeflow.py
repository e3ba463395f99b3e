"""What transformers' KubeflowCallback posts, as rows: each log once, at its step, NaN and all."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from http_posts import DATA, post

from gyrostat_agent.sources.httpin import HttpIn
from gyrostat_agent.sources.kubeflow import PATH, KubeflowIn
from gyrostat_agent.sources.logs.gathered import Gathered
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Told

JSON = "application/json"
POSTS = (DATA / "kubeflow-posts.jsonl").read_bytes().splitlines()


def status(progress: int = 50, **metrics: Any) -> bytes:
    rows = [{"name": name, "value": str(value)} for name, value in metrics.items()]
    return json.dumps({"trainerStatus": {"progressPercentage": progress, "metrics": rows}}).encode()


def told(*bodies: bytes) -> list[Told]:
    kubeflow = KubeflowIn()
    for body in bodies:
        assert kubeflow.take(body, JSON).status == 200
    return kubeflow.drain()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[HttpIn, KubeflowIn]]:
    """A server with its token."""
    (tmp_path / "token").write_text("tok\n")
    kubeflow = KubeflowIn()
    server = HttpIn("127.0.0.1:0", {PATH: kubeflow.take}, token_file=str(tmp_path / "token"))
    yield server, kubeflow
    server.close()


def test_a_true_run(served: tuple[HttpIn, KubeflowIn]) -> None:
    """All that the callback of transformers 5.24 posted in ten steps with a log every two, one of them not finite."""
    server, kubeflow = served
    for body in POSTS:
        said = post(server.address, PATH, body, Authorization="Bearer tok")
        assert said.status == 200  # the only status that the callback calls a success
    rows = kubeflow.drain()
    assert [(row.step, row.phase) for row in rows] == [
        (2, TRAIN), (4, TRAIN), (5, EVAL), (6, TRAIN), (8, TRAIN), (10, TRAIN)
    ]  # fmt: skip
    assert rows[0].values == {"loss": 0.5, "grad_norm": 1.5, "learning_rate": 0.01, "epoch": 0.2}
    assert math.isnan(rows[1].values["loss"]) and rows[1].values["grad_norm"] == math.inf
    assert rows[2].values == {"eval_loss": 0.75, "eval_runtime": 1.25}
    assert math.isnan(rows[3].values["loss"]) and math.isnan(rows[3].values["grad_norm"])  # once more: it goes on
    assert rows[5].values["loss"] == 0.2 and rows[5].values["train_runtime"] == 3.5
    assert rows[0].at == pytest.approx(1796059231.5, abs=1.0) and kubeflow.progress == 100


def test_a_true_run_of_trl() -> None:
    """GRPO on a small MoE, a log a step; steps are those of its console. Posts were cut, and their step put back.

    A post that would have come within 5 s of the one before was never sent: that step is missing, and no other.
    """
    rows = told(*(DATA / "kubeflow-trl.jsonl").read_bytes().splitlines())
    console = [0.06277, 0.06166, 0.2277, 0.08704, 0.04834, 0.0036, 0.003285, 0.003698, -0.2528, -0.1919]
    assert [row.step for row in rows] == [1, 2, 3, 4, 5, 7, 8, 9, 10]
    assert [row.values["loss"] for row in rows] == pytest.approx([console[row.step - 1] for row in rows], rel=1e-3)
    assert rows[1].values["frac_reward_zero_std"] == 0.0  # told again, though it is what it was


def test_rows_become_records() -> None:
    """With the names that rules know, evaluation apart."""
    gathered = Gathered(Names({}), "kubeflow")
    records = [*gathered.take(told(*POSTS)), *gathered.flush()]
    assert [r.step for r in records] == [2, 4, 5, 6, 8, 10]
    assert [math.isnan(r.values.get("loss", 0.0)) for r in records] == [False, True, False, True, False, False]
    assert records[2].values == {"eval/loss": 0.75, "eval/runtime": 1.25}


def test_a_log_that_is_posted_again_is_told_once() -> None:
    """A NaN of one log, posted at every step until the next, is one NaN."""
    bodies = [status(current_step=step, loss="nan", learning_rate=0.1, current_epoch=step / 10) for step in range(3, 9)]
    assert [row.step for row in told(*bodies)] == [2]


def test_nan_in_every_log_is_told_each_time() -> None:
    """The epoch says that it is another log, where all else stays the same."""
    bodies = [status(current_step=s, loss="nan", learning_rate=0.1, epoch=s) for s in (3, 4, 5)]
    assert [row.step for row in told(*bodies)] == [2, 3, 4]


def test_an_evaluation_is_no_log_of_training() -> None:
    """It brings an epoch along; what training logged before stays told."""
    bodies = [
        status(current_step=3, loss=0.5, epoch=0.2),
        status(current_step=5, loss=0.5, epoch=0.4, eval_loss=0.7),
        status(current_step=6, loss=0.4, epoch=0.5, eval_loss=0.7),
        status(current_step=7, loss=0.3, epoch=0.6, eval_loss=0.6),
    ]
    assert [(row.step, row.phase) for row in told(*bodies)] == [
        (2, TRAIN),
        (4, EVAL),
        (5, TRAIN),
        (6, TRAIN),
        (6, EVAL),
    ]


def test_the_last_post_names_no_step() -> None:
    """It holds the log of the last one: no earlier than the newest that was named."""
    rows = told(status(current_step=9, loss=0.5, epoch=0.8), status(100, loss=0.4, epoch=1.0))
    assert [(row.step, row.values["loss"]) for row in rows] == [(8, 0.5), (9, 0.4)]


def test_a_trainer_that_begins_anew() -> None:
    """Says so at 0 %; its first log is news, though it may be the last one's."""
    first = status(current_step=3, loss=0.5, epoch=0.2)
    assert len(told(first, first)) == 1
    assert [row.step for row in told(first, status(0, total_steps=10), first)] == [2, 2]


@pytest.mark.parametrize(
    ("body", "kind", "line"),
    [
        (b"", JSON, "not JSON"),
        (POSTS[3][:200], JSON, "not JSON"),
        (b"[1]", JSON, "must be a mapping with trainerStatus"),
        (b"{}", JSON, "must be a mapping with trainerStatus"),
        (b'{"trainerStatus": 3}', JSON, "trainerStatus must be a mapping"),
        (b'{"trainerStatus": {"metrics": {"a": 1}}}', JSON, "must be a list of mappings"),
        (b'{"trainerStatus": {"metrics": [1]}}', JSON, "must be a list of mappings"),
        (b"[" * 100_000, JSON, ""),
        (POSTS[3], "text/html", "this is text/html"),
    ],
)  # fmt: skip
def test_nonsense(served: tuple[HttpIn, KubeflowIn], body: bytes, kind: str, line: str) -> None:
    """400 and a line; nothing of it is told, the next post is taken."""
    server, kubeflow = served
    said = post(server.address, PATH, body, kind, Authorization="Bearer tok")
    assert said.status == 400 and line in said.error and kubeflow.nonsense == 1
    assert kubeflow.drain() == []
    assert post(server.address, PATH, POSTS[3], Authorization="Bearer tok").status == 200


@pytest.mark.parametrize(
    "metrics",
    [
        {"current_step": "nan", "loss": 1}, {"current_step": "-3", "loss": 1}, {"current_step": "x", "loss": 1},
        {"current_step": "1e300", "loss": 1}, {"current_step": 2, "": 1, "loss": 1}, {"loss": 1, "x": "hello"},
    ],
)  # fmt: skip
def test_odd_values(metrics: dict[str, Any]) -> None:
    """A step that is none is unknown; what is no number is left out."""
    (row,) = told(status(**metrics))
    assert row.values == {"loss": 1.0} and row.step in (None, 1)


@pytest.mark.parametrize("when", [None, 3, "soon", "2026-13-45", "9999-12-31T23:59:59+00:00", "0001-01-01"])
def test_odd_times(when: Any) -> None:
    """Do not raise."""
    body = json.dumps({"trainerStatus": {"lastUpdatedTime": when, "metrics": [{"name": "loss", "value": "1"}]}})
    assert len(told(body.encode())) == 1


def test_without_the_token(served: tuple[HttpIn, KubeflowIn]) -> None:
    """Nobody is believed."""
    assert post(served[0].address, PATH, POSTS[3], Authorization="Bearer other").status == 401
    assert served[1].drain() == []
