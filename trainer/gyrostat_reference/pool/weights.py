"""Policies on disk: the trainer publishes each version as a file, workers load what they are told to.

The folder is private and lies in memory where the machine has /dev/shm. A file takes its name in one rename, and
carries its version inside: a worker says what it loaded, not what it was told. Nothing is fsynced, for a policy that a
power cut takes is published again.
"""

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from gyrostat_reference.model import LoopMoE, Shape
from gyrostat_reference.rollout import PolicyDestroyed

_PREFIX = "gyrostat-policies-"
_VERSION = "policy_version"
_TRIES = 8  # folders made before the file system is held to have no locks


class Published(NamedTuple):
    """A policy that workers can load."""

    version: int
    path: Path


class Policy(NamedTuple):
    """A policy in memory, with the version that its file bears."""

    version: int
    model: LoopMoE


class PolicyFolder:
    """A private folder below ``root`` and the policies in it. The newest is kept, and what a stale worker needs.

    A trainer that was killed leaves its folder behind: the next one here takes it away. Which folders are in use
    is told by a lock, which the kernel drops with its process.
    """

    def __init__(self, root: Path | None = None, frozen_version: int | None = None) -> None:
        root = root or _in_memory()
        _sweep(root)
        self.path, lock = _make(root)
        self._frozen, self._held, self._written = frozen_version, list[Published](), 0
        self._finalizer = weakref.finalize(self, _remove, self.path, lock)

    @property
    def newest(self) -> Published:
        """What was published last; raises ValueError before the first."""
        if not self._held:
            raise ValueError("there is no policy to roll out: publish one first")
        return self._held[-1]

    def publish(self, version: int, weights: Mapping[str, Tensor]) -> None:
        """Write a policy and delete those that nobody needs any more; raises OSError where the disk is full."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        self._written += 1  # after a rollback a version comes a second time, and is not the same
        path = self.path / f"policy-{version}-{self._written}.safetensors"
        _write(path, save(tensors, metadata={_VERSION: str(version)}))
        self._held.append(Published(version, path))
        needed = (self.newest, self.at_most(self._frozen))
        for policy in self._held:
            if policy not in needed:
                policy.path.unlink(missing_ok=True)
        self._held = [policy for policy in self._held if policy in needed]

    def at_most(self, version: int | None) -> Published:
        """The newest policy that a worker may load which is frozen at ``version``; None is not frozen."""
        if version is None:
            return self.newest
        old = [policy for policy in self._held if policy.version <= version]
        return max(reversed(old), key=lambda policy: policy.version) if old else self._held[0]

    def close(self) -> None:
        """Delete the folder; doing it again does no harm."""
        self._finalizer()


def load_policy(path: Path, shape: Shape) -> Policy:
    """Load a published policy; raises PolicyDestroyed where a weight is not finite, OSError or RuntimeError else."""
    with safe_open(path, framework="pt") as file:
        version = int(file.metadata()[_VERSION])
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no mapping
    spoilt = sorted(name for name, tensor in weights.items() if not torch.isfinite(tensor).all())
    if spoilt:
        raise PolicyDestroyed(f"version {version}: {spoilt[0]} holds a value that is not finite")
    model = LoopMoE(shape)
    model.load_state_dict(weights)
    return Policy(version, model)


def _in_memory() -> Path:
    shared = Path("/dev/shm")  # noqa: S108, mkdtemp makes a private folder in it
    return shared if os.access(shared, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def _write(path: Path, data: bytes) -> None:
    unfinished = path.with_suffix(".tmp")
    try:
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(data)
        unfinished.rename(path)
    except OSError:
        unfinished.unlink(missing_ok=True)  # a full disk should not stay full of it
        raise


def _make(root: Path) -> tuple[Path, int]:
    """A new private folder and the lock that says it is in use."""
    for _ in range(_TRIES):
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        lock = _lock(path)
        if lock is not None and path.exists():
            return path, lock
        shutil.rmtree(path, ignore_errors=True)  # a trainer that started at this moment took it for an old one
        if lock is not None:
            os.close(lock)
    raise OSError(f"no folder below {root} can be locked: choose one on a local file system")


def _lock(path: Path) -> int | None:
    """The folder's lock; None where it is another's, or the folder is gone or no folder of ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(fd).st_uid == os.getuid():
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def _sweep(root: Path) -> None:
    """Delete folders whose trainer is gone."""
    for path in root.glob(f"{_PREFIX}*"):
        lock = _lock(path)
        if lock is not None:
            _remove(path, lock)


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
