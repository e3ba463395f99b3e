"""Feeds a thousand inputs while every file, socket, thread, process and clock is forbidden. Run by a test alone."""

import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from run_story import NAN, Story  # reads the pack file: before anything is forbidden

FORBIDDEN = (
    "open", "os.", "socket.", "subprocess.", "shutil.", "tempfile.", "_thread.", "ctypes.", "sqlite3.", "urllib.",
    "import", "time.",
)  # fmt: skip
armed = False


def hook(name: str, arguments: tuple[Any, ...]) -> None:
    """Ends the process at the first thing that a pure function does not do."""
    if armed and name.startswith(FORBIDDEN):
        raise RuntimeError(f"the engine did {name} {arguments!r}")


def forbid(name: str) -> Callable[..., Any]:
    """A clock or dice that must not be asked."""

    def asked(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"the engine asked {name}")

    return asked


story = Story().begin().supervisor().checkpoint(10)
story.steps(1, 40)
story.tick(950.0)  # whatever is imported late has been by now
for clock in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"):
    setattr(time, clock, forbid(f"time.{clock}"))
for dice in ("random", "randint", "choice", "getrandbits", "uniform"):
    setattr(random, dice, forbid(f"random.{dice}"))
threads = threading.active_count()
sys.addaudithook(hook)
armed = True
for turn in range(1000):
    step = story.engine.state.step + 1
    story.step(step, loss=NAN if turn % 61 in (0, 1) else 1.0, step_applied=float(turn % 2))
    if turn % 61 == 3 and story.incident.state == "acting":
        story.ack(step=step)
    if turn % 100 == 50:
        story.tick(200.0)
    if turn == 500:
        story.died()
    if turn == 510:
        story.begin(life="life-b")
armed = False
assert threading.active_count() == threads
assert len(story.incidents) > 5
print("pure")
