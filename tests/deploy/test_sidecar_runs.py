"""The sidecar's own arguments and environment, as they are written down, in a real agent process."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gyrostat

DEADLINE = 60.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The run directory's path in a volume that is as an emptyDir: anybody's."""
    volume = tmp_path / "volume"
    volume.mkdir()
    volume.chmod(0o777)
    return volume / "run"


@pytest.fixture
def environment(written: Any, place: Path) -> dict[str, str]:
    """What the sidecar is given, with the pod's label read."""
    given = {e["name"]: e.get("value", written.labels["gyrostat-run"]) for e in written.sidecar["env"]}
    return {**os.environ, **given, "GYROSTAT_RUN_DIR": str(place)}


@pytest.fixture
def page(written: Any, place: Path, environment: dict[str, str]) -> Iterator[str]:
    """Where a sidecar serves, at a free port of every address; it is told to end as the kubelet does."""
    words = [word.replace("/run/gyrostat/run", str(place)) for word in written.sidecar["args"]]
    words = [re.sub(r"^(--listen=.*):\d+$", r"\1:0", word) for word in words]
    command = [sys.executable, "-m", "gyrostat_agent", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            found = next(m for line in process.stderr if (m := re.search(r"http://0\.0\.0\.0:(\d+)", line)))
            yield f"http://127.0.0.1:{found[1]}"
        finally:
            process.terminate()
            rest = process.communicate(timeout=DEADLINE)[1]
    assert process.returncode == 0, rest


def get(url: str) -> tuple[int, str]:
    """Asked as the kubelet and Prometheus do: by the pod's address."""
    asked = urllib.request.Request(url, headers={"Host": "10.0.0.7:9466"})
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_it_is_alive_while_it_is_blind_and_sees_the_trainer(
    page: str, place: Path, environment: dict[str, str]
) -> None:
    """Alive before any trainer has spoken, and not ready; then the run is on the page, under the label's name."""
    assert get(f"{page}/healthz")[0] == 200
    assert get(f"{page}/readyz")[0] == 503
    telemetry = gyrostat.Telemetry(str(place), run=environment["GYROSTAT_RUN"])
    telemetry.record(1, loss=0.5)
    end = time.monotonic() + DEADLINE
    while 'gyrostat_step{rank="0",role="trainer"} 1.0' not in (text := get(f"{page}/metrics")[1]):
        assert time.monotonic() < end, text
        time.sleep(0.05)
    assert 'gyrostat_run{mode="shadow",run="run"} 1.0' in text
    told = subprocess.run(
        [sys.executable, "-m", "gyrostat_agent", "status", "--json"],
        capture_output=True, text=True, env=environment, timeout=DEADLINE,
    )  # fmt: skip
    assert told.returncode == 0 and json.loads(told.stdout)["run"] == "run", told.stderr
