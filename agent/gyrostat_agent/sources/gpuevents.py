"""GPU events: the XIDs that the driver tells while the agent runs, taken without waiting.

Called by ``gpus``. What happened before the GPUs were watched is not told by the driver; the kernel's log may have it.
"""

import contextlib
import ctypes
from collections.abc import Iterable
from typing import Any

from gyrostat_agent.sources.nvml import Device

NOWHERE = -1
_XID = 0x8
_MOST = 256  # events of one sample: a GPU that tells without end must not keep the others waiting


class GpuEvents:
    """One set of events for all GPUs. ``unwatched`` are those whose XIDs the driver will not tell."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._set: Any = None
        self._index: dict[int, int] = {}
        self.unwatched: list[int] = []

    def watch(self, devices: Iterable[Device]) -> None:
        """Watch these and no others: a set with a lost GPU in it may tell of nothing but the loss."""
        self.close()
        self._index, self.unwatched = {}, []
        with contextlib.suppress(self._library.NVMLError):
            self._set = self._library.nvmlEventSetCreate()
        for device in devices:
            try:
                self._library.nvmlDeviceRegisterEvents(device.handle, _XID, self._set)
            except self._library.NVMLError:
                self.unwatched.append(device.index)
            else:
                self._index[_address(device.handle)] = device.index

    def take(self) -> list[tuple[int, int]]:
        """``(GPU, XID)`` of what has happened since, oldest first; GPU -1 where the driver does not say which."""
        found: list[tuple[int, int]] = []
        # The wait ends with an error where nothing has happened, and where the set is broken: then each GPU is asked
        # how it is anyway, and one that is lost is no longer watched.
        with contextlib.suppress(self._library.NVMLError):
            while self._set is not None and len(found) < _MOST:
                event = self._library.nvmlEventSetWait_v2(self._set, 0)
                found.append((self._index.get(_address(event.device), NOWHERE), int(event.eventData)))
        return found

    def close(self) -> None:
        """Stop watching."""
        if self._set is not None:
            with contextlib.suppress(self._library.NVMLError):
                self._library.nvmlEventSetFree(self._set)
            self._set = None


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
