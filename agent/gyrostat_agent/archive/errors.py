"""What can go wrong with an archive, in sentences.

::

    AgentError
    └── ArchiveError      1    not archived, or not restored; says what was done and what to do
        ├── StoreError    1    the object storage, or the way to it, did not do what was asked
        └── DamagedError  1    what lies there is not what was archived
"""

from gyrostat_agent.errors import EXIT_FAULT, AgentError


class ArchiveError(AgentError):
    """Not archived, or not restored."""

    status = EXIT_FAULT


class StoreError(ArchiveError):
    """The object storage, or the way to it, did not do what was asked."""


class DamagedError(ArchiveError):
    """What lies in the archive is not what was archived: a digest, a size or a name does not add up."""
