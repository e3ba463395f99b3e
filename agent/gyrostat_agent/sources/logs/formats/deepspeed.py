"""DeepSpeed's console: steps, timers, the pipeline engine's lines, overflows of fp16 and checkpoints.

``[Rank 0] step=20, skipped=4, lr=[8.8e-06]``; ``steps: 10 loss: 1.23 iter time (s): 5.1 samples/sec: 12.3``.
Written from DeepSpeed's own source, commit 38327e07 (engine, loss_scaler, timer, pipe/engine). A line of an overflow
says no step: it is taken for the one after the newest known, which is exact where each step is printed.
"""

import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.moments import moment
from gyrostat_agent.sources.logs.numerals import numbers
from gyrostat_agent.sources.logs.said import RESUMED, SAVED, SKIPPED, Fault, Note, Said, Told

_STEP = re.compile(r"step=(\d{1,15}), skipped=(\d{1,15})(?:, lr=\[([^\],]{1,40}))?")
_TIMER = re.compile(r"(?:global_step=|\d{1,15}/)(\d{1,15}), (?=RunningAvgSamplesPerSec=)")
_RATE = re.compile(r"(\w{1,40})=([^\s,=]{1,40})(?=,|$|\s)")
_PIPE = re.compile(r"steps: (\d{1,15}) loss: (\S{1,40}) iter time \(s\): (\S{1,40}) samples/sec: (\S{1,40})")
_OVERFLOW = re.compile(
    r"Skipping step\. Attempted loss scale: ([\d.eE+]{1,40}), "
    r"(?:reducing to (?P<to>[\d.eE+]{1,40})|but hysteresis)"
)
_RANK = re.compile(r"Rank (\d{1,9})")
_CHECKPOINT = re.compile(r"\[Torch\] Checkpoint (\S{1,200}) is (about to be saved|ready now)!")
_LOADED = re.compile(r"\[Torch\] Loaded checkpoint from (\S{1,1000})")
_TAG = re.compile(r"global_step(\d{1,15})")
_FLUSHES = re.compile(r"(\d{1,9}) pytorch allocator cache flushes since last step")
_WORDS = ("step", "SamplesPerSec=", "loss scale", "[Torch]")  # one of which each line has that is read
_FLOOR = "Current loss scale already at minimum"


class DeepSpeedReader:
    """Remembers the newest step, and which checkpoint is being written."""

    def __init__(self) -> None:
        self._step = 0
        self._rank = ""  # whose overflows are counted: every rank may print its own
        self._saving = self._ready = ""
        self._begun: float | None = None
        self._loaded = -1

    def read(self, line: Line) -> Iterable[Said]:
        """One row a line."""
        text, rank = line.text, max(line.rank, 0)
        if not any(words in text for words in _WORDS):
            return ()
        if (found := _STEP.search(text)) is not None:
            pairs = [("skipped", found[2])] + ([("lr", found[3])] if found[3] else [])
            return self._told(int(found[1]), pairs, rank, text)
        if (found := _TIMER.search(text)) is not None:
            return self._told(int(found[1]), _RATE.findall(text, found.end()), rank, text)
        if (found := _PIPE.search(text)) is not None:
            names = ("loss", "iter time (s)", "samples/sec")
            return self._told(int(found[1]), list(zip(names, found.groups()[1:], strict=True)), rank, text)
        if (found := _OVERFLOW.search(text)) is not None:
            return self._overflow(found, rank, text)
        if _FLOOR in text:
            return (Fault("loss_scale", "DeepSpeed: the loss scale is at its minimum and gradients still overflow",
                          rank),)  # fmt: skip
        if (found := _FLUSHES.search(text)) is not None and self._step:
            return (Told({"allocator cache flushes": float(found[1])}, self._step, rank=rank),)
        return self._notes(text)

    def end(self) -> Iterable[Said]:
        """A row is a line: nothing is held."""
        return ()

    def _told(self, step: int, pairs: list[tuple[str, str]], rank: int, text: str) -> Iterable[Said]:
        self._step = step
        values = numbers(pairs)
        return (Told(values, step, rank=rank, at=moment(text)),) if values else ()

    def _overflow(self, found: re.Match[str], rank: int, text: str) -> Iterable[Said]:
        whose = _RANK.search(text, 0, found.start())
        name = whose[1] if whose else ""
        self._rank = self._rank or name
        if name != self._rank:
            return ()
        self._step += 1
        values = numbers([("loss_scale", found["to"] or found[1])])
        return (
            Told(values, self._step, rank=int(name) if name else rank, at=moment(text)),
            Note(SKIPPED, self._step, text[-200:]),
        )

    def _notes(self, text: str) -> Iterable[Said]:
        if (found := _CHECKPOINT.search(text)) is not None:
            return self._checkpoint(found[1], found[2].startswith("ready"), moment(text))
        if (found := _LOADED.search(text)) is not None and (step := _step_of(found[1])) != self._loaded:
            self._loaded = step
            return (Note(RESUMED, step),)
        return ()

    def _checkpoint(self, tag: str, ready: bool, at: float | None) -> Iterable[Said]:
        """Each rank says what is ready; what is never ready before the next is begun, was not written."""
        if ready:
            again, self._ready = self._ready == tag, tag
            took = self._took(at) if self._saving == tag else ()
            self._saving = "" if self._saving == tag else self._saving
            return () if again else (Note(SAVED, _step_of(tag)), *took)
        lost, self._saving = self._saving, tag
        self._begun = self._begun if lost == tag else at
        if not lost or lost == tag:
            return ()
        return (Fault("checkpoint_failure", f"DeepSpeed: checkpoint {lost} was begun and never became ready"),)

    def _took(self, at: float | None) -> Iterable[Said]:
        if at is None or self._begun is None or not self._step or at < self._begun:
            return ()
        return (Told({"seconds to save": at - self._begun}, self._step),)


def _step_of(path: str) -> int:
    found = _TAG.search(path)
    return int(found[1]) if found else -1


def _sign(text: str) -> int:
    """Its own rows are sure; what it prints beside the rows of whoever uses it (HF, Megatron) only may be."""
    if _PIPE.search(text) is not None:
        return 3
    return int((_STEP.search(text) or _TIMER.search(text) or _OVERFLOW.search(text)) is not None)


DEEPSPEED = Format(
    "deepspeed", "DeepSpeed console", _sign, DeepSpeedReader,
    {
        "loss": "loss", "lr": "learning_rate", "skipped": "skipped_steps", "loss_scale": "loss_scale",
        "iter time (s)": "step_time", "samples/sec": "throughput", "CurrSamplesPerSec": "throughput",
        "RunningAvgSamplesPerSec": "", "MemAllocated": "", "MaxMemAllocated": "", "allocator cache flushes": "",
        "seconds to save": "checkpoint_seconds",
    },
)  # fmt: skip
