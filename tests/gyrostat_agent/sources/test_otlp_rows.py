"""Points of OTLP exports as rows of a trainer's steps: each told once, and a trainer that hangs tells nothing."""

import math
from typing import Any

import pytest
from http_posts import DATA
from otlp_bodies import as_json, counter, gauge, histogram, point

from gyrostat_agent.sources.logs.gathered import Gathered
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Told
from gyrostat_agent.sources.otlp import jsonform, protobuf
from gyrostat_agent.sources.otlp import rows as rows_module
from gyrostat_agent.sources.otlp.rows import Rows


def tell(rows: Rows, *metrics: dict[str, Any], **resource: Any) -> list[Told]:
    return rows.of(jsonform.decode(as_json(*metrics, **resource)))[0]


def said(told: list[Told]) -> list[tuple[int | None, dict[str, float]]]:
    return [(row.step, dict(row.values)) for row in told]


def test_a_true_run() -> None:
    """Three steps and the goodbye of the SDK, which sends every step again each time, stamped anew."""
    rows = Rows()
    told = [
        row
        for number in range(4)
        for row in rows.of(protobuf.decode((DATA / "otlp" / f"sdk-1.45-{number}.bin").read_bytes()))[0]
    ]
    by_step = {s: {n: v for row in told if row.step == s for n, v in row.values.items()} for s in (1, 2, 3)}
    assert [row.step for row in told] == [1, 1, 2, 2, 3, 3]
    assert by_step[1]["loss"] == 2.0 and by_step[2]["loss"] == 1.0 and "loss" not in by_step[3]
    assert by_step[2]["expert_share/0"] == 0.25 and by_step[2]["expert_share/1"] == 0.75
    assert [by_step[s]["tokens"] for s in (1, 2, 3)] == [100.0, 300.0, 600.0]
    assert by_step[3]["step_time/mean"] == pytest.approx((0.2 + 0.3 + 0.7 + 4.5) / 4)
    assert {row.rank for row in told} == {0}


def test_nan_reaches_the_engine() -> None:
    """Through names and gathering, at its step."""
    rows, gathered = Rows(), Gathered(Names({}), "otlp")
    records = []
    for number in range(4):
        told, _ = rows.of(protobuf.decode((DATA / "otlp" / f"nan-sdk-1.25-{number}.bin").read_bytes()))
        records += list(gathered.take(told))
    records += list(gathered.flush())
    assert [r.step for r in records] == [1, 2, 3]
    assert math.isnan(records[1].values["loss"]) and records[2].values["grad_norm"] == -math.inf


@pytest.mark.parametrize("key", ["step", "global_step", "train.step", "Training_Step", "iteration"])
def test_a_step_by_any_name(key: str) -> None:
    """As an attribute, a number or its text."""
    for value in (7, "7", 7.0):
        attributes = {key: value}
        assert [row.step for row in tell(Rows(), gauge("loss", point(1.0, **attributes)))] == [7]


@pytest.mark.parametrize("name", ["step", "global_step", "train/global_step", "trainer.step"])
def test_a_step_that_is_a_gauge(name: str) -> None:
    """Loggers send it as one more number: it is the row's step, and no series."""
    rows = Rows()
    told = tell(rows, gauge("loss", point(1.0)), gauge(name, point(12.0)))
    told += tell(rows, gauge("loss", point(1.5, at=1005.0)), gauge(name, point(13.0, at=1005.0)))
    assert said(told) == [(12, {"loss": 1.0}), (13, {"loss": 1.5})]


def test_without_steps_rows_bear_their_time() -> None:
    """One row an export."""
    rows = Rows()
    told = tell(rows, gauge("loss", point(1.0, at=1000.0)), gauge("kl", point(0.1, at=1000.5)))
    told += tell(rows, gauge("loss", point(2.0, at=1010.0)), gauge("kl", point(0.1, at=1010.0)))
    assert said(told) == [(None, {"loss": 1.0, "kl": 0.1}), (None, {"loss": 2.0, "kl": 0.1})]
    assert [row.at for row in told] == [1000.5, 1010.0]


