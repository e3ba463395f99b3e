"""Pages of engines and of the DCGM exporter as series: rates and quantiles of the interval, one name for all."""

import math
import random
from pathlib import Path

import pytest
from engine_pages import VllmPage
from http_posts import DATA

from gyrostat_agent.sources import pagenames
from gyrostat_agent.sources.pagereader import PageReader, Whose

ENGINE = Whose("rollout", 0, "")
PAGES = DATA / "pages"


def page(name: str) -> str:
    return (PAGES / f"{name}.txt").read_text()


def test_a_first_page_has_gauges_alone() -> None:
    """There is no interval yet: totals since the engine began are no rates."""
    vllm = VllmPage()
    vllm.of("num_preemptions").inc(1000)
    vllm.of("kv_cache_usage_perc").set(0.5)
    vllm.of("e2e_request_latency_seconds").observe(3.0)
    values = PageReader().read(vllm.text(), 100.0).values[ENGINE]
    assert values == {"requests_running": 0.0, "requests_waiting": 0.0, "cache_use": 0.5}


def test_a_vllm_engine() -> None:
    """Every series, of the ten seconds between two pages and not since it began."""
    vllm, reader = VllmPage(), PageReader()
    vllm.of("num_preemptions").inc(7)
    for _ in range(1000):
        vllm.of("e2e_request_latency_seconds").observe(0.1)
    reader.read(vllm.text(), 100.0)
    vllm.of("num_requests_running").set(32)
    vllm.of("num_requests_waiting").set(4)
    vllm.of("kv_cache_usage_perc").set(0.97)
    vllm.of("gpu_cache_usage_perc").set(0.97)  # the old name of the same: counted once
    vllm.of("num_preemptions").inc(5)
    vllm.of("generation_tokens").inc(10_000)
    for name in ("prefix_cache_queries", "gpu_prefix_cache_queries"):
        vllm.of(name).inc(400)
    for name in ("prefix_cache_hits", "gpu_prefix_cache_hits"):
        vllm.of(name).inc(100)
    for _ in range(99):
        vllm.of("e2e_request_latency_seconds").observe(18.0)
    vllm.of("e2e_request_latency_seconds").observe(45.0)
    vllm.of("request_queue_time_seconds").observe(0.1)
    for name in ("time_per_output_token_seconds", "inter_token_latency_seconds"):
        vllm.of(name).observe(0.03)
    values = reader.read(vllm.text(), 110.0).values[ENGINE]
    assert values == pytest.approx({
        "requests_running": 32.0, "requests_waiting": 4.0, "cache_use": 0.97, "preemptions_per_second": 0.5,
        "generation_tokens_per_second": 1000.0, "prompt_tokens_per_second": 0.0, "prefix_hit_share": 0.25,
        "request_seconds/p50": 15.0 + 5.0 * 50 / 99, "request_seconds/p99": 20.0, "request_seconds/mean": 18.27,
        "queue_seconds/p50": 0.15, "queue_seconds/p99": 0.297, "queue_seconds/mean": 0.1,
        "token_seconds/p50": 0.03, "token_seconds/p99": 0.0398, "token_seconds/mean": 0.03,
    })  # fmt: skip


def test_an_sglang_engine() -> None:
    """The same series under the same names."""
    reader = PageReader()
    first = reader.read(page("sglang-0"), 0.0)
    values = reader.read(page("sglang-1"), 20.0).values[ENGINE]
    assert first.values[ENGINE] == {
        "requests_running": 12.0, "requests_waiting": 3.0, "cache_use": 0.87, "prefix_hit_share": 0.25
    }  # fmt: skip
    assert values == pytest.approx({
        "requests_running": 16.0, "requests_waiting": 3.0, "cache_use": 0.99, "prefix_hit_share": 0.25,
        "preemptions_per_second": 1.0, "generation_tokens_per_second": 50.0,
        "queue_seconds/p50": 5.5, "queue_seconds/p99": 9.91, "queue_seconds/mean": 4.5,
    })  # fmt: skip


def test_under_ray() -> None:
    """vLLM's metrics come by Ray's own page, under Ray's spelling."""
    text = 'ray_vllm_num_requests_waiting{model_name="m",WorkerId="1"} 3\n'
    assert PageReader().read(text, 0.0).values[ENGINE] == {"requests_waiting": 3.0}


def test_the_engines_of_a_page_are_added_up() -> None:
    """Those that wait; of their caches the fullest counts."""
    vllm, reader = VllmPage(engines=2), PageReader()
    reader.read(vllm.text(), 0.0)
    for engine in range(2):
        vllm.of("num_requests_waiting", engine).set(10 + engine)
        vllm.of("kv_cache_usage_perc", engine).set(0.2 + 0.7 * engine)
        vllm.of("num_preemptions", engine).inc(5)
        vllm.of("time_to_first_token_seconds", engine).observe(0.03 + 5.0 * engine)
    values = reader.read(vllm.text(), 10.0).values[ENGINE]
    assert values["requests_waiting"] == 21.0 and values["cache_use"] == pytest.approx(0.9)
    assert values["preemptions_per_second"] == 1.0
    assert values["first_token_seconds/mean"] == pytest.approx(2.53)


