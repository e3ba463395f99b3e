"""The agent as a chaos run starts it: the product's own, with what the plan says for this life of it.

python agent_child.py agent RUN_DIR ...        as ``gyrostat agent RUN_DIR ...``
"""

import os
import sys
from pathlib import Path

from chaos import clockjump
from chaos.plan import LIVES, Plan, told


def begin() -> int:
    """Note this life, arm what the plan says of it, and be the agent; its exit status."""
    folder, plan = told()
    clockjump.install(folder)
    life = _noted(Path(folder, LIVES))
    if life == 1 and plan.failpoint:
        os.environ["GYROSTAT_FAILPOINT"] = plan.failpoint  # read when the module is imported
    if life > 1:
        _upgrade(plan)
    from gyrostat_agent.console import main

    return main()


def _noted(lives: Path) -> int:
    with lives.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return len(lives.read_text().split())


def _upgrade(plan: Plan) -> None:
    """Be of another version than the life before."""
    from gyrostat_rules import engine

    if plan.upgrade == "form":

        def restore(state: bytes | str) -> engine.Engine:
            raise ValueError("this is no State as it is written here")

        engine.Engine.restore = staticmethod(restore)  # type: ignore[method-assign,assignment]
    elif plan.upgrade == "rules":
        feed = engine.Engine.feed

        def otherwise(self: engine.Engine, given: object) -> list[object]:
            return [entry._replace(text=f"{entry.text} (as a newer version says it)") for entry in feed(self, given)]  # type: ignore[arg-type]

        engine.Engine.feed = otherwise  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    sys.exit(begin())
