"""Runs in mode shadow, let go of at the end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shadow_runs import Shadowed

Make = Callable[..., Shadowed]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes runs, by name."""
    made: list[Shadowed] = []

    def run(name: str = "run", **how: object) -> Shadowed:
        made.append(Shadowed(tmp_path, name, **how))  # type: ignore[arg-type]
        return made[-1]

    yield run
    for one in made:
        one.close()
