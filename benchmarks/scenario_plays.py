"""Plays: the two kinds of process that the scenario campaign starts: the product's demonstration, and control twins.

A control twin says what a run comes to by luck alone: the clean run, its random generator re-seeded before each step
at which the treated run went on after it had gone back.
"""

import contextlib
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from scenario_rows import Row, reduced

from gyrostat_agent.demo.scenarios import CLEAN, RUNS, SCENARIOS, Layout, command
from gyrostat_agent.demo.stage import folder_of

_PLAYER = Path(__file__).with_name("scenario_player.py")
_LAST = 10  # of the steps, as the demonstration's own rewards


class Demo(NamedTuple):
    """``gyrostat demo`` of some scenarios that share their clean run, with one seed; ``untreated``: with that run."""

    names: tuple[str, ...]
    seed: int
    steps: int
    folder: Path
    untreated: bool = True

    @property
    def title(self) -> str:
        """For people."""
        return f"{', '.join(self.names)} seed {self.seed}"

    @property
    def command(self) -> list[str]:
        """How it is started."""
        player = ["-m", "gyrostat_agent", "demo"] if self.untreated else [str(_PLAYER)]
        return [
            sys.executable, *player, "--scenario", ",".join(self.names),
            "--seeds", "1", "--seed-from", str(self.seed), "--steps", str(self.steps), "--no-color",
            "--json", str(self._figures), "--out", str(self._runs),
        ]  # fmt: skip

    @property
    def _figures(self) -> Path:
        return self.folder / "figures.json"

    @property
    def _runs(self) -> Path:
        return self.folder / "runs"

    def rows(self) -> list[Row]:
        """What it has told so far; nothing where it is just being written."""
        try:
            told = json.loads(self._figures.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [reduced(one) for one in told["runs"]]

    def files(self, name: str) -> Path:
        """Where the demonstration keeps the three runs of a scenario."""
        return folder_of(SCENARIOS[name], self.seed, str(self._runs), len(self.names) == 1)

    def forget_checkpoints(self, name: str) -> None:
        """Delete a scenario's checkpoints, by far the most of what it leaves (80 MB)."""
        for run in RUNS:
            shutil.rmtree(Layout(self.files(name) / run).checkpoints, ignore_errors=True)


class Twin(NamedTuple):
    """The control twin of ``row``'s treated run."""

    row: Row
    folder: Path

    @property
    def title(self) -> str:
        """For people."""
        return f"the twin of {self.row.scenario} seed {self.row.seed}"

    @property
    def command(self) -> list[str]:
        """How it is started."""
        return _twin_command(self.row, Layout(self.folder))

    def reward(self) -> float | None:
        """Mean reward of its last ten steps; None where it died or left no summary."""
        with contextlib.suppress(OSError, ValueError):
            told = json.loads(Layout(self.folder).summary.read_text(encoding="utf-8"))
            last = [math.nan if reward is None else reward for _, reward in told["rewards"][-_LAST:]]
            if not told["died"] and last and math.isfinite(sum(last)):
                return float(sum(last) / len(last))
        return None


def steps_of(name: str, steps: int) -> int:
    """How many steps a scenario takes where ``steps`` are asked for."""
    return max(steps, SCENARIOS[name].least_steps)


def grouped(names: Iterable[str], steps: int, seed: int) -> list[tuple[str, ...]]:
    """The scenarios by their clean run: those that share it can have it made once, by one process."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        clean = command(SCENARIOS[name], CLEAN, Layout(Path()), steps_of(name, steps), seed)
        groups.setdefault(tuple(clean), []).append(name)
    return [tuple(group) for group in groups.values()]


def demo_of(names: tuple[str, ...], seed: int, steps: int, out: Path, *, untreated: bool = True) -> Demo:
    """A demonstration, its folder made and rid of an older one's figures; raises OSError."""
    # The count is in the name because the demonstration lays its files out otherwise where it has one scenario alone.
    folder = out.absolute() / f"{names[0]}-{len(names)}-seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    demo = Demo(names, seed, steps, folder, untreated)
    demo._figures.unlink(missing_ok=True)
    return demo


def reseeded_at(row: Row) -> list[int]:
    """The steps before which the generator of a row's twin starts anew: each the first after one gone back to."""
    return sorted({step + 1 for step in row.went_back_to})


def twin_key(row: Row) -> tuple[str, ...]:
    """Alike for rows whose twins are one run: same seed, steps, options and steps of re-seeding."""
    return tuple(_twin_command(row, Layout(Path())))


def twin_of(row: Row, out: Path) -> Twin:
    """The twin of a row that went back, its folder a new one: the trainer would go on from old checkpoints."""
    out.mkdir(parents=True, exist_ok=True)
    twin = Twin(row, Path(tempfile.mkdtemp(prefix=f"twin-{row.scenario}-{row.seed}-", dir=out.absolute())))
    Layout(twin.folder).run_dir.mkdir(mode=0o700)
    return twin


def _twin_command(row: Row, layout: Layout) -> list[str]:
    started = command(SCENARIOS[row.scenario], CLEAN, layout, row.steps, row.seed)
    return [*started, *(word for step in reseeded_at(row) for word in ("--fault", f"reseed@{step}"))]
