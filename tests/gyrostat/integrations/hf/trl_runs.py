"""Real TRL runs in a process of their own, in the interpreter that has TRL: this one, or GYROSTAT_TRL_PYTHON."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gyrostat

HERE = Path(__file__).parent
PYTHON = os.environ.get("GYROSTAT_TRL_PYTHON", sys.executable)
WORLD = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(Path(gyrostat.__file__).parents[1]), str(HERE)]),
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


@functools.cache
def lacking() -> str:
    """Why no TRL run can be made here, or ''."""
    look = "import importlib.util as u; print(*[m for m in ('trl', 'datasets') if u.find_spec(m) is None])"
    done = subprocess.run([PYTHON, "-c", look], capture_output=True, text=True, check=False, timeout=60)
    missing = done.stdout.split() if done.returncode == 0 else ["a working interpreter"]
    return f"{PYTHON} lacks {', '.join(missing)}: pip install 'trl==1.16.0', or GYROSTAT_TRL_PYTHON" if missing else ""


def need_trl() -> None:
    """Skip, with the reason, where there is no TRL."""
    if reason := lacking():
        pytest.skip(reason)


def results(script: str, folder: Path, *more: str) -> dict[str, Any]:
    """What one of the scripts here prints behind ``RESULT``; its error is the test's."""
    command = [PYTHON, "-W", "ignore", str(HERE / script), str(folder), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=WORLD)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.rpartition("RESULT ")[2])
    return found
