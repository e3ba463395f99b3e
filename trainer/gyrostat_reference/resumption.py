"""Resumption: how a starting trainer finds its place: the newest checkpoint, or the one it is told to use.

Called once, before the first step, by all ranks alike. It makes the Control, because Hello says what was loaded.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from gyrostat import Control
from gyrostat.integrations.torch_distributed import TorchCollective
from gyrostat.wire import Resume
from gyrostat_reference.checkpoint import complete, unreadable
from gyrostat_reference.knobs import KnobValues, offered, turned
from gyrostat_reference.manifest import CheckpointError, Manifest
from gyrostat_reference.procedures import Procedures
from gyrostat_reference.ranks import Ranks
from gyrostat_reference.trainer import Trainer

Known = Sequence[tuple[Path, Manifest]]


def take_up(trainer: Trainer) -> Control:
    """Load what there is to load and return the trainer's Control."""
    known: Known = []
    if trainer.keeper.writer is not None:
        known = _known_to_all(trainer.keeper.writer.root, trainer.ranks)
        for reason in unreadable(trainer.keeper.writer.root):
            trainer.say(f"not resumed from: {reason}")
    # What was loaded counts, not what is known: of directives behind it nothing is left, and they are to be obeyed.
    last = _go_on(trainer, known)
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


def _go_on(trainer: Trainer, known: Known) -> int:
    """Go on from the newest checkpoint that can be loaded, saying which could not; the last directive it knows."""
    asked = trainer.knobs
    for path, manifest in reversed(known):
        try:
            trainer.restore(trainer.load(path))
        except CheckpointError as error:
            trainer.say(f"not resumed from: {error}")
            continue
        trainer.say(f"resumed from {path.name}")
        _say_differences(trainer, asked)
        if behind := _passed_over(known) - trainer.data.place.passed_over:
            trainer.pass_over(behind)
        return manifest.last_directive
    return 0


def _passed_over(known: Known) -> frozenset[int]:
    """What any life passed over stays so: an older checkpoint does not know of it, and would meet it again."""
    return frozenset().union(*(manifest.place.passed_over for _, manifest in known))


def _say_differences(trainer: Trainer, asked: KnobValues) -> None:
    """Knobs stand as the checkpoint has them: a directive may have turned them. Whoever asked otherwise must know."""
    pairs = zip(asked._asdict().items(), trainer.knobs, strict=True)
    other = [f"{name} {now:g}, not {wanted:g}" for (name, wanted), now in pairs if wanted != now]
    if other:
        trainer.say(f"knobs as the checkpoint has them: {'; '.join(other)}")


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
    checkpoint = trainer.load(resume.checkpoint, resume.digest)
    if checkpoint.manifest.step != resume.step:
        raise ValueError(f"{resume.checkpoint} is of step {checkpoint.manifest.step}, not {resume.step}")
    knobs = turned(checkpoint.knobs, resume.knobs)
    items = trainer.data.checked(trainer.data.checked(resume.pass_over) | _passed_over(known))
    trainer.go_back(checkpoint, items, seen=max(m.place.seen for _, m in known))
    trainer.knobs = knobs
