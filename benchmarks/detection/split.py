"""Split: which family and seed each run of a split is made of. No seed is in two splits."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from families import FAULTY, HEALTHY, JUDGED_ONLY

CALIBRATE, JUDGE = SPLITS = ("calibrate", "judge")
_APART = 10_000_000  # seeds of a split
_LONG = 5_000_000  # of them, from here on, for its long healthy stretch


class Planned(NamedTuple):
    """A run that is to be made."""

    family: str
    seed: int


def planned(split: str, runs: int) -> Iterator[Planned]:
    """``runs`` runs: a faulty one and a healthy one in turn, each family in turn."""
    sick, well = _of(split, list(FAULTY)), _of(split, list(HEALTHY))
    for place in range(runs):
        names = well if place % 2 else sick
        yield Planned(names[place // 2 % len(names)], first_seed(split) + place)


def stretch(split: str) -> Iterator[Planned]:
    """Healthy runs without end, of seeds that ``planned`` never comes to."""
    names = _of(split, list(HEALTHY))
    place = 0
    while True:
        yield Planned(names[place % len(names)], first_seed(split) + _LONG + place)
        place += 1


def first_seed(split: str) -> int:
    """The first of a split's seeds."""
    return _APART * SPLITS.index(split)


def healthy(split: str, steps: int, rows: int) -> Iterator[Planned]:
    """As many healthy runs of ``rows`` rows as tell ``steps`` steps or more."""
    return islice(stretch(split), -(-steps // rows))


def _of(split: str, names: list[str]) -> list[str]:
    return [name for name in names if split == JUDGE or name not in JUDGED_ONLY]
