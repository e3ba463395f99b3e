"""Recorded runs for the demonstration's tests: a real Engine is fed, and a real Journal holds what it made of it."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from gyrostat.wire import Ack, ExpertLoad, Hello, KnobState, Record
from gyrostat_agent.cli.options import builtin
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.scenarios import CLEAN, SCENARIOS, TREATED, UNTREATED
from gyrostat_agent.demo.sources import JournalSource
from gyrostat_agent.demo.trio import Result, Trio
from gyrostat_agent.journal import Journal
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Answer, Batch, CheckpointSeen, Command, Fit, Input, Pack
from gyrostat_rules.state import Incident

FAULT, STEPS, ITEM = 11, 30, 77
LIFE = "aaaaaaaaaaaaaaaaaa"
DIED = "step 12: the policy's probabilities are not finite"
_LOAD = ExpertLoad(1, 2, 4, (30, 30, 30, 30, 60, 20, 20, 20))


class Recording(NamedTuple):
    """A run beside a sidecar: its journal's path, the entries made, the incidents as the engine has them."""

    journal: Path
    entries: list[Entry]
    incidents: list[Incident]


def record(step: int, *, finite: bool = True, applied: bool = True, segment: int = 0) -> Record:
    """One step; not finite where the poisoned item was in its batch."""
    bad = {} if finite else {"suspect_item": float(ITEM)}
    values = {
        "loss": 0.1 if finite else math.nan,
        "reward": 0.5 + step / 100 if finite else math.inf,
        "entropy": 1.0 - step / 100,
        "grad_norm": 0.2 * step if finite else math.nan,
        "step_applied": float(applied),
        "params_finite": float(finite or not applied),
    }
    return Record("trainer", 0, LIFE, segment, step, step, 1000.0 + step, values | bad, _LOAD)


def skipped_data(folder: Path) -> Recording:
    """The guard skips the step, it comes again, the item is passed over, and that holds."""
    tape = _begun(folder)
    for step in range(1, FAULT):
        tape.feed(Batch(1000.0 + step, (record(step),)))
    for step in (FAULT, FAULT + 1):
        tape.feed(Batch(1000.0 + step, (record(step, finite=False, applied=False),)))
    tape.feed(_answer("i0001.1", FAULT + 2, {}))
    for step in range(FAULT + 2, STEPS + 1):
        tape.feed(Batch(1000.0 + step, (record(step),)))
    return tape.recording()


def rolled_back(folder: Path) -> Recording:
    """The NaN reaches the weights, and the run goes back to step 10 (the guard's word vouches for it)."""
    tape = _begun(folder)
    for step in range(1, FAULT):
        tape.feed(Batch(1000.0 + step, (record(step),)))
    tape.feed(Batch(1000.0 + FAULT, (record(FAULT, finite=False),)))
    tape.feed(_answer("i0001.2", FAULT + 1, {"step": FAULT - 1}))
    for step in range(FAULT, STEPS + 1):
        tape.feed(Batch(1020.0 + step, (record(step, segment=1)._replace(time=1020.0 + step),)))
    return tape.recording()


def course_of(recording: Recording) -> Course:
    """The course that the demonstration reads out of the journal."""
    course = Course()
    course.take(JournalSource(recording.journal).news())
    return course


def comparison_of(treated: Course, *, died: str = "", scenario: str = "nan_data") -> Trio:
    """The three runs: a clean one, one that died of the fault, and ``treated``."""
    clean, untreated = Course(), Course()
    clean.take(record(step) for step in range(1, STEPS + 1))
    untreated.take([*(record(step) for step in range(1, FAULT)), record(FAULT, finite=False)])
    results = {
        CLEAN: Result(clean, "", 9.0),
        UNTREATED: Result(untreated, DIED, 4.0),
        TREATED: Result(treated, died, 11.0),
    }
    return Trio(SCENARIOS[scenario], 0, STEPS, FAULT, results)


def paper(encoding: str = "utf-8", width: int = 80, terminal: bool = False) -> tuple[Console, io.TextIOWrapper]:
    """A console on a stream of that encoding; ``read_back`` gives what was printed."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    console = Console(
        file=stream,
        width=width,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        markup=False,
        emoji=False,
    )
    return console, stream


def read_back(stream: io.TextIOWrapper) -> str:
    """Everything that was printed to the stream."""
    stream.flush()
    stream.seek(0)
    return stream.read()


class _Tape:
    """Feeds the engine and commits the turns as the agent does."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self.path = folder / "journal.db"
        self.engine, self.journal = Engine(), Journal(str(self.path))
        self.entries: list[Entry] = []

    def feed(self, given: Input) -> None:
        made = self.engine.feed(given)
        self.journal.commit(given, made, {})
        self.entries += made

    def recording(self) -> Recording:
        self.journal.close()
        return Recording(self.path, self.entries, self.engine.state.incidents)


def _begun(folder: Path) -> _Tape:
    tape = _Tape(folder)
    knobs = (KnobState("lr_scale", 1.0, 0.01, 1.0, 2.0),)
    hello = Hello("r", "trainer", 0, 1, LIFE, 0, 1, knobs, ("skip_data", "rollback", "stop"), "/ck", 0)
    given: Sequence[Input] = (
        Pack(1000.0, "d", builtin()),
        Command(1000.0, "configure", {"mode": "act", "approvals": False}),
        Batch(1000.0, (hello, *(_checkpoint(step) for step in (5, 10)))),
    )
    for one in given:
        tape.feed(one)
    return tape


def _checkpoint(step: int) -> CheckpointSeen:
    return CheckpointSeen(f"/ck/step-{step}", step, 0, f"xxh3_128:{step}", Fit.VERIFIED, "", 1000.0 + step)


def _answer(action: str, step: int, detail: dict[str, int]) -> Batch:
    ack = Ack(1, action, Ack.APPLIED, step, "", {}, detail)
    return Batch(999.9 + step, (Answer("trainer", 0, LIFE, ack),))
