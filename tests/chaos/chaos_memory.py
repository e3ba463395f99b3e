"""Memory: what an agent can still know when its journal, its ledger or both are gone, and whether two lives agree."""

import json
from typing import Any

from chaos_history import History

from gyrostat_agent.loop import Agent
from gyrostat_rules.engine import Engine


def has_met_the_trainer(agent: Agent) -> bool:
    trainer = agent.engine.state.trainer()
    return trainer is not None and trainer.incarnation != ""


def lost_memory(history: History) -> bool:
    """True where the journal went with a pod, and the ledger is gone, an old copy, or nothing that can be believed."""
    return bool(history.pods) and history.tampered in ("absent", "older", "damaged", "newer")


def era(history: History, pod: int) -> int:
    """Whose memory it was.

    Where the journal went with a pod and the ledger is an old copy, or is gone and no trainer had saved that it had
    obeyed anything, what comes after is another run to everybody: nobody could know.
    """
    unknowable = history.tampered == "older" or (history.tampered == "absent" and not history.numbered)
    return pod if unknowable and pod == history.pods > 0 else -1


def distrusted(history: History, agent: Agent) -> None:
    """(10) A run with a history and no ledger that can be believed is only observed; any other one is not."""
    distrust = agent.engine.state.settings.distrust
    if history.tampered in ("damaged", "newer"):
        assert distrust or not has_met_the_trainer(agent), f"the ledger is {history.tampered}, and it acts on"
    elif history.tampered == "absent" and history.pods and history.numbered:
        assert distrust or not has_met_the_trainer(agent), "nothing is remembered, and it acts on"
    elif history.tampered != "absent":
        assert not distrust, f"nothing was damaged, and the agent only observes: {distrust}"


def alike(live: bytes, other: Engine, what: str) -> None:
    """Compared as written: a NaN equals itself there."""
    if live != (written := other.snapshot()):
        left, right = json.loads(live), json.loads(written)
        assert left == right, f"{what} leads elsewhere: {_difference(left, right)}"


def _difference(left: Any, right: Any, at: str = "state") -> str:
    """The first place where two plain trees differ."""
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        found = (_difference(a, b, f"{at}[{i}]") for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
        return next(found, "")
    if isinstance(left, dict) and isinstance(right, dict) and set(left) == set(right):
        return next((_difference(left[k], right[k], f"{at}.{k}") for k in left if left[k] != right[k]), "")
    return f"{at}: {left!r:.200} and {right!r:.200}"
