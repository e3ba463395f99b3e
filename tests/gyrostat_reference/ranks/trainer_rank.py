"""One rank of the reference trainer in these tests: ``torchrun trainer_rank.py SPEC ROOT FACTS``.

SPEC is JSON: Trainer settings by name, and ``rung``: after which step rank 0 rings what. Facts go to FACTS-<rank>.
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reference_runs import RUN, digest, lay

from gyrostat import Control, Telemetry
from gyrostat.wire import Directive
from gyrostat.wire.messages import KnobChange
from gyrostat_reference.ranks import Ranks, joined
from gyrostat_reference.resumption import take_up
from gyrostat_reference.settings import Settings
from gyrostat_reference.trainer import Trainer

Spec = dict[str, Any]


class Watcher:
    """Notes how each step ended, and rings what the spec says after it."""

    def __init__(self, rung: dict[str, list[Any]]) -> None:
        self.rung = rung
        self.notes: list[list[Any]] = []
        self.said: list[str] = []
        self.trainer: Trainer | None = None
        self.control: Control | None = None

    def say(self, line: str) -> None:
        """Take what the trainer says."""
        self.said.append(line)
        trainer = self.trainer
        if trainer is None or not line.startswith("step "):
            return
        skipped = trainer.history.skipped
        self.notes.append([trainer.step, trainer.knobs.lr_scale, trainer.segment, skipped, trainer.data.place.cursor])
        asked = self.rung.pop(str(len(self.notes)), None)
        if asked is not None and trainer.ranks.rank == 0:
            trainer.finish_writing()
            _ring(trainer, *asked)


def _ring(trainer: Trainer, number: int, what: str, value: Any) -> None:
    directive = Directive(
        number, RUN, "trainer", trainer.telemetry.incarnation, trainer.segment, f"action-{number}", 4e9
    )
    if what == "lr_scale":
        now = trainer.knobs.lr_scale
        directive = directive._replace(knobs=(KnobChange(what, now, value),))
    elif what == "rollback":
        assert trainer.settings.checkpoints is not None
        folder = trainer.settings.checkpoints / value
        directive = directive._replace(procedure=what, arguments={"checkpoint": str(folder), "digest": digest(folder)})
    else:
        directive = directive._replace(procedure=what, arguments={"items": value})
    paths = trainer.telemetry.directory
    lay(Path(paths.directive(number)), directive.encode())
    lay(Path(paths.bell), number.to_bytes(8, "little"))


def fingerprint(trainer: Trainer) -> str:
    """A hash of the whole weights and moments; the same on all ranks, or something is wrong."""
    state = trainer.policy.whole()
    tensors = sorted((*state.weights.items(), *(("m/" + n, t) for n, t in state.moments.items())))
    return hashlib.sha256(b"".join(tensor.numpy().tobytes() for _, tensor in tensors)).hexdigest()


def run(spec: Spec, root: Path, ranks: Ranks) -> dict[str, Any]:
    """Train as the spec says."""
    watcher = Watcher(spec.pop("rung", {}))
    settings = Settings(checkpoints=root / "checkpoints", checkpoint_every=2, **spec)
    telemetry = Telemetry(root / "run", run=RUN, checkpoint_root=root / "checkpoints")
    trainer = Trainer(settings, telemetry, say=watcher.say, ranks=ranks)
    watcher.trainer = trainer
    began = fingerprint(trainer)
    control = take_up(trainer)
    trainer.run(control)
    trainer.finish_writing()
    telemetry.close()
    own = [trainer.random.get_state().sum().item(), *trainer.data.place[:2]]
    return {
        "began": began, "ended": fingerprint(trainer), "notes": watcher.notes, "said": watcher.said, "own": own,
        "directive": control.last_directive, "passed over": sorted(trainer.data.place.passed_over),
        "estimates": trainer.estimates._replace(pool=trainer.estimates.pool._replace(pivots=())).encode(),
    }  # fmt: skip


def main() -> None:
    """Write what this rank found."""
    torch.set_num_threads(1)
    ranks = joined(os.environ, timeout=60.0)
    found = run(json.loads(sys.argv[1]), Path(sys.argv[2]), ranks)
    Path(f"{sys.argv[3]}-{ranks.rank}").write_text(json.dumps(found))
    ranks.close()


if __name__ == "__main__":
    main()
