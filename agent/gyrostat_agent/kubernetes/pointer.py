"""The pointer beside the checkpoints: what ``resume.json`` says in the run directory, where it outlives the pod.

The run directory of a pod is an emptyDir: a restart that ends the pod ends it too, and the trainer that comes would
find its own newest checkpoint, which nobody has certified. ``Control.resume`` reads both and takes the newer.
"""

import contextlib
import os

from gyrostat.wire import Resume, RunDirectory
from gyrostat.wire.layout import shared_resume
from gyrostat.wire.rights import check_folder, read_trusted
from gyrostat_agent.kubernetes.refusals import KubernetesError

_LIMIT = 1 << 20


class PointerError(KubernetesError):
    """It cannot be laid: a restart would begin anywhere."""


def lay(run: RunDirectory, number: int, checkpoint: str) -> str:
    """Copy this directive's ``resume.json`` beside the checkpoints, durably; its path. Raises PointerError."""
    root = root_of(checkpoint)
    if not root:
        raise PointerError(f"no ledger lies above {checkpoint}: where the trainer that comes would look is not known")
    path = shared_resume(root)
    try:
        text = read_trusted(run.resume, _LIMIT)
        if Resume.decode(text).number != number:
            raise PointerError(f"{run.resume} is of another directive than {number}")
        check_folder(os.path.dirname(path))
        _write(path, text)
    except (OSError, ValueError) as error:
        raise PointerError(f"{path} cannot be written, and the pod's own dies with it: {error}") from None
    return path


def root_of(checkpoint: str) -> str:
    """The folder above a checkpoint that the ledger lies in, '' for none: it is written before any restart."""
    at = os.path.dirname(os.path.abspath(checkpoint))
    while True:
        if os.path.exists(os.path.join(at, ".gyrostat", "ledger.json")):
            return at
        at, below = os.path.dirname(at), at
        if at == below:
            return ""


def _write(path: str, text: bytes) -> None:
    draft = f"{path}.draft"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb", buffering=0) as out:
        out.write(text)
        os.fsync(out.fileno())
    os.rename(draft, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)  # the pod goes next, and a node that goes with it must not take the name along
    finally:
        os.close(folder)


def take_back(path: str, number: int) -> None:
    """After a restart that was not begun: a pod that is replaced for another reason begins where it would have."""
    with contextlib.suppress(OSError, ValueError):
        if Resume.decode(read_trusted(path, _LIMIT)).number == number:
            os.unlink(path)
