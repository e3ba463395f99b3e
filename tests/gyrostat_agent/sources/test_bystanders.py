"""Engines and GPUs beside a trainer: what is decided on the trainer is the same with them and without."""

import math
import random

from gyrostat.wire import Record
from gyrostat_agent.cli.options import builtin
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Batch, Command, Pack, Tick, Verb

CORE = builtin()


def decided(*, bystanders: bool) -> list[tuple[str, str, int, str]]:
    """What is decided on a run in which something breaks now and then, with three scrapes a step or none."""
    engine, chance = Engine(), random.Random(1)
    words = {"mode": "shadow", "approvals": True, "run": "r", "next_directive": 1}
    entries: list[Entry] = [*engine.feed(Pack(0.0, "d", CORE)), *engine.feed(Command(0.0, Verb.CONFIGURE, words))]
    for step in range(1, 240):
        values = {
            "loss": math.nan if step == 100 else 1.0 + 0.01 * chance.random(),
            "grad_norm": math.nan if 150 <= step < 153 else 50.0 if 170 < step < 175 else 0.5 + 0.1 * chance.random(),
            "reward": 0.02 if step > 200 else 0.5 + 0.05 * chance.random(),
        }
        at = 1000.0 + 3.0 * step
        entries += engine.feed(Batch(at, (Record("trainer", 0, "i", 0, step, step, at, values),)))
        for scrape in range(3):
            now = at + 0.9 * scrape + 0.1
            told = {"rollout": {"requests_running": 3.0, "cache_use": 0.9}, "gpu": {"gpu_utilization": 50.0}}
            items = [Record(role, 0, "u", 0, 3 * step + scrape, step + 1, now, told[role]) for role in told]
            entries += engine.feed(Batch(now, tuple(items))) if bystanders else []
            entries += engine.feed(Tick(now + 0.2))
    return [(e.kind, e.state, e.step, e.text) for e in entries]


def test_bystanders_change_nothing() -> None:
    """Their records bear the step that is being worked on, come three times in it, and are of no trainer's rank."""
    alone = decided(bystanders=False)
    assert decided(bystanders=True) == alone and len(alone) > 10
