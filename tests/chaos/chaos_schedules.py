"""Schedules: who dies when. All single deaths and all pairs of a scenario, or as chance has it by a seed."""

from collections.abc import Iterator
from itertools import combinations
from random import Random

from chaos_deaths import TRAINER_POINTS, Blow
from chaos_packs import NAMES
from chaos_scenarios import SCENARIOS, Scenario, Schedule
from chaos_trainer import Plan
from chaos_world import points_of

from gyrostat_agent import failpoints

_DELAYS = (0, 1, 4, -1)  # rounds until whoever died is started again; -1: not before the end

_POINTS = (*failpoints.POINTS, *TRAINER_POINTS)


def singles(scenario: Scenario) -> Iterator[Schedule]:
    """One death at each passing of each point, started again at once."""
    for point, times in sorted(points_of(scenario).items()):
        for count in range(1, times + 1):
            yield Schedule(scenario, (Blow(point, count),))


def pairs(scenario: Scenario) -> Iterator[Schedule]:
    """Each two deaths: of the agent twice, of the trainer twice, of one and then the other."""
    passings = [Blow(p, n + 1) for p, times in sorted(points_of(scenario).items()) for n in range(times)]
    for first, second in combinations(passings, 2):
        yield Schedule(scenario, (first, second))


def losses(scenario: Scenario) -> Iterator[Schedule]:
    """One blow that ends both, and one that takes the run directory as well, at each passing."""
    for schedule in singles(scenario):
        for pod in (False, True):
            yield Schedule(scenario, (schedule.blows[0]._replace(both=True, pod=pod),))


def by_chance(seed: int) -> Schedule:
    """A scenario, its settings, deaths, delays and people's words, all drawn by ``seed``."""
    draw = Random(seed)
    base = draw.choice(SCENARIOS)
    scenario = base._replace(
        mode=draw.choice((base.mode, base.mode, "act", "shadow", "observe")),
        approvals=draw.random() < 0.4,
        person=draw.choice(("", "approves", "approves", "denies")),
        supervisor=draw.random() < 0.8,
        relaunch=draw.choice((0, 1, 3, 6)),
        agent_every=draw.choice((1, 1, 2, 3)),
        pause=draw.choice((base.pause, (0, 0), (3, 8))),
        pod_lost_at=draw.choice((base.pod_lost_at, 0, 0, draw.randint(3, 15))),
        pack=draw.choice((base.pack, base.pack, *NAMES)),
        plan=_plan(draw, base.plan),
        rounds=draw.randint(8, 20),
    )
    blows = tuple(
        Blow(
            draw.choice(_POINTS), min(1 + int(draw.expovariate(0.15)), 40), draw.choice(_DELAYS), draw.random() < 0.2,
            draw.random() < 0.1,
        )
        for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4, 6)))
    )  # fmt: skip
    return Schedule(scenario, blows)


def _plan(draw: Random, base: Plan) -> Plan:
    return base._replace(
        guard=draw.choice((base.guard, base.guard, not base.guard)),
        sampling_fails=base.sampling_fails or draw.random() < 0.2,
        exit_at=base.exit_at or draw.choice((0, 0, 0, draw.randint(3, 15))),
        checkpoint_every=draw.choice((2, 3, 5)),
        busy=base.busy or draw.random() < 0.1,
        raises=base.raises or draw.choice(((), (), (), ("rollback",), ("skip_data",), ("stop",))),
        turned_at=base.turned_at or draw.choice((0, 0, 0, draw.randint(3, 12))),
        poison_once=base.poison_once or draw.choice(((), (), (draw.randint(3, 9),))),
        stopped_at=base.stopped_at or draw.choice((0, 0, 0, draw.randint(3, 9))),
        stopped_rounds=base.stopped_rounds or draw.randint(1, 12),
    )
