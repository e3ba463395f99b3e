"""Fault log: the error lines of the run's logs as the state remembers them, until a new life or a jump back.

Called by the first stage. The detector ``fault_line`` reads what is kept here.
"""

from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import FaultLine
from gyrostat_rules.moment import Moment
from gyrostat_rules.remembered import FaultSeen
from gyrostat_rules.state import State, key_of

_MOST = 256  # kinds times processes; a log that goes on inventing them must not fill memory


def remember(state: State, moment: Moment, line: FaultLine) -> None:
    """Keep the newest line of each kind and process. What is said after a goodbye is how processes end: no fault."""
    process = state.processes.get(key_of(line.role, line.rank))
    if process is not None and process.ended and not process.died:
        return
    key, segment = f"{line.role}/{line.rank}/{line.kind}", _segment(state)
    old = state.faults.pop(key, None)
    count = old.count + 1 if old is not None and old.segment == segment else 1
    while len(state.faults) >= _MOST:
        del state.faults[next(iter(state.faults))]  # the one that was said the longest ago
    state.faults[key] = FaultSeen(line.role, line.rank, line.kind, line.why, segment, state.step, moment.at, count)
    if count == 1:
        text = f"the log of {line.role} {line.rank}: {line.why}"
        moment.write(EntryKind.RUN, key_of(line.role, line.rank), "faulted", text, state.step, fault=line.kind)


def forget(state: State, role: str = "", rank: int = 0) -> None:
    """Let go of the lines of all processes, or of one whose life begins anew."""
    for key, seen in list(state.faults.items()):
        if not role or (seen.role, seen.rank) == (role, rank):
            del state.faults[key]


def forget_ended(state: State) -> None:
    """Let go of the lines of processes that have ended as they should."""
    for process in state.processes.values():
        if process.ended and not process.died:
            forget(state, process.role, process.rank)


def _segment(state: State) -> int:
    """The segment that is in work: a new life tells it in Hello, before any record does."""
    trainer = state.trainer()
    return max(state.segment, trainer.segment if trainer else 0)
