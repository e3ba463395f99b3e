"""Lookback: a run's engine as its journal has it, for those who only look."""

import contextlib
import os

from gyrostat.wire import Hello, RunDirectory
from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.recovery import rebuilt
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Batch

_EARLY = 1000  # turns; a first snapshot comes sooner


def engine_of(run: RunDirectory) -> Engine:
    """The engine as it stood at the newest turn; raises DistrustError where the journal does not give one."""
    try:
        journal = Journal(os.path.join(run.agent, "journal.db"), readonly=True)
    except JournalError as error:
        raise DistrustError(str(error)) from None
    try:
        return rebuilt(journal, believe_snapshot=True)
    except (JournalError, ValueError, TypeError) as error:
        raise DistrustError(f"{run.path}: its journal cannot be fed again: {error}") from None
    finally:
        journal.close()


def checkpoint_root(journal: Journal) -> str:
    """Where the trainer said that its checkpoints are, as far as can be told without feeding it all again; or ''."""
    with contextlib.suppress(JournalError, TypeError, ValueError):
        if found := journal.snapshot():
            trainer = Engine.restore(found[1]).state.trainer()
            return trainer.root if trainer else ""
    with contextlib.suppress(JournalError):
        for turn in journal.turns(last=_EARLY):
            for item in turn.given.items if isinstance(turn.given, Batch) else ():
                if isinstance(item, Hello) and item.checkpoint_root:
                    return item.checkpoint_root
    return ""
