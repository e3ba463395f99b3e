"""Importing the SDK: what it costs a training process, and what it drags in."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import gyrostat

SOURCE = str(Path(gyrostat.__file__).parents[1])
PREPARED = f"import sys; sys.path.insert(0, {SOURCE!r})\n"
TIMES = 9
HEAVY = (
    "asyncio", "dataclasses", "email", "importlib.resources", "inspect", "logging", "numpy", "pathlib", "secrets",
    "socket", "ssl", "subprocess", "tempfile", "torch", "urllib", "uuid",
)  # fmt: skip


def python(code: str) -> str:
    """What a bare interpreter prints: no environment, no site-packages."""
    command = [sys.executable, "-I", "-S", "-c", PREPARED + code]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def cpu_seconds(*codes: str) -> list[float]:
    """User and system time of the quickest of several interpreters for each of ``codes``, in turns."""
    best = [float("inf")] * len(codes)
    for _ in range(TIMES):
        for i, code in enumerate(codes):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            python(code)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            best[i] = min(best[i], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def megabytes(code: str) -> float:
    """Memory of its own (not of shared libraries) that an interpreter holds afterwards; median of several."""
    shown = "\nprint(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('RssAnon')))"
    return sorted(int(python(code + shown)) for _ in range(TIMES))[TIMES // 2] / 1024


def test_it_imports_in_25_milliseconds() -> None:
    """A training script starts no later than one would notice.

    On a busy machine the same instructions take more CPU time: then three times what ``json`` and ``typing`` take,
    which the SDK and nearly every program need, is the limit.
    """
    bare, common, full = cpu_seconds("pass", "import json, typing", "import gyrostat")
    limit = max(0.025, 3 * (common - bare))
    assert full - bare < limit, f"{(full - bare) * 1e3:.1f} ms of CPU time, of {limit * 1e3:.1f}"


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc: memory cannot be read here")
def test_it_takes_3_megabytes() -> None:
    """The SDK and all that it imports of the standard library stay below 3 MB."""
    taken = megabytes("import gyrostat") - megabytes("pass")
    assert taken < 3.0, f"{taken:.2f} MB"


def test_it_drags_nothing_heavy_in() -> None:
    """No framework, and none of the standard library's slow modules."""
    found = python(f"import gyrostat; print(*[m for m in {HEAVY!r} if m in sys.modules])")
    assert found.split() == []


def test_it_needs_the_standard_library_alone() -> None:
    """Every module that the import loads belongs to the standard library or to the SDK."""
    code = "before = set(sys.modules); import gyrostat; print(*{m.split('.')[0] for m in set(sys.modules) - before})"
    assert {m for m in python(code).split() if m not in sys.stdlib_module_names} == {"gyrostat"}
