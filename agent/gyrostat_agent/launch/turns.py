"""Turns: knobs of a trainer that is known by its log alone, as flags of its command, which a restart alone turns.

A knob is there only where its launcher's row names a flag for it and the command bears that flag, once, with a plain
number: what a flag is that stands in a file or in the script's own code nobody here knows, and it is not guessed. What
was turned stays for the run's later restarts; the command that a person gave is never lost, and the end says both.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial

from gyrostat import Knob
from gyrostat_agent.launch.flags import Changed, Launcher, given, put

_LEAST, _FACTOR = 0.01, 2.0  # of what a person gave; by more than so much a rung does not turn it at once
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?")


class Turns:
    """The knobs of one command. ``values`` is how each flag stands now, by the knob's name."""

    def __init__(self, command: Sequence[str], launcher: Launcher | None) -> None:
        self._launcher = launcher
        self._flags = dict(launcher.knobs) if launcher else {}
        read = {name: _number(given(command, launcher, flag)) for name, flag in self._flags.items() if launcher}
        self._before = {name: value for name, value in read.items() if value is not None}
        self.values = dict(self._before)

    def knobs(self) -> list[Knob]:
        """As they are told in Hello: each may fall to a hundredth of what a person gave, and rises no higher."""
        return [
            Knob(name, partial(self.values.__getitem__, name), _by_a_restart, before * _LEAST, before, _FACTOR,
                 doc=f"{self._flags[name]} of the command")
            for name, before in self._before.items()
        ]  # fmt: skip

    def unfit(self, wanted: Mapping[str, float]) -> str:
        """Why these values must not be set, or ''."""
        for name, value in wanted.items():
            if name not in self._before:
                flag = self._flags.get(name)
                return f"the command does not say {flag}: what it is now is not known" if flag else f"no flag is {name}"
            turn = f"{self._flags[name]} {self.values[name]:g} to {value:g}"
            if not self._before[name] * _LEAST <= value <= self._before[name]:
                return f"{turn} is outside its bounds"
            if self.values[name] > _FACTOR * value * (1 + 1e-9):
                return f"{turn} is too far at once"
        return ""

    def applied(self, command: Sequence[str], wanted: Mapping[str, float]) -> Changed:
        """The command with each flag where it has been turned to, or is to be."""
        words, said = list(command), []
        for name, value in {**self.values, **wanted}.items():
            if self._launcher is not None and value != self._before[name]:
                was = put(words, self._launcher, self._flags[name], f"{value:g}")
                said.append(f"{self._flags[name]} {value:g} (was {was})")
        return Changed(tuple(words), tuple(said))


def _by_a_restart(value: float) -> None:
    raise ValueError("a flag is read when the command begins: it is turned by a restart alone")


def _number(words: Sequence[str]) -> float | None:
    """The value of a flag that is given once, as a plain number above 0."""
    if len(words) != 1 or not _NUMBER.fullmatch(words[0]):
        return None
    value = float(words[0])
    return value if 0.0 < value < math.inf else None
