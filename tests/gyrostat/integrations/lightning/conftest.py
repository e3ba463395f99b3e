"""Real Lightning fits in a process of their own, by this interpreter or that of GYROSTAT_LIGHTNING_PYTHON."""

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
PYTHON = os.environ.get("GYROSTAT_LIGHTNING_PYTHON", sys.executable)
PATHS = [Path(gyrostat.__file__).parents[1], HERE, HERE.parents[1]]
WORLD = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PATHS)), "OMP_NUM_THREADS": "1"}


@functools.cache
def _lacking() -> str:
    look = "import importlib.util as u; print(*[m for m in ('lightning', 'torch') if u.find_spec(m) is None])"
    done = subprocess.run([PYTHON, "-c", look], capture_output=True, text=True, check=False, timeout=60)
    missing = done.stdout.split() if done.returncode == 0 else ["a working interpreter"]
    advice = "pip install 'lightning==2.6.6', or GYROSTAT_LIGHTNING_PYTHON"
    return f"{PYTHON} lacks {', '.join(missing)}: {advice}" if missing else ""


@pytest.fixture(scope="session")
def lightning_command() -> list[str]:
    """How a script of this folder is started; skips, with the reason, where there is no Lightning."""
    if reason := _lacking():
        pytest.skip(reason)
    return [PYTHON, "-W", "ignore"]


@pytest.fixture(scope="session")
def lightning_world() -> dict[str, str]:
    """The environment of such a process."""
    return WORLD


@pytest.fixture(scope="session")
def fits(lightning_command: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """All short fits, made once: the folder they were made in, and what they came to."""
    folder = tmp_path_factory.mktemp("fits")
    command = [*lightning_command, str(HERE / "fit_all.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=WORLD)
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.rpartition("RESULT ")[2])
    return folder, {**told, "said": done.stderr}
