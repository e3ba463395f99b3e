"""Every moment is a safe one to die in: each scenario, with a death at each passing of each point, and at each two.

The singles and a stated sample of the pairs run in CI; ``make test-full`` runs every pair.
"""

from collections.abc import Iterable
from functools import cache
from random import Random
from typing import NamedTuple

import pytest
from chaos_scenarios import BY_NAME, SCENARIOS, Schedule
from chaos_schedules import losses, pairs, singles
from chaos_world import World

from gyrostat_rules.guards import GUARDS

_PAIRS, _LOSSES = 5, 3  # of each scenario in CI, drawn by the scenario's name
_NAMES = pytest.mark.parametrize("name", BY_NAME)

# The planner passes a remedy by, with its reason, where nobody is there to carry it out: in the same moment, so
# that this guard is never the one that speaks. It stands behind the planner for remedies still to come. And no rule of
# these packs throws, so that `sound` has nothing to say; its tests make one throw. Nor is the ledger's disk ever full
# here, and nobody turns a knob by hand: tests of what is put off and of hands do that.
_NEVER_ASKED = {"capability", "sound", "written_down", "by_hand", "standing"}


class Played(NamedTuple):
    """How many schedules were played, what they failed of, and the states in which somebody died."""

    number: int
    failures: tuple[str, ...]
    covered: frozenset[tuple[str, str]]


def play(schedules: Iterable[Schedule]) -> Played:
    """Play them all; a failure does not end the campaign."""
    count, failures, covered = 0, [], set[tuple[str, str]]()
    for schedule in schedules:
        count += 1
        try:
            World(schedule, covered).run()
        except AssertionError as error:
            failures.append(f"{schedule.scenario.name}, {schedule.blows}: {error}")
    return Played(count, tuple(failures), frozenset(covered))


@cache
def singles_of(name: str) -> Played:
    return play(singles(BY_NAME[name]))


def said(played: Played) -> str:
    """The first failures, in words."""
    return f"{len(played.failures)} of {played.number} schedules failed:\n" + "\n\n".join(played.failures[:5])


@_NAMES
def test_any_one_moment_is_safe_to_die_in(name: str) -> None:
    """Agent or trainer dies once, anywhere, and is started again: nothing is done twice, lost or forgotten."""
    played = singles_of(name)
    assert not played.failures, said(played)


@_NAMES
def test_two_deaths_are_no_worse_than_one(name: str) -> None:
    """A second death, also while the first is being recovered from, breaks nothing (a sample of the pairs)."""
    played = play(_sample(pairs(BY_NAME[name]), name, _PAIRS))
    assert not played.failures, said(played)


@_NAMES
def test_a_lost_node_and_a_lost_pod_are_survived(name: str) -> None:
    """Agent and trainer die of one blow, and the run directory with them: the ledger carries on (a sample)."""
    played = play(_sample(losses(BY_NAME[name]), name, _LOSSES))
    assert not played.failures, said(played)


def test_an_incident_outlives_its_pod() -> None:
    """What was under way when the pod went is taken up from the ledger and brought to its end."""
    world = World(Schedule(BY_NAME["the pod goes"])).run()
    assert world.agent is not None and world.history.pods == 1
    ends = {(i.id, i.state) for i in world.agent.engine.state.incidents}
    assert ("i0001", "resolved") in ends, ends


@pytest.mark.full
@_NAMES
def test_every_pair_of_deaths(name: str) -> None:
    """Each two moments of a scenario, and each loss of a node or pod."""
    for played in (play(pairs(BY_NAME[name])), play(losses(BY_NAME[name]))):
        assert not played.failures, said(played)


def test_somebody_died_in_every_state_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """The campaign means something only if the deaths fall in every state of incident, ladder and guard."""
    played = [singles_of(s.name) for s in SCENARIOS]
    covered = set[tuple[str, str]]().union(*(p.covered for p in played))
    with capsys.disabled():
        print(
            f"\nchaos: {sum(p.number for p in played)} single deaths in {len(played)} scenarios, {len(covered)} states"
        )
    states = {"open", "acting", "probation", "resolved", "held", "stopped"}
    assert {which for what, which in covered if what == "incident"} == states
    rungs = {f"nonfinite {n}" for n in range(1, 6)} | {"crash 1", "stall 1"}
    assert {which for what, which in covered if what == "rung"} >= rungs
    remedies = {"skip_data", "rollback", "restart", "stop", "page", "undo"}
    assert {which for what, which in covered if what == "remedy"} == remedies
    spoke = {which.partition(" ")[0] for what, which in covered if what == "guard"}
    assert spoke == {guard.__name__ for guard in GUARDS} - _NEVER_ASKED


def _sample(schedules: Iterable[Schedule], seed: str, most: int) -> list[Schedule]:
    every = list(schedules)
    return every if len(every) <= most else Random(seed).sample(every, most)
