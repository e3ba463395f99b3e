"""The /metrics page of a vLLM engine, as prometheus_client renders it: its names and bounds, with values of our own."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

LATENCY = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0)
FIRST = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0)
_GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "gpu_cache_usage_perc")
_COUNTERS = (
    "num_preemptions", "prompt_tokens", "generation_tokens", "prefix_cache_queries", "prefix_cache_hits",
    "gpu_prefix_cache_queries", "gpu_prefix_cache_hits",
)  # fmt: skip
_HISTOGRAMS = {
    "time_to_first_token_seconds": FIRST, "time_per_output_token_seconds": FIRST, "inter_token_latency_seconds": FIRST,
    "e2e_request_latency_seconds": LATENCY, "request_queue_time_seconds": LATENCY,
    "request_inference_time_seconds": LATENCY, "request_prefill_time_seconds": LATENCY,
    "request_decode_time_seconds": LATENCY, "iteration_tokens_total": (1, 8, 16, 32, 64, 128, 256, 512),
}  # fmt: skip


class VllmPage:
    """The metrics of ``engines`` engines behind one server, by vLLM's name without its prefix."""

    def __init__(self, engines: int = 1) -> None:
        self.registry = CollectorRegistry()
        labels = ["model_name", "engine"]
        made: dict[str, Gauge | Counter | Histogram] = {}
        for name in _GAUGES:
            made[name] = Gauge(f"vllm:{name}", f"{name} of the scheduler.", labels, registry=self.registry)
        for name in _COUNTERS:
            made[name] = Counter(f"vllm:{name}", f"{name} so far.", labels, registry=self.registry)
        for name, bounds in _HISTOGRAMS.items():
            made[name] = Histogram(f"vllm:{name}", f"{name}.", labels, buckets=bounds, registry=self.registry)
        self._made = made
        for engine in range(engines):
            for name in made:
                self.of(name, engine)

    def of(self, name: str, engine: int = 0):  # type: ignore[no-untyped-def]  # three classes without a common one
        """One metric of one engine."""
        return self._made[name].labels('org/"Qwen3"-30B,A3B}', str(engine))

    def text(self) -> str:
        """The page."""
        return generate_latest(self.registry).decode()

    @contextmanager
    def served(self) -> Iterator[str]:
        """Its address while it is served, as vLLM serves it."""
        server, thread = start_http_server(0, "127.0.0.1", self.registry)
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
