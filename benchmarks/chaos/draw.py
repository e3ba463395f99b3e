"""Draw: what one chaos run is made of, a pure function of its seed, and one line of text."""

import json
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from chaos.disturbances import DISTURBANCES
from chaos.faults import FAMILIES, Strike, least_steps

_CLEAN, _TWO = 0.1, 0.3  # shares of draws without a fault, and with two
_RANKS = 0.15  # share of draws on two ranks
_FIRST, _LAST = 16, 26  # steps at which a live fault strikes: late enough for checkpoints that are certified
_BEHIND = 38  # steps after the last fault: to act, to prove it, and to learn again
_WITHOUT = 40  # steps of a run without a fault
_AROUND = (-12, 14)  # steps from a fault to a disturbance
_SLOW = 0.4  # how often a fault is drawn that takes a long run to be seen, beside the others
_GAP = 8  # most steps between two faults


class Due(NamedTuple):
    """A disturbance, the step at which it comes (as soon as that step is told), and its amount."""

    name: str
    step: int
    amount: float


class Draw(NamedTuple):
    """One run: ``seed`` is the trainer's too; ``steps`` is its last."""

    seed: int
    ranks: int
    steps: int
    faults: tuple[Strike, ...]
    disturbances: tuple[Due, ...]

    @property
    def line(self) -> str:
        """All of it in a line, as progress and tables show it."""
        broken = " and ".join(f"{s.name}@{s.step}" for s in self.faults) or "no fault"
        upset = ", ".join(f"{d.name}@{d.step} ({d.amount:g})" for d in self.disturbances) or "undisturbed"
        ranks = "1 rank" if self.ranks == 1 else f"{self.ranks} ranks"
        return f"seed {self.seed}: {broken}; {upset}; {ranks}, {self.steps} steps"

    @property
    def mendable(self) -> bool:
        """False where a disturbance leaves nobody anything to mend it with."""
        return all(DISTURBANCES[d.name].mendable for d in self.disturbances)

    def has(self, name: str) -> Due | None:
        """The disturbance of that name."""
        return next((d for d in self.disturbances if d.name == name), None)

    def encode(self) -> str:
        """JSON that ``decoded`` reads."""
        return json.dumps(self._asdict())


def decoded(text: str) -> Draw:
    """The draw that ``Draw.encode`` wrote; raises ValueError."""
    try:
        told: Mapping[str, Any] = json.loads(text)
        return Draw(
            told["seed"], told["ranks"], told["steps"],
            tuple(Strike(*one) for one in told["faults"]), tuple(Due(*one) for one in told["disturbances"]),
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise ValueError(f"no draw: {error!r}") from None


def clean(seed: int, steps: int) -> Draw:
    """A run in which nothing happens at all."""
    return Draw(seed, 1, steps, (), ())


def drawn(seed: int) -> Draw:
    """The draw of a seed: today, tomorrow, and with every version of Python."""
    chance = random.Random(f"chaos {seed}")  # of text, it does not depend on the size of an int's hash
    faults = _faults(chance)
    steps = least_steps(faults, _BEHIND if faults else _WITHOUT)
    count = chance.choices((0, 1, 2), (1, 6, 3))[0] if faults else 1
    ranks = 2 if chance.random() < _RANKS else 1
    return Draw(seed, ranks, steps, faults, _disturbances(chance, faults, steps, count))


def _faults(chance: random.Random) -> tuple[Strike, ...]:
    share = chance.random()
    if share < _CLEAN:
        return ()
    wanted = 2 if share < _CLEAN + _TWO else 1
    names: list[str] = []
    weights = [_SLOW if Strike(name, 1).from_start else 1.0 for name in FAMILIES]
    while len(names) < wanted:
        name = chance.choices(list(FAMILIES), weights)[0]
        if FAMILIES[name] not in {FAMILIES[other] for other in names}:
            names.append(name)
    first = chance.randint(_FIRST, _LAST)
    return tuple(_strike(chance, name, first) for name in names)


def _strike(chance: random.Random, name: str, first: int) -> Strike:
    strike = Strike(name, 1)
    return strike if strike.from_start else Strike(name, first + chance.randint(0, _GAP))


def _disturbances(chance: random.Random, faults: tuple[Strike, ...], steps: int, count: int) -> tuple[Due, ...]:
    names, weights = list(DISTURBANCES), [one.weight for one in DISTURBANCES.values()]
    chosen: list[str] = []
    while len(chosen) < count:
        name = chance.choices(names, weights)[0]
        if not any(_group(name) == _group(other) for other in chosen):
            chosen.append(name)
    live = [s.step for s in faults if not s.from_start] or [steps // 2]
    return tuple(_due(chance, name, live[0], steps) for name in chosen)


def _group(name: str) -> str:
    """Two of one group are not drawn together: a trainer has one control, an agent one first life."""
    return name.partition("_")[0]


def _due(chance: random.Random, name: str, near: int, steps: int) -> Due:
    row = DISTURBANCES[name]
    step = min(max(2, near + chance.randint(*_AROUND)), steps - 2)
    return Due(name, step, round(chance.uniform(row.low, row.high), 3))
