"""The demonstration: the reference model trained three ways on one machine, live, compared, and written up.

``runner`` is what the command line calls; ``scenarios`` are the faults, ``stage`` the folder, ``child`` and
``watch`` the processes, ``sources`` and ``course`` what is read of them, ``story`` and ``cases`` what the
sidecar says, ``timeline`` and ``progress`` the terminal, ``comparison``, ``charts`` and ``report`` the end.
"""

from gyrostat_agent.demo.runner import run_demo
from gyrostat_agent.demo.scenarios import ALL, SCENARIOS, STEPS

__all__ = ["ALL", "SCENARIOS", "STEPS", "run_demo"]
