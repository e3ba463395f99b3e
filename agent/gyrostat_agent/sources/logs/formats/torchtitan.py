"""torchtitan's console, and that of its RL experiment: ``step: 12  loss:  3.14159  grad_norm:  0.1873  tps: 1,530``.

Written from torchtitan's own source, commit b5bcd76c (components/metrics, checkpointer/dcp, experiments/rl). Every rank
prints the same line; a rank that is not of the last pipeline stage has no loss and prints -1.
"""

import math
import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.moments import moment
from gyrostat_agent.sources.logs.numerals import numbers
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, TRAIN, Note, Said, Told

_ROW = re.compile(r"(?<![\w/.-])(validate )?step:\s{0,8}(\d{1,15})\s{2}")
_RL = re.compile(r"(Train|Validation) \| Step:\s{0,8}(\d{1,15})\s")
_EVALUATION = ("validate ", "Validation")
_PAIR = re.compile(r"(?<!\S)([A-Za-z_][^\s:]*):\s{1,16}([^\s(]+)")
_LOADING = re.compile(r"Loading the checkpoint from (\S{1,1000})")
_SAVING = re.compile(r"Saving a full checkpoint at last step, step (\d{1,15})")
_FOLDER = re.compile(r"step-(\d{1,15})")
_SECONDS = re.compile(r"Finished saving the checkpoint in (\d{1,9}(?:\.\d{1,9})?) seconds")


class TitanReader:
    """Remembers which rank has come how far."""

    def __init__(self) -> None:
        self._ranks = Abreast()
        self._staging = False
        self._noted: Note | None = None
        self._last_step = -1  # of a checkpoint that says its step

    def read(self, line: Line) -> Iterable[Said]:
        """One row a line; several where ranks wrote into one."""
        text = line.text
        if "tep:" in text:
            heads = list(_ROW.finditer(text)) or list(_RL.finditer(text))
            ends = [*(found.start() for found in heads[1:]), len(text)]
            rows: list[Said] = []
            for found, end in zip(heads, ends, strict=False):
                phase = EVAL if found[1] in _EVALUATION else TRAIN
                rows += self._row(int(found[2]), phase, text[found.end() : end], line)
            return rows
        return self._notes(text) if "checkpoint" in text else ()

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()

    def _row(self, step: int, phase: str, text: str, line: Line) -> Iterable[Said]:
        pairs = [(name, value.replace(",", "")) for name, value in _PAIR.findall(text) if value != "N/A"]
        values = numbers(pairs)
        if values.get("loss") == -1.0:
            del values["loss"]
        if not values:
            return ()
        said = Told(values, step, phase, max(line.rank, 0), moment(line.text))
        return self._ranks.take(said, line.rank) if phase == TRAIN else (said,)

    def _notes(self, text: str) -> Iterable[Said]:
        if "Staging the checkpoint" in text:  # what is staged is not on disk
            self._staging = True
        elif (found := _SAVING.search(text)) is not None:
            self._last_step = int(found[1])
        elif "Finished saving the checkpoint in" in text:
            staged, self._staging = self._staging, False
            return () if staged else self._saved(_SECONDS.search(text))
        elif (found := _LOADING.search(text)) is not None:
            folder = _FOLDER.search(found[1])
            return self._note(Note(RESUMED, int(folder[1]) if folder else -1))
        return ()

    def _saved(self, found: re.Match[str] | None) -> Iterable[Said]:
        newest = self._ranks.newest
        note = self._note(Note(SAVED, max(self._last_step, newest)))
        if not note or found is None or newest < 0:
            return note
        return (*note, Told({"seconds to save": float(found[1])}, newest))

    def _note(self, note: Note) -> Iterable[Said]:
        """Once, though every rank says it."""
        if note == self._noted:
            return ()
        self._noted = note
        return (note,)


class Abreast:
    """Rows of ranks that all print the same. A rank that is merely late is no step back; what it has that is not
    finite is not lost.
    """

    def __init__(self) -> None:
        self.newest = -1
        self._of: dict[int, int] = {}  # rank -> its newest step
        self._seen: dict[int, set[tuple[float | None, float | None]]] = {}  # of the two newest steps

    def take(self, said: Told, rank: int) -> Iterable[Said]:
        """The row, or what is left of it."""
        step = -1 if said.step is None else said.step
        key = (said.values.get("loss"), said.values.get("grad_norm"))
        before = self._of.get(rank, -1)
        late = step < self.newest and (step > before or key in self._seen.get(step, ()))
        if step < self.newest and not late:  # a run that was taken up again
            self._of.clear()
            self._seen.clear()
            self.newest = step
        self._of[rank] = max(step, self._of.get(rank, -1))
        self.newest = max(self.newest, step)
        known = self._seen.setdefault(step, set())
        again = key in known
        known.add(key)
        for old in sorted(self._seen)[:-2]:
            del self._seen[old]
        if late:
            sick = {name: value for name, value in said.values.items() if not math.isfinite(value)}
            return (said._replace(values=sick, step=self.newest),) if sick and not again else ()
        return () if again else (said,)


def _sign(text: str) -> int:
    if (found := _ROW.search(text)) is not None and text.startswith(("loss:", "grad_norm:"), found.end()):
        return 3 if "memory: " in text or "tps: " in text else 1
    return 3 if _RL.search(text) is not None and _PAIR.search(text) is not None else int("[titan] " in text[:40])


TORCHTITAN = Format(
    "torchtitan", "torchtitan console, also of its RL experiment", _sign, TitanReader,
    {
        "loss": "loss", "loss/mean": "loss", "loss/total": "loss", "grad_norm": "grad_norm",
        "trainer/grad_norm/mean": "grad_norm", "train/grad_norm/mean": "grad_norm", "trainer/grad_norm": "grad_norm",
        "trainer/entropy/mean": "entropy", "lr": "learning_rate", "trainer/lr": "learning_rate",
        "train/lr": "learning_rate", "tps": "throughput", "perf/tokens_per_second": "throughput",
        "perf/trainer/tokens_per_second_full_step": "throughput", "timing/step": "step_time",
        "reward/_mean": "reward", "rollout_reward/_mean": "reward", "reward/_std": "reward_std",
        "rollout_reward/_std": "reward_std", "reward/zero_std_frac": "zero_advantage_fraction",
        "rollout_reward/zero_std_frac": "zero_advantage_fraction",
        "rollout_reward/group_zero_std_frac": "zero_advantage_fraction", "loss/ratio/clipped_frac": "clip_fraction",
        "rollout/response_length/mean": "response_length", "bit_wise/logprob_diff/mean": "mismatch_diff",
        "memory": "", "tflops": "", "mfu": "", "seconds to save": "checkpoint_seconds",
    },
)  # fmt: skip
