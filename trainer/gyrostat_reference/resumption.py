"""Resumption: how a starting trainer finds its place: the newest checkpoint, or the one it is told to use.

Called once, before the first step, by all ranks alike. It makes the Control, because Hello says what was loaded.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from gyrostat import Control
from gyrostat.integrations.torch_distributed import TorchCollective
from gyrostat.wire import Resume
from gyrostat_reference.checkpoint import Checkpoint, complete, unreadable
from gyrostat_reference.knobs import offered, turned
from gyrostat_reference.manifest import CheckpointError, Manifest
from gyrostat_reference.procedures import Procedures
from gyrostat_reference.ranks import Ranks
from gyrostat_reference.reading import read
from gyrostat_reference.state import outline
from gyrostat_reference.trainer import Trainer

Known = Sequence[tuple[Path, Manifest]]


def take_up(trainer: Trainer) -> Control:
    """Load what there is to load and return the trainer's Control."""
    known: Known = []
    if trainer.writer is not None:
        known = _known_to_all(trainer.writer.root, trainer.ranks)
        for reason in unreadable(trainer.writer.root):
            trainer.say(f"not resumed from: {reason}")
    _go_on(trainer, known)
    last = max((m.last_directive for _, m in known), default=0)
    segment = max((m.segment for _, m in known), default=0)
    together = TorchCollective(trainer.ranks.group) if trainer.ranks.world > 1 else None
    control = Control(
        trainer.telemetry, offered(trainer), Procedures(trainer).offered(),
        collective=together, last_directive=last, segment=segment,
    )  # fmt: skip
    if (resume := _told_to_all(control, last, trainer.ranks)) is not None:
        _obey(trainer, control, resume, known)
    return control


def _known_to_all(root: Path, ranks: Ranks) -> Known:
    """The checkpoints that every rank sees, oldest first: they are gone through together."""
    mine = complete(root)
    said = ranks.gathered(json.dumps([path.name for path, _ in mine]).encode())
    shared = set.intersection(*(set(json.loads(each)) for each in said))
    return [(path, manifest) for path, manifest in mine if path.name in shared]


def _told_to_all(control: Control, last: int, ranks: Ranks) -> Resume | None:
    """The resume that every rank has read, or None: one of them may have looked after it expired."""
    resume = control.resume(last_applied=last)
    said = ranks.gathered(str(resume.number if resume is not None else 0).encode())
    return resume if len(set(said)) == 1 else None


def _go_on(trainer: Trainer, known: Known) -> None:
    """Go on from the newest checkpoint that can be loaded, saying which could not."""
    for path, _ in reversed(known):
        try:
            trainer.restore(_read(trainer, path.parent, path))
        except CheckpointError as error:
            trainer.say(f"not resumed from: {error}")
        else:
            trainer.say(f"resumed from {path.name}")
            return


def _obey(trainer: Trainer, control: Control, resume: Resume, known: Known) -> None:
    """Go back as ``resume.json`` says, under a new segment; where that can't be done, say why and go on."""
    try:
        _go_back(trainer, resume, known)
    except ValueError as error:
        trainer.say(f"resume {resume.number} failed: {error}")
        control.resumed(resume, trainer.step, str(error))
        return
    trainer.say(f"resumed from {Path(resume.checkpoint).name}, as directive {resume.number} says")
    control.segment += 1
    control.resumed(resume, trainer.step)


def _go_back(trainer: Trainer, resume: Resume, known: Known) -> None:
    if trainer.writer is None:
        raise ValueError("this run keeps no checkpoints")
    checkpoint = _read(trainer, trainer.writer.root, Path(resume.checkpoint), resume.digest)
    if checkpoint.manifest.step != resume.step:
        raise ValueError(f"{resume.checkpoint} is of step {checkpoint.manifest.step}, not {resume.step}")
    knobs = turned(checkpoint.knobs, resume.knobs)
    # What any life passed over stays passed over: an older checkpoint does not know of it, and would meet it again.
    items = trainer.data.checked(resume.pass_over).union(*(m.place.passed_over for _, m in known))
    trainer.go_back(checkpoint, items, seen=max(m.place.seen for _, m in known))
    trainer.knobs = knobs


def _read(trainer: Trainer, root: Path, path: Path, digest: str = "") -> Checkpoint:
    return read(root, path, outline(trainer.policy.model), trainer.ranks, digest)