def test_a_trainer_that_hangs_tells_nothing() -> None:
    """Its SDK goes on exporting the last values, stamped anew; NaN is no news either."""
    rows = Rows()
    first = (
        gauge("loss", point(math.nan)), counter("tokens", point(100, start=900.0)), histogram("t", [1, 0, 0, 0], 0.5)
    )  # fmt: skip
    again = (
        gauge("loss", point(math.nan, at=1060.0)),
        counter("tokens", point(100, at=1060.0, start=900.0)),
        histogram("t", [1, 0, 0, 0], 0.5, at=1060.0),
    )
    assert len(tell(rows, *first)) == 1
    assert [tell(rows, *again) for _ in range(3)] == [[], [], []]
    assert len(tell(rows, gauge("loss", point(math.nan, at=1070.0)), gauge("kl", point(0.5, at=1070.0)))) == 1


def test_steps_that_are_sent_again_are_told_once() -> None:
    """With a value that is another it is another row: the run went back."""
    rows = Rows()
    assert said(tell(rows, gauge("loss", point(3.0, step=1)))) == [(1, {"loss": 3.0})]
    both = gauge("loss", point(3.0, at=1010.0, step=1), point(2.0, at=1010.0, step=2))
    assert said(tell(rows, both)) == [(2, {"loss": 2.0})]
    assert said(tell(rows, both)) == []
    assert said(tell(rows, gauge("loss", point(2.5, at=1020.0, step=1)))) == [(1, {"loss": 2.5})]


def test_another_life_of_the_trainer_is_heard() -> None:
    """It tells the same steps, perhaps the same values; SDKs give each process an id of its own."""
    rows = Rows()
    metric = gauge("loss", point(3.0, step=1))
    assert len(tell(rows, metric, **{"service.instance.id": "a"})) == 1
    assert len(tell(rows, metric, **{"service.instance.id": "b"})) == 1
    assert len(tell(rows, metric, **{"service.instance.id": "a"})) == 0


def test_steps_in_one_export_come_in_order() -> None:
    """Whatever order the points have in it."""
    metrics = [gauge("loss", *(point(float(step), step=step) for step in (3, 1, 2))), gauge("kl", point(0.2, step=2))]
    assert said(tell(Rows(), *metrics)) == [(1, {"loss": 1.0}), (2, {"loss": 2.0, "kl": 0.2}), (3, {"loss": 3.0})]


def test_values_without_a_step_belong_to_the_newest() -> None:
    """Counters and histograms cannot have one, and are still told when no new step comes with them."""
    rows = Rows()
    told = tell(rows, gauge("loss", point(1.0, step=5)), counter("tokens", point(10, start=990.0)))
    told += tell(rows, counter("tokens", point(30, at=1010.0, start=990.0)))
    assert said(told) == [
        (5, {"loss": 1.0}), (5, {"tokens": 10.0, "tokens_per_second": 1.0}),
        (5, {"tokens": 30.0, "tokens_per_second": 2.0}),
    ]  # fmt: skip


def test_ranks_and_phases() -> None:
    """Of the point, else of the resource; evaluation stands apart."""
    rows = Rows()
    told = tell(
        rows, gauge("loss", point(1.0, step=1, rank=3), point(2.0, step=1), point(9.0, step=1, split="eval")), rank=2
    )
    assert [(row.rank, row.phase, row.values["loss"]) for row in told] == [
        (3, TRAIN, 1.0),
        (2, TRAIN, 2.0),
        (2, EVAL, 9.0),
    ]


def test_labels_are_in_the_name_where_they_tell_apart() -> None:
    """A label that is always the same is no part of it: else no loss would be called loss."""
    rows = Rows()
    told = tell(rows, gauge("loss", point(1.0, step=1, run="a")), gauge("share", *(
        point(0.1 * e, step=1, run="a", expert=e, layer=layer) for layer in range(2) for e in range(2)
    )))  # fmt: skip
    assert set(told[0].values) == {"loss", "share/0/0", "share/0/1", "share/1/0", "share/1/1"}


