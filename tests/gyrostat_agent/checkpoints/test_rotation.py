"""A trainer that keeps the newest few and saves poison: the last healthy checkpoint is there when it is needed."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import NAN, Bench, said
from checkpoint_folders import contents, floats, packed, written

from gyrostat_agent.checkpoints import CheckpointSource, InlineVerifier
from gyrostat_agent.checkpoints.pins import FOLDER
from gyrostat_agent.sources.commands import give
from gyrostat_rules.entries import EntryKind

_POISONED = packed({"head.weight": ("F32", floats(10)[:-4] + b"\x00\x00\xc0\x7f")})


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A run whose checkpoints are real folders."""
    made = Bench(tmp_path, clock=time.time)
    made.verdicts = CheckpointSource(InlineVerifier(), pinning=True)  # type: ignore[assignment]
    yield made
    made.close()
    made.verdicts.close()  # type: ignore[attr-defined]


def test_poison_that_is_saved_does_not_push_out_the_last_healthy_one(bench: Bench) -> None:
    """Keep 3: three ill ones are saved while a person is waited for, and the run goes back to the pin of the fourth."""
    control = bench.control()
    agent = bench.agent(approvals=True)
    root = Path(bench.root)

    def passes(steps: range, loss: float = 0.5, ill: bool = False) -> None:
        for step in steps:
            bench.now += 1.5
            bench.tell(step, loss)
            if step % 5 == 0:
                files = {**contents(step), "model.safetensors": _POISONED} if ill else contents(step)
                written(root, step, files, segment=0, time=bench.now)
                for old in sorted(root.glob("step-*"))[:-3]:
                    shutil.rmtree(old)
            while agent.once():
                pass

    passes(range(1, 22))
    passes(range(22, 42), NAN, ill=True)
    assert sorted(path.name for path in root.glob("step-*")) == [f"step-{step:08d}" for step in (30, 35, 40)]
    waiting = agent.engine.state.incidents[-1].actions[-1]
    assert (waiting.remedy, waiting.verdict) == ("rollback", "hold")
    assert waiting.arguments["checkpoint"] == str(root / FOLDER / "step-00000020")
    give(bench.run, "approve", {"action": waiting.id, "by": "Ada"})
    while agent.once():
        pass
    control.apply(42)
    assert bench.targets == [str(root / FOLDER / "step-00000020")]
    assert said(agent, EntryKind.SOURCE) == []
