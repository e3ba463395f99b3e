"""Lines of a /metrics page: the same samples that Prometheus' own parser finds, and no harm from bad ones."""

import math
import random
import time
from pathlib import Path

import pytest
from engine_pages import VllmPage
from http_posts import DATA
from prometheus_client.parser import text_string_to_metric_families

from gyrostat_agent.sources.promtext import Sample, labels_of, samples


def everything(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {(s.name, tuple(sorted(labels_of(s.labels).items()))): s.value for s in samples(page, lambda name: True)}


@pytest.mark.parametrize(
    "page",
    [VllmPage(3).text(), *(p.read_text() for p in sorted((DATA / "pages").glob("*.txt")))],
    ids=["vllm", *(p.stem for p in sorted((DATA / "pages").glob("*.txt")))],
)
def test_the_same_samples_as_prometheus_own_parser(page: str) -> None:
    """Names, labels with quotes, braces and commas in them, and values."""
    families = text_string_to_metric_families(page)
    theirs = {(s.name, tuple(sorted(s.labels.items()))): float(s.value) for f in families for s in f.samples}
    counters = {name.removesuffix("_total") for name, _ in theirs}
    mine = everything(page)
    # Their parser puts _total behind a counter that has none: DCGM's.
    renamed = {(f"{n}_total" if (f"{n}_total", labels) in theirs else n, labels): v for (n, labels), v in mine.items()}
    assert renamed == theirs and len(mine) > 10 and counters


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        ("up 1", Sample("up", "", 1.0)),
        ("up\t 1.5 1700000000000", Sample("up", "", 1.5)),
        ("up{} 2", Sample("up", "", 2.0)),
        ('a:b{x="}, \\" {",y="\\\\"} 3 # {trace="1"} 0.5', Sample("a:b", 'x="}, \\" {",y="\\\\"', 3.0)),
        ("x -Inf\r", Sample("x", "", -math.inf)),
        ('x{a="b"}4', Sample("x", 'a="b"', 4.0)),
        ("x 1e3", Sample("x", "", 1000.0)),
    ],
)
def test_spellings(line: str, sample: Sample) -> None:
    """All that exporters write."""
    assert list(samples(f"# HELP x y\n\n{line}\n", lambda name: True)) == [sample]


def test_nan_is_kept() -> None:
    """It is what we are here for."""
    assert math.isnan(next(samples("x NaN", lambda name: True)).value)


def test_labels_are_unescaped() -> None:
    """Quotes, backslashes and line ends."""
    assert labels_of('a="\\"x\\"", b = "c\\\\d\\ne"') == {"a": '"x"', "b": "c\\d\ne"}


@pytest.mark.parametrize(
    "line", ["x", "x ", "x one", "x 1_0", 'x{a="b} 1', "x{ 1", "{} 1", "1x 1", "x-y 1", "x} 1", '"']
)
def test_what_is_no_sample_is_passed_over(line: str) -> None:
    """And the page read on."""
    assert [s.value for s in samples(f"{line}\nup 7", lambda name: True)] == [7.0]


@pytest.mark.parametrize("piece", ['a="b",', 'a="b\\"', '\\"', '"', "{", 'a="'])
def test_a_bad_line_costs_its_length(piece: str) -> None:
    """However it goes on without end: a hundred times as long takes no thousand times."""
    costs = []
    for many in (2_000, 200_000):
        began = time.process_time()
        assert list(samples("x{" + piece * many, lambda name: True)) == []
        costs.append(time.process_time() - began)
    assert costs[1] < 100 * max(costs[0], 1e-3) * 5


def test_junk_does_not_raise() -> None:
    """Pages with bytes turned, cut and doubled."""
    chance = random.Random(5)
    page = (Path(DATA) / "pages" / "sglang-0.txt").read_text()
    for _ in range(300):
        at = chance.randrange(len(page))
        junk = "".join(chance.choice('{}"\\,= \n\x00é#') for _ in range(chance.randrange(6)))
        for sample in samples(page[:at] + junk + page[at + chance.randrange(5) :], lambda name: True):
            labels_of(sample.labels)
