"""A real Prometheus that scrapes one agent every second, with the project's rules, and answers queries."""

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from board_files import RULES

CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{folder}/*.rules.yaml"]
scrape_configs:
  - job_name: gyrostat
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """One that runs; ``address`` is its host and port."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.began = time.time()

    def answers(self, expr: str) -> list[dict[str, Any]]:
        """The series that a query finds since the beginning; raises where it is no good query."""
        span = {"start": f"{self.began:.3f}", "end": f"{time.time():.3f}", "step": "1"}
        return self._get("query_range", {"query": expr, **span})["result"]

    def ready(self) -> bool:
        """True once it takes queries."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _get(self, path: str, words: dict[str, str]) -> Any:
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]


@contextmanager
def prometheus(program: str, folder: Path, target: str, port: int) -> Iterator[Prometheus]:
    """It scrapes ``target`` and evaluates the rules every second; its data lies in ``folder``."""
    for rules in RULES.glob("*.rules.yaml"):
        (folder / rules.name).write_text(rules.read_text().replace("interval: 1m", "interval: 1s"))
    (folder / "prometheus.yaml").write_text(CONFIGURATION.format(folder=folder, target=target))
    words = [f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data"]
    words += [f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([program, *words], stdout=log, stderr=log)
    try:
        yield Prometheus(f"127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(20)
