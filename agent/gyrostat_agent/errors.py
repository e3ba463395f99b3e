"""What can go wrong in the agent, for the person who reads it, and the exit status it leads to.

::

    AgentError                 one sentence: what, where, why, what to do
    ├── SetupError      2      the run directory, a file or an option is not usable
    ├── HeldError       3      another agent has this run; names it
    ├── TemporaryError  -      try again later: the disk is full, the journal is busy
    └── DistrustError   4      what is on the disk does not add up: a broken chain, a replay that differs
"""

EXIT_OK, EXIT_FAULT, EXIT_SETUP, EXIT_HELD, EXIT_DISTRUST = 0, 1, 2, 3, 4


class AgentError(Exception):
    """Base of all; its text is meant for people."""

    status = EXIT_FAULT


class SetupError(AgentError):
    """Something the user gave cannot be used."""

    status = EXIT_SETUP


class HeldError(AgentError):
    """Another agent holds this run."""

    status = EXIT_HELD


class TemporaryError(AgentError):
    """May go by itself; the loop tries again."""


class DistrustError(AgentError):
    """What is on the disk does not add up."""

    status = EXIT_DISTRUST
