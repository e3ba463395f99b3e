"""The supervisor as a chaos run starts it: ``gyrostat run``, whose agent is ``agent_child.py``.

python supervisor_child.py run --run-dir RUN_DIR ... -- COMMAND
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chaos import clockjump
from chaos.plan import told

_AGENT = str(Path(__file__).with_name("agent_child.py"))
_INTERPRETER = 3  # words of the product's own beginning: python -m gyrostat_agent


def begin() -> int:
    """Take over the clock and the agent's command, and be the supervisor; its exit status."""
    clockjump.install(told()[0])
    from gyrostat_agent import supervisor
    from gyrostat_agent.console import main

    class Beside(supervisor.Supervisor):
        """The product's, with another program for an agent."""

        def __init__(
            self, command: Sequence[str], run_dir: str, run: str, agent_argv: Sequence[str], **rest: Any
        ) -> None:
            argv = [sys.executable, _AGENT, *agent_argv[_INTERPRETER:]]
            super().__init__(command, run_dir, run, argv, **rest)

    supervisor.Supervisor = Beside  # type: ignore[misc,assignment]
    return main()


if __name__ == "__main__":
    sys.exit(begin())