@pytest.mark.parametrize(
    ("first", "second", "rate"),
    [
        ((100, 1000.0, 900.0), (150, 1010.0, 900.0), 5.0),
        ((100, 1000.0, 900.0), (20, 1010.0, 1005.0), 4.0),
        ((100, 1000.0, 900.0), (20, 1010.0, 0.0), None),
        ((100, 1000.0, 0.0), (150, 1010.0, 0.0), 5.0),
    ],
    ids=["grown", "begun anew", "begun anew, unsaid", "no start"],
)
def test_counters_as_rates(
    first: tuple[int, float, float], second: tuple[int, float, float], rate: float | None
) -> None:
    """Beside what they have come to; a process that began anew counts from 0."""
    rows = Rows()
    told = [
        tell(rows, counter("tokens", point(value, at=at, start=start))) for value, at, start in (first, second)
    ]  # fmt: skip
    assert told[1][0].values["tokens"] == second[0]
    assert told[1][0].values.get("tokens_per_second") == rate


def test_deltas_add_up() -> None:
    """What came since the last export; one that is posted again, because its answer was lost, counts once."""
    rows = Rows()
    posts = [(10, 1000.0, 990.0), (30, 1010.0, 1000.0), (30, 1010.0, 1000.0), (5, 1020.0, 1010.0)]
    told = [tell(rows, counter("t", point(v, at=at, start=s), temporality=1)) for v, at, s in posts]
    assert [said(t) for t in told] == [
        [(None, {"t": 10.0, "t_per_second": 1.0})], [(None, {"t": 40.0, "t_per_second": 3.0})], [],
        [(None, {"t": 45.0, "t_per_second": 0.5})],
    ]  # fmt: skip


def test_a_level_is_no_counter() -> None:
    """A sum that falls too is told as it is."""
    rows = Rows()
    told = [tell(rows, counter("n", point(v, at=1000.0 + v), growing=False)) for v in (5, 3)]
    assert [t[0].values for t in told] == [{"n": 5.0}, {"n": 3.0}]


@pytest.mark.parametrize(
    ("temporality", "second", "p99"),
    [(2, [8, 2, 0, 0], 1.98), (1, [8, 2, 0, 0], 1.95), (2, [0, 0, 3, 0], 3.98)],
    ids=["cumulative", "delta", "begun anew"],
)
def test_histograms_as_quantiles_of_the_interval(temporality: int, second: list[int], p99: float) -> None:
    """Of what came since the last export, and not since the process began."""
    rows = Rows()
    tell(rows, histogram("t", [8, 0, 0, 0], 4.0, temporality=temporality))
    (row,) = tell(rows, histogram("t", second, 7.0, at=1010.0, temporality=temporality))
    assert row.values["t/p99"] == pytest.approx(p99, abs=0.02)


def test_names_without_end_are_bounded() -> None:
    """Requests that bear an id fill neither memory nor journal, and it is said how many were not read."""
    rows = Rows()
    unread = 0
    for batch in range(20):
        metric = gauge("latency", *(point(1.0, request=f"{batch}-{i}") for i in range(100)))
        unread += rows.of(jsonform.decode(as_json(metric)))[1]
    assert 900 <= unread <= 1100
    assert len(tell(rows, gauge("loss", point(1.0)))) == 0  # too late for a new name


def test_memory_of_steps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of any length: steps that no export holds any more are forgotten, those that it holds are not."""
    monkeypatch.setattr(rows_module, "_STREAMS", 500)
    rows = Rows()
    for newest in range(400, 2000, 100):
        told = tell(
            rows, gauge("loss", *(point(float(s), at=float(newest), step=s) for s in range(newest - 400, newest)))
        )
        assert len(told) == (100 if newest > 400 else 400)
    assert len(rows._streams) == 500
