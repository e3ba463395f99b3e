"""The reference trainer as a chaos run starts it: one rank of it, with the control that the plan asks for.

python trainer_child.py --steps 60 ...        as ``python -m gyrostat_reference --steps 60 ...``
"""

import os
import sys

from chaos import clockjump
from chaos.plan import told, trainer_file


def begin() -> int:
    """Note the PID, take over clock and control, and be the trainer; its exit status."""
    folder, plan = told()
    clockjump.install(folder)
    trainer_file(folder, int(os.environ.get("RANK", 0))).write_text(f"{os.getpid()}\n")
    from chaos.controls import chosen
    from gyrostat_reference import resumption
    from gyrostat_reference.__main__ import main

    resumption.Control = chosen(plan)  # type: ignore[attr-defined,assignment]
    return main()


if __name__ == "__main__":
    sys.exit(begin())
