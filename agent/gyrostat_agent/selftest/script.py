"""Script: what the processes of a simulated run say, input by input, in virtual time.

Seeded and without a clock: the same script is the same inputs on every machine.
"""

import random
from collections.abc import Iterable, Mapping, Sequence

from gyrostat.wire import ExpertLoad, Hello, Record
from gyrostat_rules.inputs import Batch, Input, Item, Tick

SECONDS = 10.0  # of a step
MOST = 5000  # steps that are simulated; a rule that waits for more is tried by nobody here
_BEGAN = 1000.0
Row = tuple[str, int, Mapping[str, float]]  # role, rank, values


class Script:
    """A run that is being written down. ``fault``: the place of the first input that is wrong, ``step`` its step."""

    def __init__(self, seed: int, ranks: int = 1, root: str = "") -> None:
        self.inputs: list[Input] = []
        self.at, self.number, self.life, self.ranks, self.root = _BEGAN, 0, 0, ranks, root
        self.fault = self.step = 0
        self._dice = random.Random(seed)
        self.hello()

    def hello(self) -> None:
        """The trainer's ranks begin a life."""
        self.life += 1
        self.say(*(Hello("selftest", "trainer", rank, self.ranks, f"life-{self.life}", checkpoint_root=self.root)
                   for rank in range(self.ranks)))  # fmt: skip

    def say(self, *items: Item) -> None:
        """Anything, in one pass of the agent's loop."""
        self.inputs.append(Batch(self.at, items))

    def wait(self, seconds: float) -> None:
        """Time passes, and nobody says a word."""
        self.at += seconds
        self.inputs.append(Tick(self.at))

    def ill(self) -> None:
        """From here on something is wrong."""
        self.fault, self.step = len(self.inputs), self.number

    def tell(self, values: Mapping[str, float], load: ExpertLoad | None = None, stride: int = 1) -> None:
        """A step of trainer 0."""
        self.rows([("trainer", 0, values)], load, stride)

    def rows(self, rows: Sequence[Row], load: ExpertLoad | None = None, stride: int = 1) -> None:
        """A step of several processes; the trainer's last row completes it."""
        if len(self.inputs) > MOST:
            raise OverflowError(f"it would take more than {MOST} steps")
        self.at += SECONDS
        n, at, life = self.number, self.at, f"life-{self.life}"
        self.say(*(Record(role, rank, life, 0, n, n, at, dict(values), load) for role, rank, values in rows))
        self.number += stride

    def column(self, name: str, values: Iterable[float]) -> None:
        """Steps of one series of trainer 0."""
        for value in values:
            self.tell({name: value})

    def about(self, level: float, count: int, share: float = 0.02) -> list[float]:
        """Values that wander about a level, as a healthy series does; raises OverflowError for too many of them."""
        if count > MOST:
            raise OverflowError(f"it would take more than {MOST} steps")
        return [level * (1.0 + self._dice.gauss(0.0, share)) for _ in range(count)]
