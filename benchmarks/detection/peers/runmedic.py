"""runmedic: `runmedic diagnose` of the log so far, with the log held in memory instead of a file."""

from collections.abc import Collection, Mapping
from typing import Any

from peers.watcher import Alarm, Peer, Setting

_EVERY = 50


class RunMedic:
    """All of its checks over the log so far; what it has said is not said again."""

    def __init__(self) -> None:
        from runmedic.model import Run

        self.log: Any = Run("run", "jsonl", "run.jsonl")
        self.said = set[tuple[str, str, str]]()

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """Its findings of severity warning or critical that are new, or graver than before."""
        for name, value in values.items():
            self.log.get(name).add(step, value)
        return self._new() if asked else ()

    def _new(self) -> list[Alarm]:
        from runmedic import roles
        from runmedic.checks import run_checks

        findings = run_checks(self.log, roles.detect(self.log))
        found = [(one.check, str(one.metric), str(one.severity)) for one in findings if one.severity != "info"]
        new = [Alarm(f"{check}: {metric}", grave == "critical") for check, metric, grave in found if
               (check, metric, grave) not in self.said]  # fmt: skip
        self.said.update(found)
        return new


PEER = Peer(
    "runmedic",
    (Setting("as it comes", RunMedic),),
    "losses, grad_norm, times, memory",
    ("runmedic.checks",),
    every=_EVERY,
)
