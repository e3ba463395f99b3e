"""What telling 30 scalars costs the trainer, against what other loggers take for the same, in one run.

    python benchmarks/emit.py [--quick] [--json]

Emitters take turns, in two conditions: warm, call after call; and cold, with 4 MiB copied before each call, as a
trainer has done something else in between. Beside them stands the physical limit: packing the values and one
``write(2)``. Ratios are what counts: absolute times are this machine's, at its idle share. Exit status 1 where
telling (record and Control.apply) costs more than setting thirty gauges of prometheus_client, the one peer that
is always installed, on a warm cache; ratios that fall short of the goals are listed.
"""

import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from figures import arguments, cpu_ticks, idle_share, quantiles, show

from gyrostat import Control, Knob, Telemetry

NAMES = [f"series_{i}" for i in range(30)]
GOALS = {"prometheus_client": 2.0, "tensorboard": 150.0, "wandb": 50.0}  # at least so many times the cost of telling
Emit = Callable[[int, dict[str, float]], object]


def telling(folder: Path) -> Emit:
    """Ours: a record, then the look for a directive at the step's boundary; a sidecar has laid its bell."""
    (folder / "directives").mkdir(mode=0o700)
    bell = folder / "directives" / "bell"
    bell.write_bytes(bytes(8))
    bell.chmod(0o600)
    telemetry = Telemetry(folder)
    control = Control(telemetry, [Knob("lr", lambda: 1.0, lambda value: None, 0.0, 2.0)])

    def emit(step: int, values: dict[str, float]) -> None:
        telemetry.record(step, **values)
        control.apply(step)

    return emit


def limit(folder: Path) -> Emit:
    """What no emitter can be below: pack thirty floats behind a header, write them."""
    layout = struct.Struct(f"<60s{len(NAMES)}d")
    fd = os.open(folder / "limit", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return lambda step, values: os.write(fd, layout.pack(b"", *values.values()))


def prometheus(folder: Path) -> Emit:
    """The peer that only sets numbers in memory: nothing is durable, the last value alone is kept."""
    from prometheus_client import CollectorRegistry, Gauge

    registry = CollectorRegistry()
    gauges = {name: Gauge(name, name, registry=registry) for name in NAMES}

    def emit(step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            gauges[name].set(value)

    return emit


def tensorboard(folder: Path) -> Emit:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))

    def emit(step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return emit


def wandb(folder: Path) -> Emit:
    import wandb as library

    run = library.init(mode="offline", dir=str(folder), settings=library.Settings(silent=True))
    return lambda step, values: run.log(values, step=step)


EMITTERS: dict[str, tuple[Callable[[Path], Emit], str]] = {
    "gyrostat": (telling, ""),
    "limit: pack + write": (limit, ""),
    "prometheus_client": (prometheus, "prometheus_client"),
    "tensorboard": (tensorboard, "tensorboard"),
    "wandb": (wandb, "wandb"),
}


def measure(emitters: dict[str, Emit], rounds: int, copied: int) -> dict[str, dict[str, float]]:
    """Quantiles of each emitter; they take turns, each round beginning with another one."""
    times: dict[str, list[float]] = {name: [] for name in emitters}
    source, target = bytearray(copied), bytearray(copied)
    names = list(emitters)
    for step in range(rounds):
        values = {name: step + i / 7 for i, name in enumerate(NAMES)}
        for name in names[step % len(names) :] + names[: step % len(names)]:
            target[:] = source
            began = time.perf_counter()
            emitters[name](step, values)
            times[name].append(time.perf_counter() - began)
    return {name: quantiles(measured[rounds // 10 :]) for name, measured in times.items()}


def rows_of(condition: str, found: dict[str, dict[str, float]]) -> list[dict[str, object]]:
    ours = found["gyrostat"]["p50"]
    rows: list[dict[str, object]] = []
    for name in EMITTERS:
        told: dict[str, object] = {"p50": "not installed"}
        if name in found:
            told = {**found[name], "x gyrostat": round(found[name]["p50"] / ours, 2)}
        rows.append({"caches": condition, "emitter": name, **told})
    return rows


def main() -> int:
    asked = arguments(__doc__)
    present = {name: make for name, (make, package) in EMITTERS.items() if not package or find_spec(package)}
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    rounds, before = 400 if asked.quick else 4000, cpu_ticks()
    with tempfile.TemporaryDirectory(dir=base) as folder:
        emitters = {}
        for name, make in present.items():
            own = Path(folder) / name.split(":")[0]
            own.mkdir(mode=0o700)
            emitters[name] = make(own)
        warm, cold = measure(emitters, 4 * rounds, 0), measure(emitters, rounds, 4 << 20)
    ratios = {name: round(warm[name]["p50"] / warm["gyrostat"]["p50"], 2) for name in GOALS if name in warm}
    result = {
        "unit": "microseconds a step of 30 scalars",
        "goals (warm)": {name: f"{GOALS[name]:g}x gyrostat" for name in ratios},
        "short of": {name: ratio for name, ratio in ratios.items() if ratio < GOALS[name]},
        "idle share": idle_share(before, cpu_ticks()),
    }
    show("emit", rows_of("warm", warm) + rows_of("cold", cold), result, asked.json)
    return 1 if ratios["prometheus_client"] < 1 else 0


if __name__ == "__main__":
    sys.exit(main())
