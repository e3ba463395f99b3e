"""Campaign: which draws are still to be played, and what came of the rest, kept in a file throughout."""

import json
import shutil
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from chaos import disks
from chaos.draw import Draw
from chaos.rows import Row, write
from chaos.single import NOTES, ROW
from chaos.verdict import MENDED
from gyrostat_agent.demo.child import Child

_MAIN = Path(__file__).resolve().parents[1] / "chaos_runs.py"


class Job(NamedTuple):
    """A draw to be played, and its folder."""

    draw: Draw
    folder: Path

    @property
    def command(self) -> list[str]:
        """How it is started."""
        apart = list(disks.NAMESPACE) if disks.needed(self.draw) else []
        return [*apart, sys.executable, str(_MAIN), "--single", self.draw.encode(), str(self.folder)]


class Campaign:
    """``draws``, less those that ``known`` has rows of. ``results`` None: nothing is kept of it.

    ``jobs`` is what ``lanes.play`` is to start, this being its onlooker; ``failed`` are those that came to nothing.
    """

    def __init__(
        self, draws: Sequence[Draw], known: Sequence[Row], out: Path, results: Path | None, *, keep: bool = False
    ) -> None:
        self.failed: list[str] = []
        self.notes: list[str] = []
        self._rows = {row.key: row for row in known}
        self._results, self._keep, self._began = results, keep, time.monotonic()
        self._wanted = [_key(draw) for draw in draws]
        able = disks.possible()
        self.jobs: deque[Job] = deque()
        for draw in draws:
            if disks.needed(draw) and not able:
                self.failed.append(f"{draw.line}: not played, it needs the right to mount a small disk")
            elif _key(draw) not in self._rows:
                self.jobs.append(Job(draw, _folder(out, draw)))

    @property
    def rows(self) -> list[Row]:
        """Those asked for that there are."""
        return [self._rows[key] for key in self._wanted if key in self._rows]

    def look(self, job: Job) -> None:
        """A run under way tells nothing yet."""

    def ended(self, job: Job, child: Child) -> None:
        """Take its row."""
        try:
            row = Row(**json.loads((job.folder / ROW).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            said = f"{job.draw.line}: came to nothing (exit status {child.status}; {child.log})"
            self.failed.append(said)
            self._say(f"{said}; its last words:\n{child.last_words() or '  (it said nothing)'}")
            return
        self._rows[row.key] = row
        self.notes = (job.folder / NOTES).read_text(encoding="utf-8").splitlines()
        self.notes.append(f"{row.verdict}: {row.why}")
        self.save()
        where = "" if row.verdict == MENDED and not self._keep else f"; its files: {job.folder}"
        self._say(f"{row.draw}: {row.verdict}: {row.why} ({row.seconds:.0f} s){where}")
        self._tidy(job, row)

    def save(self) -> None:
        """Write the results file; raises OSError."""
        if self._results is not None:
            write(self._results, self._rows.values())

    def _tidy(self, job: Job, row: Row) -> None:
        """Of a mended run nothing is kept: a run leaves some 60 MB, most of it checkpoints."""
        if row.verdict == MENDED and not self._keep:
            shutil.rmtree(job.folder, ignore_errors=True)

    def _say(self, line: str) -> None:
        minutes = (time.monotonic() - self._began) / 60
        print(f"[{len(self.rows)}/{len(self._wanted)}, {minutes:.0f} min] {line}", file=sys.stderr, flush=True)


def _key(draw: Draw) -> tuple[str, int]:
    return ("chaos" if draw.faults or draw.disturbances else "clean"), draw.seed


def _folder(out: Path, draw: Draw) -> Path:
    """A new folder: the trainer would go on from an older run's checkpoints."""
    folder = out.absolute() / f"{_key(draw)[0]}-{draw.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    return folder
