"""Kinds of fault lines: how grave each is by itself, and what a person looks at next.

Critical: whoever wrote such a line is broken or most likely dead. Warning: it may have been got over. Info: known to
come in healthy runs, and told so that nobody has to look it up.
"""

from collections.abc import Mapping
from typing import NamedTuple, get_args

from gyrostat_rules.inputs import FaultKind
from gyrostat_rules.pack import Severity

_CRITICAL, _WARNING, _INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO

KINDS: tuple[str, ...] = get_args(FaultKind)


class _About(NamedTuple):
    severity: str
    checks: tuple[str, ...] = ()


_KERNEL = "the kernel's log of that host, by time: dmesg -T | grep -i -e xid -e oom -e 'killed process'"
_FIRST = "which rank's log has the first error: the others' usually follow from it"
_HOST_MEMORY = (
    _KERNEL,
    "the host's memory over the last hour, and what grew: loader workers, pinned buffers, a Ray object store",
    "whether it always comes at the same place of the data: then a restart alone repeats it",
)
_DEVICE_MEMORY = (
    "what the batch held: the longest completion, and whether it is always the same step",
    "the share of the card that is given to the rollout engine, and whether it gave it back before training",
    "reserved but unallocated memory in the line: if it is large, it is fragmentation",
)
_NUMBERS = (
    "loss, gradient norm and entropy of the steps before: they usually were not finite first",
    "whether the parameters of the newest checkpoint are finite",
    "precision and attention implementation, of trainer and rollout engine",
)
_COLLECTIVE = (
    "the last completed work's number in each rank's line: the lowest is the rank that all wait for",
    "what that rank did then: py-spy dump, its own log, a checkpoint or an evaluation that it alone was in",
    _KERNEL,
)
_PROGRAM = (
    "the Python stack with CUDA_LAUNCH_BLOCKING=1: without it the line names a later call",
    "whether the same device and host are always the one: then it is the card",
    _KERNEL,
)
_DEVICE = (
    "nvidia-smi -q -d ECC,ROW_REMAPPER on that host",
    _KERNEL,
    "whether the same card was named before: take the host out, do not restart on it",
)
_ABOUT: Mapping[str, _About] = {
    "oom": _About(_CRITICAL, _DEVICE_MEMORY),
    "oom_shared": _About(
        _CRITICAL,
        (
            "who else is on the card: nvidia-smi, by the process ids in the line",
            "how ranks and engines are placed: two of them may have got the same card",
            "the rollout engine's share of the card; a smaller batch is no cure",
        ),
    ),
    "host_oom": _About(_CRITICAL, _HOST_MEMORY),
    "process_killed": _About(_CRITICAL, _HOST_MEMORY),
    "crashed": _About(_CRITICAL, (_FIRST, "the core file, or the native stack above the line", _KERNEL)),
    "actor_died": _About(
        _CRITICAL, (_KERNEL, "the actor's own log in Ray's session folder: its last lines", _HOST_MEMORY[1])
    ),
    "dataloader": _About(
        _CRITICAL,
        ("shared memory: df -h /dev/shm, and the container's --shm-size", _HOST_MEMORY[1], _HOST_MEMORY[2]),
    ),
    "nccl_timeout": _About(_CRITICAL, _COLLECTIVE),
    "nccl_error": _About(
        _CRITICAL,
        (_FIRST, "the network: ibstat, link counters, the switch; NCCL_DEBUG=INFO at the next start", _KERNEL),
    ),
    "nan": _About(_CRITICAL, _NUMBERS),
    "loss_scale": _About(_CRITICAL, _NUMBERS),
    "device_assert": _About(
        _CRITICAL, ("the assertion itself, in the lines before: an index out of its range, or NaN", *_PROGRAM[:2])
    ),
    "illegal_access": _About(_CRITICAL, _PROGRAM),
    "ecc": _About(_CRITICAL, _DEVICE),
    "xid_node": _About(_CRITICAL, _DEVICE),
    "xid_contained": _About(_WARNING, _DEVICE),
    "xid_app": _About(_WARNING, _PROGRAM),
    "xid_other": _About(_WARNING, ("NVIDIA's table of Xids", *_DEVICE[:2])),
    "checkpoint_failure": _About(
        _WARNING,
        (
            "room and quota where the checkpoints lie: df -h, df -i, quota",
            "whether the newest checkpoint is whole: its size beside the one before, and that it loads",
            "the mount: dmesg -T | grep -i -e nfs -e 'i/o error'",
        ),
    ),
    "engine": _About(
        _CRITICAL,
        (
            "the engine's own log above the line: the first error there is the cause",
            "whether the trainer waits for it: a run may hang rather than end",
            _KERNEL,
        ),
    ),
    "xid_remap": _About(_INFO, ("reset the card when nothing runs on it",)),
    "engine_exit": _About(_INFO, ("whether the run was at its end: then it means nothing",)),
    "engine_memory": _About(_INFO, ("whether what is still in use grows from step to step: then it leaks",)),
}
SEVERITIES: Mapping[str, str] = {kind: _ABOUT[kind].severity for kind in KINDS}
CHECKS: Mapping[str, tuple[str, ...]] = {kind: _ABOUT[kind].checks for kind in KINDS}
