"""Schedules drawn by chance: scenario, settings, deaths, delays and people's words, each from one seed.

``GYROSTAT_SCHEDULES=20000`` says how many; ``GYROSTAT_SEED=4711`` plays one alone, as a failure prints it.
"""

import os

import pytest
from chaos_schedules import by_chance
from chaos_world import World

_CI, _FULL = 300, 20_000
_CHUNKS = 20


def play(seeds: range) -> list[str]:
    """What failed, each with how to play it again."""
    failures = []
    for seed in seeds:
        try:
            World(by_chance(seed)).run()
        except AssertionError as error:
            again = f"GYROSTAT_SEED={seed} python -m pytest tests/chaos/test_random_schedules.py"
            failures.append(f"seed {seed}: {error}\n  again alone: {again}\n  {by_chance(seed)}")
    return failures


def seeds_of(chunk: int, schedules: int) -> range:
    """The chunk's share of the seeds; the one seed alone where the environment names one."""
    if alone := os.environ.get("GYROSTAT_SEED"):
        return range(int(alone), int(alone) + (chunk == 0))
    each = -(-schedules // _CHUNKS)
    return range(chunk * each, min(schedules, (chunk + 1) * each))


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_no_schedule_breaks_what_must_hold(chunk: int) -> None:
    """Whoever dies when, under whatever settings: nothing twice, nothing lost, no loop, nothing forgotten."""
    failures = play(seeds_of(chunk, int(os.environ.get("GYROSTAT_SCHEDULES", _CI))))
    assert not failures, f"{len(failures)} schedules failed\n" + "\n\n".join(failures[:5])


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_twenty_thousand_schedules(chunk: int) -> None:
    """The same for every schedule beyond those of CI."""
    failures = play(seeds_of(chunk, _FULL))
    assert not failures, f"{len(failures)} schedules failed\n" + "\n\n".join(failures[:5])
