"""Lookback: a run's engine as its journal has it, for those who only look."""

import os

from gyrostat.wire import RunDirectory
from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.recovery import rebuilt
from gyrostat_rules.engine import Engine


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
