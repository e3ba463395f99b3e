"""DiskRoom: how much the file systems can take yet that checkpoints are saved on.

Called by ``checkpointtimes``, in the thread that looks at them: a mount that hangs answers here no sooner than there.
Quotas and blocks kept for root count as the kernel counts them for whoever asks: what is told is what a user can write.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

_FREE, _SHARE, _INODES, _ROOM = (
    "checkpoint_disk_free_bytes", "checkpoint_disk_free_share", "checkpoint_inodes_free_share", "checkpoint_room",
)  # fmt: skip


def room(sizes: Mapping[str, int], statvfs: Callable[[str], Any] = os.statvfs) -> dict[str, float]:
    """Of each kind of number the lowest of all roots. ``sizes``: each root's newest checkpoint in bytes, 0: not known.

    ``checkpoint_room`` is how many more of that size there is room for. A root that is not there yet tells nothing.
    """
    told: dict[str, float] = {}
    for root, size in sizes.items():
        try:
            found = statvfs(root)
        except (OSError, ValueError):
            continue
        for name, value in _of(found, size).items():
            told[name] = min(value, told.get(name, value))
    return told


def _of(found: Any, size: int) -> dict[str, float]:
    values = {}
    free, used = found.f_bavail * found.f_frsize, (found.f_blocks - found.f_bfree) * found.f_frsize
    if free + used > 0:  # some network file systems do not count
        values = {_FREE: float(free), _SHARE: free / (free + used)}
        if size:
            values[_ROOM] = free / size
    if found.f_files > 0:  # btrfs and others have no fixed number of them
        values[_INODES] = found.f_favail / found.f_files
    return values
