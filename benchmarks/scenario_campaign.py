"""Campaign: what of the scenarios is still to be played, and what has come of the rest, kept in a file throughout."""

import shutil
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import scenario_rows
from scenario_plays import Demo, Twin, demo_of, grouped, steps_of, twin_key, twin_of
from scenario_rows import Row, has_fault
from scenario_table import as_json, summaries

from gyrostat_agent.demo.child import Child
from gyrostat_agent.demo.scenarios import SCENARIOS

Play: TypeAlias = "Demo | Twin"
_USAGE = 2


class Campaign:
    """``names`` with ``seeds``, of at least ``steps`` steps each. ``rows`` of an earlier one are not played again.

    Without ``untreated`` that run is not made: no column of the table uses it.

    ``jobs`` is what ``lanes.play`` is to start, this being its onlooker; ``failed`` are processes that came to nothing.
    """

    def __init__(
        self,
        names: Sequence[str],
        seeds: Sequence[int],
        steps: int,
        out: Path,
        results: Path,
        rows: Sequence[Row],
        *,
        untreated: bool = True,
    ) -> None:
        self.jobs: deque[Play] = deque()
        self.failed: list[str] = []
        self._rows = {row.key: row for row in rows if row.scenario in SCENARIOS}
        self._untreated = untreated
        self._steps, self._out, self._results, self._began = steps, out, results, time.monotonic()
        self._twins: set[tuple[str, ...]] = set()  # asked for, in this process
        self._wanted = [(name, seed) for seed in seeds for name in names]
        for key in self._wanted:
            if key in self._rows and self._rows[key].steps != steps_of(key[0], steps):
                del self._rows[key]
        for seed in seeds:
            self._ask_for([name for name in names if (name, seed) not in self._rows], seed)
        for row in self.rows:
            self._ask_for_twin(row)

    @property
    def rows(self) -> list[Row]:
        """Those asked for that there are."""
        return [self._rows[key] for key in self._wanted if key in self._rows]

    @property
    def whole(self) -> bool:
        """Whether every scenario and seed asked for has come to something."""
        return len(self.rows) == len(self._wanted)

    def look(self, job: Play) -> None:
        """Take the rows that a demonstration has told."""
        if isinstance(job, Demo):
            for row in job.rows():
                if row.key not in self._rows:
                    self._take(row, job)

    def ended(self, job: Play, child: Child) -> None:
        """See to what a process left."""
        if isinstance(job, Demo):
            self._demo_ended(job, child)
        else:
            self._twin_ended(job, child)

    def save(self) -> None:
        """Write the results file; raises OSError."""
        rows = list(self._rows.values())
        scenario_rows.write(self._results, rows, as_json(summaries(rows)))

    def _ask_for(self, names: Sequence[str], seed: int) -> None:
        groups = grouped(names, self._steps, seed)
        self.jobs += [demo_of(group, seed, self._steps, self._out, untreated=self._untreated) for group in groups]

    def _take(self, row: Row, demo: Demo) -> None:
        self._rows[row.key] = row
        self._ask_for_twin(row)
        self.save()
        told = "mended" if row.mended else f"NOT mended: {row.why}; its files: {demo.files(row.scenario)}"
        rewards = f"treated {_number(row.treated)}, untreated {_number(row.untreated)}, clean {_number(row.clean)}"
        self._say(f"{row.scenario} seed {row.seed}: {told}; reward {rewards}; steps lost: {row.lost_steps}")

    def _ask_for_twin(self, row: Row) -> None:
        """Have the twin made, or take it from another row whose twin is the same run."""
        if row.twin is not None or not row.went_back_to or not has_fault(row.scenario):
            return
        key = twin_key(row)
        known = [r.twin for r in self._rows.values() if r.twin is not None and r.went_back_to and twin_key(r) == key]
        if known:
            self._rows[row.key] = row._replace(twin=known[0])
        elif key not in self._twins:
            self._twins.add(key)
            self.jobs.appendleft(twin_of(row, self._out))

    def _demo_ended(self, job: Demo, child: Child) -> None:
        missing = [name for name in job.names if (name, job.seed) not in self._rows]
        for name in job.names:
            if name not in missing and self._rows[name, job.seed].mended:
                job.forget_checkpoints(name)
        if missing:
            self._fail(f"{missing[0]} seed {job.seed} came to nothing", child)
            # What comes after the one that failed was not begun. Status 2: whatever it is, it meets them all.
            if child.status != _USAGE:
                self._ask_for(missing[1:], job.seed)

    def _twin_ended(self, job: Twin, child: Child) -> None:
        reward = job.reward()
        if reward is None:
            self._fail(f"{job.title} came to nothing", child)
            return
        key = twin_key(job.row)
        for row in self.rows:
            if row.twin is None and row.went_back_to and has_fault(row.scenario) and twin_key(row) == key:
                self._rows[row.key] = row._replace(twin=reward)
        self.save()
        shutil.rmtree(job.folder, ignore_errors=True)
        self._say(f"{job.title}: reward {reward:.3f}")

    def _fail(self, what: str, child: Child) -> None:
        self.failed.append(f"{what} (exit status {child.status}; {child.log})")
        self._say(f"{self.failed[-1]}; its last words:\n{child.last_words() or '  (it said nothing)'}")

    def _say(self, line: str) -> None:
        minutes = (time.monotonic() - self._began) / 60
        print(f"[{len(self.rows)}/{len(self._wanted)}, {minutes:.0f} min] {line}", file=sys.stderr, flush=True)


def _number(reward: float | None) -> str:
    return "-" if reward is None else f"{reward:.3f}"
