"""Where the journal is that a command looks at: in a run directory, or in a file that ``journal export`` wrote."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import Journal, JournalError, excerptreader
from gyrostat_agent.rundir import existing


def is_excerpt(place: str) -> bool:
    """True for a file; a run directory is none."""
    return os.path.isfile(place)


def journal_of(run_dir: str) -> str:
    """Path of the journal in a run directory; raises SetupError where there is none."""
    return os.path.join(existing(run_dir).agent, "journal.db")


@contextmanager
def opened(place: str) -> Iterator[Journal]:
    """The journal, for reading; raises SetupError where there is none, DistrustError where it cannot be read."""
    try:
        if is_excerpt(place):
            with excerptreader.opened(place) as journal:
                yield journal
        else:
            with closing(Journal(journal_of(place), readonly=True)) as journal:
                yield journal
    except JournalError as error:
        raise DistrustError(str(error)) from None
