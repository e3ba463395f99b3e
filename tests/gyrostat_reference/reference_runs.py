"""Runs of the reference trainer, short enough for tests."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from gyrostat import Control, Telemetry
from gyrostat.wire import Directive, Resume
from gyrostat_reference.manifest import MANIFEST, digest_of
from gyrostat_reference.resumption import take_up
from gyrostat_reference.settings import Settings
from gyrostat_reference.trainer import Trainer

RUN = "a-run"


def trainer_at(folder: Path, *, said: list[str] | None = None, **settings: object) -> Trainer:
    """A trainer whose checkpoints lie in ``folder/checkpoints`` and whose run directory is ``folder/run``."""
    root = folder / "checkpoints"
    telemetry = Telemetry(folder / "run", run=RUN, checkpoint_root=root)
    say = said.append if said is not None else lambda line: None
    chosen = {"checkpoints": root, "checkpoint_every": 2, **settings}
    return Trainer(Settings(**chosen), telemetry, say=say)  # type: ignore[arg-type]


def train(trainer: Trainer, last_step: int, control: Control | None = None) -> Control:
    """Train to ``last_step``, beginning where ``take_up`` finds it unless ``control`` is given."""
    control = control or take_up(trainer)
    trainer.settings = trainer.settings._replace(steps=last_step)
    trainer.run(control)
    if trainer.keeper.writer is not None:
        trainer.keeper.writer.wait()
    return control


def end(trainer: Trainer) -> None:
    """Close the run, so that another process's life can begin in the same folder."""
    trainer.telemetry.close()


def fingerprint(trainer: Trainer) -> tuple[object, ...]:
    """All that a trainer's future depends on, bit for bit."""
    state = trainer.policy.capture()
    tensors = {n: t.numpy().tobytes() for n, t in (*state.weights.items(), *state.moments.items())}
    random = bytes(trainer.random.get_state().tolist())
    return tensors, random, trainer.data.place, trainer.knobs, trainer.estimates.encode(), trainer.step


def digest(checkpoint: Path) -> str:
    """The digest by which directives name a checkpoint."""
    return digest_of((checkpoint / MANIFEST).read_bytes())


def ring(trainer: Trainer, control: Control, number: int, procedure: str, **arguments: object) -> None:
    """Lay a directive for the trainer's next boundary, as the sidecar would."""
    directive = Directive(
        number, RUN, "trainer", trainer.telemetry.incarnation, control.segment, f"action-{number}",
        time.time() + 60, procedure=procedure, arguments=arguments,
    )  # fmt: skip
    paths = trainer.telemetry.directory
    lay(Path(paths.directive(number)), directive.encode())
    lay(Path(paths.bell), number.to_bytes(8, "little"))


def lay_resume(folder: Path, checkpoint: Path, number: int, **more: object) -> None:
    """Lay ``resume.json`` for the next start."""
    step = json.loads((checkpoint / MANIFEST).read_bytes())["step"]
    resume = Resume(number, RUN, str(checkpoint), digest(checkpoint), step, time.time() + 60)
    lay(folder / "run" / "directives" / "resume.json", resume._replace(**more).encode())  # type: ignore[arg-type]


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return when ``condition`` holds; fails where it does not within ``seconds``."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "what was waited for did not come about"
        time.sleep(0.005)


def lay(path: Path, data: bytes) -> None:
    """Write a file that nobody else may write, in a folder that nobody else may write."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o600)
