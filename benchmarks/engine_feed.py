"""What feeding one record to the engine costs: 30 values, one rank, eight and 256, with and without expert counts.

    python benchmarks/engine_feed.py [--json] [--steps 2000]

Printed are microseconds a record: median and 99th percentile of the time of a feed, divided by its records. A
batch holds one step of all ranks, as the agent reads it while the run goes on. Time of this process alone, so
that a busy machine shows less; the counts are reduced here, in the sidecar, never in the trainer.
"""

import argparse
import json
import platform
import random
import time
from typing import NamedTuple

from gyrostat.wire import ExpertLoad, Hello, Record
from gyrostat_agent.cli.options import builtin
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Batch, Command, Pack

LAYERS, EXPERTS, VALUES = 61, 256, 30


class Case(NamedTuple):
    """One row: how many ranks, whether each record carries 61 x 256 counts, and how many records one batch holds."""

    name: str
    ranks: int
    counts: bool
    steps_a_batch: int = 1


CASES = (
    Case("1 rank", 1, False),
    Case("8 ranks", 8, False),
    Case("256 ranks", 256, False),
    Case("1 rank, backlog of 100 steps", 1, False, 100),
    Case("1 rank, 61 x 256 counts", 1, True),
    Case("8 ranks, 61 x 256 counts", 8, True),
)


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--steps", type=int, default=2000, help="steps a case (default: 2000)")
    given = parser.parse_args()
    rows = {case.name: measure(case, _steps(case, given.steps)) for case in CASES}
    if given.json:
        print(json.dumps({"unit": "us/record", "python": platform.python_version(), "cases": rows}, indent=2))
        return
    for name, row in rows.items():
        print(
            f"{name:32} p50 {row['p50']:9.1f} µs   p99 {row['p99']:9.1f} µs   state {row['state_bytes'] / 1e3:7.0f} kB"
        )


def _steps(case: Case, wanted: int) -> int:
    return max(20, wanted // 20) if case.counts or case.ranks > 8 else wanted


def measure(case: Case, steps: int) -> dict[str, float]:
    """Microseconds a record over ``steps`` steps, and what the state weighs at their end."""
    engine = begun(case.ranks)
    load = ExpertLoad(LAYERS, 1, EXPERTS, tuple(200 + i % 97 for i in range(LAYERS * EXPERTS))) if case.counts else None
    costs = []
    for first in range(0, steps, case.steps_a_batch):
        records = tuple(
            record(step, rank, load) for step in range(first, first + case.steps_a_batch) for rank in range(case.ranks)
        )
        began = time.process_time_ns()
        engine.feed(Batch(1000.0 + first, records))
        costs.append((time.process_time_ns() - began) / 1e3 / len(records))
    costs.sort()
    return {
        "p50": round(costs[len(costs) // 2], 2),
        "p99": round(costs[len(costs) * 99 // 100], 2),
        "state_bytes": len(engine.snapshot()),
    }


def begun(ranks: int) -> Engine:
    """An engine with the core pack, in mode act, to which all ranks have said Hello."""
    engine = Engine()
    engine.feed(Pack(0.0, "digest", builtin()))
    engine.feed(Command(0.0, "configure", {"mode": "act"}))
    engine.feed(Batch(1.0, tuple(Hello("run", "trainer", rank, ranks, f"life-{rank}") for rank in range(ranks))))
    return engine


def record(step: int, rank: int, load: ExpertLoad | None) -> Record:
    """A healthy record of 30 values, that vary as a run's do: what never moves is looked at too cheaply."""
    noise = random.Random(1000 * step + rank).lognormvariate
    values = {
        "loss": noise(0, 0.1), "grad_norm": noise(-0.7, 0.3), "entropy": 0.7 * noise(0, 0.1), "kl": noise(-4.6, 0.5),
        "step_applied": 1.0, "params_finite": 1.0,
    }  # fmt: skip
    values |= {f"metric/{i}": step + i / 7 for i in range(VALUES - len(values))}
    return Record("trainer", rank, f"life-{rank}", 0, step, step, 1000.0 + step, values, load)


if __name__ == "__main__":
    main()