def test_an_engine_that_began_anew() -> None:
    """Its counters are smaller: what they say is since then. Nothing is negative, and the other one's stays right."""
    old, reader = VllmPage(engines=2), PageReader()
    for engine in range(2):
        old.of("num_preemptions", engine).inc(100)
        for _ in range(100):
            old.of("e2e_request_latency_seconds", engine).observe(0.2)
    reader.read(old.text(), 0.0)
    new = VllmPage(engines=2)
    new.of("num_preemptions", 0).inc(10)
    new.of("e2e_request_latency_seconds", 0).observe(45.0)
    new.of("num_preemptions", 1).inc(120)
    for _ in range(100):
        new.of("e2e_request_latency_seconds", 1).observe(0.2)
    values = reader.read(new.text(), 10.0).values[ENGINE]
    assert values["preemptions_per_second"] == 3.0
    assert 40.0 < values["request_seconds/p50"] <= 50.0 and values["request_seconds/mean"] == pytest.approx(45.0)


def test_what_a_page_left_out_once_is_not_new() -> None:
    """Nor does a clock that was set back make rates."""
    vllm, reader = VllmPage(), PageReader()
    vllm.of("num_preemptions").inc(1000)
    reader.read(vllm.text(), 0.0)
    reader.read("up 1\n", 10.0)
    assert "preemptions_per_second" not in reader.read(vllm.text(), 5.0).values[ENGINE]
    assert reader.read(vllm.text(), 20.0).values[ENGINE]["preemptions_per_second"] == 0.0


def test_nan_on_a_page_is_told() -> None:
    """A gauge that became NaN is not hidden behind a healthy engine."""
    vllm = VllmPage(engines=2)
    vllm.of("kv_cache_usage_perc", 0).set(math.nan)
    vllm.of("num_requests_running", 0).set(math.nan)
    values = PageReader().read(vllm.text(), 0.0).values[ENGINE]
    assert math.isnan(values["cache_use"]) and math.isnan(values["requests_running"])


def test_gpus_of_the_dcgm_exporter() -> None:
    """Each by its number, under the GPU source's names and units; a number that is none is left out."""
    found = PageReader().read(page("dcgm"), 0.0)
    assert found.values == {
        Whose("gpu", 0, "GPU-aa"): {
            "gpu_sm_clock_hertz": 1.98e9, "gpu_temperature_celsius": 61.0, "gpu_power_watts": 688.251,
            "gpu_utilization": 98.0, "gpu_xid": 0.0, "gpu_memory_used_bytes": 71000.0 * 2**20,
            "gpu_remapped_rows_failed": 0.0,
        },
        Whose("gpu", 1, "GPU-bb"): {
            "gpu_sm_clock_hertz": 3.45e8, "gpu_temperature_celsius": 34.0, "gpu_power_watts": 70.5,
            "gpu_utilization": 0.0, "gpu_xid": 79.0,
        },
    }  # fmt: skip


def test_dcgm_names_are_the_gpu_sources() -> None:
    """One rule serves both."""
    gpuvalues = pytest.importorskip("gyrostat_agent.sources.gpuvalues", reason="there is no GPU source here")
    told = {m.series for m in pagenames.MEANT.values() if m.role == pagenames.GPU} - {pagenames.XID}
    assert told <= gpuvalues.names()


def test_parts_of_a_divided_gpu() -> None:
    """The most of them: one that is full must not be hidden."""
    text = "".join(f'DCGM_FI_DEV_FB_USED{{gpu="3",GPU_I_ID="{i}"}} {use}\n' for i, use in ((1, 9), (2, 5)))
    assert PageReader().read(text, 0.0).values[Whose("gpu", 3, "")] == {"gpu_memory_used_bytes": 9.0 * 2**20}


def test_how_many_names_are_known() -> None:
    """So that a page that says nothing to us does not read as a healthy engine."""
    found = PageReader().read("go_goroutines 7\nup 1\n", 0.0)
    assert (found.values, found.names, found.known) == ({}, 2, frozenset())


def test_every_series_is_documented() -> None:
    """docs/received.md names each."""
    text = (Path(__file__).parents[3] / "docs" / "received.md").read_text()
    missing = [name for name in pagenames.rollout_series() if f"`{name.partition('/')[0]}" not in text]
    missing += [name for name in pagenames.MEANT if name.startswith("DCGM") and f"`{name}`" not in text]
    assert missing == []


def test_junk_on_a_page_never_raises() -> None:
    """Bytes turned, numbers out of the world, bounds that are none."""
    chance, reader = random.Random(3), PageReader()
    text = VllmPage().text() + page("sglang-0") + page("dcgm")
    for turn in range(60):
        lines = text.split("\n")
        for _ in range(40):
            at = chance.randrange(len(lines))
            lines[at] = lines[at].replace(
                chance.choice(['le="', "0.0", "1.0", '"', "{", "_bucket"]),
                chance.choice(["NaN", "1e400", '"', "-Inf", 'le="x', "", "9" * 400]),
            )
        reader.read("\n".join(lines), float(turn))
