"""losslint: what its `watch` does at each poll, with the log held in memory instead of a file."""

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from peers.watcher import Alarm, Peer, Setting

_EVERY, _SHOWN = 25, 5
_FACTORS = (5.0, 3.0)


class LossLint:
    """All of its checks over the log so far; what it has said is not said again."""

    def __init__(self, given: Mapping[str, float]) -> None:
        from losslint.checks import CheckOptions, run_all_checks
        from losslint.parsing import RunLog

        options: Any = CheckOptions(**dict(given))  # type: ignore[arg-type,unused-ignore]
        self.log = RunLog(steps=[], series={}, source=Path("run.jsonl"))
        self.check, self.said = partial(run_all_checks, options=options), set[tuple[str, str]]()

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """Its findings of severity warning or error that are new."""
        for name in values:
            self.log.series.setdefault(name, [None] * len(self.log.steps))
        self.log.steps.append(step)
        for name, column in self.log.series.items():
            column.append(values.get(name))
        return self._new() if asked else ()

    def _new(self) -> list[Alarm]:
        found = [(_key(one), one.severity) for one in self.check(self.log) if one.severity != "info"]
        new = [Alarm(": ".join(key), severity == "error") for key, severity in found if key not in self.said]
        self.said |= {key for key, _ in found}
        return new


def _key(finding: Any) -> tuple[str, str]:
    """Which finding it is: for spikes, of which rows, for each is news."""
    rows = str(finding.details.get("steps", [])[:_SHOWN]) if finding.check == "loss_spike" else ""
    return finding.check, f"{finding.details.get('series', '')}{rows}"


PEER = Peer(
    "losslint",
    (
        Setting("as it comes", partial(LossLint, {})),
        *(Setting(f"spike factor {f:g}", partial(LossLint, {"spike_factor": f})) for f in _FACTORS),
    ),
    "losses; NaN on every series",
    ("losslint.checks",),
    every=_EVERY,
)
