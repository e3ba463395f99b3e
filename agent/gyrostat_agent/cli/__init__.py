"""The command line. Each command is a module here, imported only when it is called."""

from gyrostat_agent.cli.group import main

__all__ = ["main"]
