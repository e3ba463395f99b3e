"""Page names: what vLLM, SGLang and the DCGM exporter call things on their /metrics pages, and what they are here.

Names are from the sources of vLLM (v1/metrics/loggers.py, 2025), SGLang (srt/metrics/collector.py, 2026) and
dcgm-exporter (etc/default-counters.csv). Where several names lead to one series, the first that a page has is read:
versions show an old name beside the new one. docs/received.md lists the series; a test holds it to this.
"""

from collections.abc import Mapping
from typing import NamedTuple

SUM, MOST, RATE, QUANTILES = "sum", "most", "rate", "quantiles"
ROLLOUT, GPU = "rollout", "gpu"
XID = "gpu_xid"  # no series: the newest XID's number, told as a fault
PREFIX_HITS, PREFIX_QUERIES, PREFIX_SHARE = "prefix_hits", "prefix_queries", "prefix_hit_share"


class Meant(NamedTuple):
    """``how``: of several engines on a page the sum or the most; what a counter grew by a second; quantiles."""

    series: str
    how: str
    role: str = ROLLOUT
    scale: float = 1.0


_ENGINES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("requests_running", SUM): ("vllm_num_requests_running", "sglang_num_running_reqs"),
    ("requests_waiting", SUM): ("vllm_num_requests_waiting", "sglang_num_queue_reqs"),
    ("requests_swapped", SUM): ("vllm_num_requests_swapped",),
    ("requests_paused", SUM): ("sglang_num_paused_reqs",),
    ("cache_use", MOST): ("vllm_kv_cache_usage_perc", "vllm_gpu_cache_usage_perc", "sglang_token_usage"),
    ("preemptions_per_second", RATE): ("vllm_num_preemptions_total", "sglang_num_retracted_requests_total"),
    ("requests_per_second", RATE): ("vllm_request_success_total", "sglang_num_requests_total"),
    ("aborts_per_second", RATE): ("sglang_num_aborted_requests_total",),
    ("nan_requests_per_second", RATE): ("vllm_corrupted_requests_total",),
    ("prompt_tokens_per_second", RATE): ("vllm_prompt_tokens_total", "sglang_prompt_tokens_total"),
    ("generation_tokens_per_second", RATE): ("vllm_generation_tokens_total", "sglang_generation_tokens_total"),
    (PREFIX_HITS, RATE): ("vllm_prefix_cache_hits_total", "vllm_gpu_prefix_cache_hits_total"),
    (PREFIX_QUERIES, RATE): ("vllm_prefix_cache_queries_total", "vllm_gpu_prefix_cache_queries_total"),
    (PREFIX_SHARE, MOST): ("sglang_cache_hit_rate", "vllm_gpu_prefix_cache_hit_rate"),
    ("queue_seconds", QUANTILES): ("vllm_request_queue_time_seconds", "sglang_queue_time_seconds"),
    ("first_token_seconds", QUANTILES): ("vllm_time_to_first_token_seconds", "sglang_time_to_first_token_seconds"),
    ("token_seconds", QUANTILES): (
        "vllm_inter_token_latency_seconds", "vllm_time_per_output_token_seconds", "sglang_inter_token_latency_seconds",
        "sglang_time_per_output_token_seconds",
    ),
    ("request_seconds", QUANTILES): ("vllm_e2e_request_latency_seconds", "sglang_e2e_request_latency_seconds"),
}  # fmt: skip
_MIB, _MHZ = float(1 << 20), 1e6
_DCGM: Mapping[str, tuple[str, float]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("gpu_utilization", 1.0),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("gpu_memory_copy_utilization", 1.0),
    "DCGM_FI_DEV_FB_USED": ("gpu_memory_used_bytes", _MIB),
    "DCGM_FI_DEV_FB_TOTAL": ("gpu_memory_total_bytes", _MIB),
    "DCGM_FI_DEV_GPU_TEMP": ("gpu_temperature_celsius", 1.0),
    "DCGM_FI_DEV_POWER_USAGE": ("gpu_power_watts", 1.0),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": ("gpu_power_limit_watts", 1.0),
    "DCGM_FI_DEV_SM_CLOCK": ("gpu_sm_clock_hertz", _MHZ),
    "DCGM_FI_DEV_MEM_CLOCK": ("gpu_memory_clock_hertz", _MHZ),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("gpu_ecc_corrected_volatile_total", 1.0),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("gpu_ecc_uncorrected_volatile_total", 1.0),
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": ("gpu_ecc_corrected_aggregate_total", 1.0),
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": ("gpu_ecc_uncorrected_aggregate_total", 1.0),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("gpu_pcie_replay_total", 1.0),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("gpu_pcie_transmit_bytes_per_second", 1.0),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("gpu_pcie_receive_bytes_per_second", 1.0),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": ("gpu_remapped_rows_correctable", 1.0),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("gpu_remapped_rows_uncorrectable", 1.0),
    "DCGM_FI_DEV_ROW_REMAP_PENDING": ("gpu_remapped_rows_pending", 1.0),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("gpu_remapped_rows_failed", 1.0),
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": ("gpu_nvlink_replays_total", 1.0),
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": ("gpu_nvlink_recoveries_total", 1.0),
    "DCGM_FI_DEV_XID_ERRORS": (XID, 1.0),
}
MEANT: Mapping[str, Meant] = {
    **{name: Meant(series, how) for (series, how), names in _ENGINES.items() for name in names},
    **{name: Meant(series, MOST, GPU, scale) for name, (series, scale) in _DCGM.items()},
}
ORDER: Mapping[str, int] = {name: place for place, name in enumerate(MEANT)}  # the smaller is the better name
_PARTS = ("_bucket", "_sum", "_count")


def plain(name: str) -> str:
    """A page's name as the tables have it: vLLM under Ray says ``ray_vllm_x`` for ``vllm:x``."""
    return name.removeprefix("ray_").replace(":", "_")


def split(name: str) -> tuple[str, str]:
    """Name as the tables have it and '', ``_bucket``, ``_sum`` or ``_count``; name '' where nobody knows it."""
    bare = plain(name)
    if (meant := MEANT.get(bare)) is not None:
        return (bare, "") if meant.how != QUANTILES else ("", "")
    for part in _PARTS:
        family = bare.removesuffix(part)
        if family != bare and family in MEANT and MEANT[family].how == QUANTILES:
            return family, part
    return "", ""


def rollout_series() -> set[str]:
    """Every series that an engine's page may give."""
    plain_ones = {s for s, how in _ENGINES if how != QUANTILES} - {PREFIX_HITS, PREFIX_QUERIES}
    return plain_ones | {f"{s}/{word}" for s, how in _ENGINES if how == QUANTILES for word in ("p50", "p99", "mean")}
