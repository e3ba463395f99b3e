"""Out of memory: what a GPU's line of it says, and whether this process alone filled the card.

PyTorch's line names each process on the card. In a container it does not know its own number, so that one of those
named may be the writer: the least that holds all of what PyTorch had allocated.
"""

import re

_AMOUNT = r"([\d.]{1,12}) ([KMGT]?i?B)"
_WANTED = re.compile(rf"Tried to allocate {_AMOUNT}")
_OTHERS = re.compile(rf"\bProcess \d{{1,9}} has {_AMOUNT} memory in use")
_OWN = re.compile(rf"this process has {_AMOUNT} memory in use")
_ALLOCATED = re.compile(rf"{_AMOUNT} (?:is|already) allocated")
_CAPACITY = re.compile(rf"total capac(?:i?ty) of {_AMOUNT}|{_AMOUNT} total capacity")
_UNITS = {"B": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 2.0**10}
_MUCH = 1.0  # GiB that others hold: less is their bare presence on the card


def told(found: re.Match[str]) -> tuple[str, str]:
    """Kind and words of a line from where it speaks of memory: ``oom``, or ``oom_shared`` where others hold much."""
    line = found.string[found.start() :]
    wanted, capacity = _amount(_WANTED, line), _amount(_CAPACITY, line)
    what = f"the GPU's memory ran out{f': {wanted:g} GiB more were wanted' if wanted else ''}"
    card = f" of {capacity:g} GiB" if capacity else ""
    others = _others(line)
    if others < _MUCH:
        return "oom", what + (f", and the card has {capacity:g} GiB" if capacity else "")
    return "oom_shared", f"{what}, and other processes hold {others:.3g} GiB{card}: a smaller batch is no cure"


def _others(line: str) -> float:
    """GiB that others hold."""
    named = sorted(_gib(*one) for one in _OTHERS.findall(line))
    allocated = _amount(_ALLOCATED, line)
    if named and allocated and not _OWN.search(line):
        own = next((amount for amount in named if amount >= allocated), 0.0)
        return sum(named) - own
    return sum(named)


def _amount(pattern: re.Pattern[str], line: str) -> float:
    found = pattern.search(line)
    if found is None:
        return 0.0
    number, unit = [group for group in found.groups() if group is not None][:2]
    return _gib(number, unit)


def _gib(number: str, unit: str) -> float:
    try:
        return float(number) * _UNITS.get(unit, 0.0)
    except ValueError:  # 1.2.3
        return 0.0
