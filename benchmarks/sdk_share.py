"""The SDK's share of a step: Telemetry.record and Control.apply, timed inside a run of the reference trainer.

    python benchmarks/sdk_share.py [--quick] [--json]

The trainer is the real one, with a checkpoint every fifth step and a run directory on tmpfs; both calls are wrapped
by a clock, and nothing else is changed. Control.apply stands in the step that it begins. The bound is that of the
mean share over steps, upper 95 %, by Student's t. Goal: under 0.5 % of the step. Exit status 1 where it is above.
"""

import contextlib
import io
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from figures import arguments, cpu_ticks, idle_share, quantiles, show

from gyrostat import Control, Telemetry

GOAL = 0.005
_T95 = 1.69  # one-sided, 95 %, 34 degrees of freedom or more
_FIRST = 5  # steps left out: imports, caches, the first file


class Clock:
    """Adds up what calls take, step by step. ``steps`` holds (seconds of record, of apply, of the whole step)."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float, float]] = []
        self._spent = {"record": 0.0, "apply": 0.0}
        self._began = time.perf_counter()

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, with its time added to ``name``."""

        def timed(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*given, **named)
            finally:
                self._spent[name] += time.perf_counter() - began
                if name == "record":
                    self._end_step()

        return timed

    def _end_step(self) -> None:
        now = time.perf_counter()
        self.steps.append((self._spent["record"], self._spent["apply"], now - self._began))
        self._spent, self._began = {"record": 0.0, "apply": 0.0}, now


def measure(steps: int) -> list[tuple[float, float, float]]:
    """One run of the reference trainer; what each step's calls took."""
    from gyrostat_reference.__main__ import main as train

    clock = Clock()
    Telemetry.record = clock.timed("record", Telemetry.record)  # type: ignore[method-assign]
    Control.apply = clock.timed("apply", Control.apply)  # type: ignore[method-assign]
    base = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=base) as folder:
        run = Path(folder, "run")
        (run / "directives").mkdir(parents=True, mode=0o700)
        (run / "directives" / "bell").write_bytes(bytes(8))
        (run / "directives" / "bell").chmod(0o600)
        run.chmod(0o700)
        with contextlib.redirect_stdout(io.StringIO()):
            status = train(["--steps", str(steps), "--run-dir", str(run), "--checkpoints", f"{folder}/checkpoints"])
    if status:
        raise SystemExit(f"sdk_share: the trainer ended with status {status}")
    return clock.steps[_FIRST:]


def bound(shares: list[float]) -> float:
    """Upper 95 % bound of the mean."""
    return mean(shares) + _T95 * stdev(shares) / math.sqrt(len(shares))


def main() -> int:
    asked = arguments(__doc__)
    before = cpu_ticks()
    found = measure((40 if asked.quick else 120) + _FIRST)
    rows: list[dict[str, object]] = []
    calls = {"Telemetry.record": [r for r, _, _ in found], "Control.apply": [a for _, a, _ in found]}
    whole = [s for _, _, s in found]
    for name, seconds in {**calls, "both": [r + a for r, a, _ in found]}.items():
        shares = [t / s for t, s in zip(seconds, whole, strict=True)]
        share = {"mean share %": round(100 * mean(shares), 4), "upper 95 % bound": round(100 * bound(shares), 4)}
        rows.append({"call": name, **quantiles(seconds), **share})
    rows.append({"call": "step", **quantiles(whole)})
    reached = bound([(r + a) / s for r, a, s in found])
    result = {
        "unit": "microseconds", "steps": len(found), "bound %": round(100 * reached, 4), "goal": f"< {100 * GOAL:g} %",
        "idle share": idle_share(before, cpu_ticks()),
    }  # fmt: skip
    show("sdk_share", rows, result, asked.json)
    return 0 if reached < GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
