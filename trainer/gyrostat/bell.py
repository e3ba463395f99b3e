"""The bell: eight bytes in which the sidecar leaves the number of its newest directive.

Read by Control once a step with one ``pread``. It is not mapped: a truncated map is a SIGBUS, and the folder
is shared. What cannot be read, or others could have written, rings for nothing.
"""

import os
from time import monotonic

from gyrostat.wire.rights import open_trusted

_LOOK_EVERY, _LOOK_SECONDS = 64, 1.0  # reads, and seconds, between looks whether the file was replaced
LARGEST = 1 << 53  # beyond it is damage: obeying it would make us deaf to every number below


class Bell:
    """Reads the bell at ``path``, '' for none. One object a process."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._reads = 0
        self._look_at = 0.0

    def read(self) -> int:
        """Number of the newest directive; 0 for none. Never raises."""
        if self._fd < 0 and not self._open():
            return 0
        try:
            self._reads += 1
            if not self._reads % _LOOK_EVERY or monotonic() >= self._look_at:
                self._look_at = monotonic() + _LOOK_SECONDS
                if not os.fstat(self._fd).st_nlink:
                    os.close(self._fd)
                    self._fd = -1
                    return self.read()
            number = int.from_bytes(os.pread(self._fd, 8, 0), "little")
        except OSError:
            return 0
        return number if number <= LARGEST else 0

    def _open(self) -> bool:
        if not self._path:
            return False
        try:
            self._fd = open_trusted(self._path)
        except (OSError, ValueError):
            return False
        return True
