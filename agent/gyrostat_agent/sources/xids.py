"""XIDs: the driver's error numbers, in words, and read out of the kernel's log.

The numbers come by NVML's events (gpu.py) or as lines of the log (host.py), where those may be read. Which of them are
the node's trouble: 48, 63, 64, 94 and 95 by NVIDIA's own table, the rest by the practice of those who run clusters.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

UNKNOWN = "not in our table; look it up in NVIDIA's"
_WORDS = {
    13: "an exception in the graphics engine, most often the program's own fault",
    31: "a memory page fault, most often the program's own fault",
    43: "the program's channel was reset, most often its own fault",
    45: "work was cut off after an earlier error: look for that one",
    48: "an uncorrectable memory error",
    63: "a bad memory row is marked to be replaced: reset the GPU when convenient",
    64: "a bad memory row could not be replaced",
    74: "an NVLink error",
    79: "the GPU has fallen off the bus",
    94: "an uncorrectable memory error that one program alone has felt: restart that program",
    95: "an uncorrectable memory error that every program may have felt",
    119: "the GPU's own processor does not answer the driver",
    120: "the GPU's own processor has failed",
    154: "the driver asks for another recovery of the GPU than before",
}
_OF_THE_NODE = {48, 64, 74, 79, 95, 119, 120, 154}
_FALLEN = 79
_LINE = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{1,20})\): (\d{1,4})(?:, pid='?(\d{1,9}))?")
_GPU = re.compile(r"NVRM: The NVIDIA GPU ([0-9a-fA-F:.]{1,20})")


class Xid(NamedTuple):
    """One error. ``device`` is the GPU's PCI address, '' where it is not told; ``pid`` is -1 where no process is."""

    number: int
    device: str = ""
    pid: int = -1


def in_words(number: int) -> str:
    """``XID 79 (the GPU has fallen off the bus)``."""
    return f"XID {number} ({_WORDS.get(number, UNKNOWN)})"


def is_of_the_node(number: int) -> bool:
    """True for the GPU's own trouble, which another start of the program on this node does not mend."""
    return number in _OF_THE_NODE


def gravest(numbers: Iterable[int]) -> int:
    """The newest of the node's troubles, else the newest of all; ``numbers`` are oldest first and not empty."""
    found = list(numbers)
    return next((n for n in reversed(found) if is_of_the_node(n)), found[-1])


class XidLines:
    """Reads XIDs out of the kernel's lines, in order: one form of the news takes two of them."""

    def __init__(self) -> None:
        self._device = ""

    def read(self, line: str) -> Xid | None:
        """The XID that the line tells of, if any."""
        if "NVRM:" not in line:
            return None
        if found := _LINE.search(line):
            return Xid(int(found[2]), found[1], int(found[3] or -1))
        if found := _GPU.search(line):
            self._device = found[1]
        elif "fallen off the bus and is not responding" in line:
            return Xid(_FALLEN, self._device)
        return None
