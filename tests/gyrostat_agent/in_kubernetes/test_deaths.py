"""A restart through deaths and faults: begun once, finished once, whenever whoever carries it out dies."""

import random

import pytest
from actions import Life, order
from clusters import BY_NAME, Cluster

from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.progress import GO_ON, HOLD
from gyrostat_agent.kubernetes.request import Request

KINDS = pytest.mark.parametrize("kind", BY_NAME.values(), ids=BY_NAME.keys())
_MOST_REQUESTS = 40


def requests_of(kind: JobKind) -> int:
    """How many requests a restart takes that nothing disturbs."""
    cluster = Cluster()
    life = Life(cluster, kind, cluster.begin(kind))
    assert life.carry_out(order()) is not None
    return len(cluster.asked)


@KINDS
def test_a_restart_begins_the_job_once_more(kind: JobKind) -> None:
    """Its pods go, all of them, and come again once."""
    cluster = Cluster()
    life = Life(cluster, kind, cluster.begin(kind))
    over = life.carry_out(order())
    cluster.rest()
    assert over is not None and over.done, over
    assert cluster.starts == 2 and len(cluster.pods("Running")) == 1
    assert not cluster.overlaps, "two trainers write one checkpoint"


@KINDS
@pytest.mark.parametrize("when", ["death before", "death after"])
def test_death_at_each_request_leaves_one_restart(kind: JobKind, when: str) -> None:
    """Whoever comes next finishes what was begun, and begins nothing twice: at every request, before and after it."""
    count = requests_of(kind)
    assert 4 < count < _MOST_REQUESTS
    for place in range(1, count + 1):
        cluster = Cluster(lambda number, request, place=place: when if number == place else "")
        life = Life(cluster, kind, cluster.begin(kind))
        over = life.carry_out(order())
        cluster.rest()
        assert life.deaths == 1
        assert over is not None and over.done, (place, over)
        assert not cluster.overlaps
        assert cluster.starts == 2, f"begun {cluster.starts - 1} times after a death at request {place}"
        assert cluster.commands <= 1


@KINDS
def test_two_deaths_at_any_pair_of_requests_leave_one_restart(kind: JobKind) -> None:
    """A second death while the first is being made good."""
    count = requests_of(kind) + 4
    for first in range(1, count):
        for second in range(first + 1, min(first + 8, count)):
            places = {first: "death after", second: "death before"}
            cluster = Cluster(lambda number, request, places=places: places.get(number, ""))
            life = Life(cluster, kind, cluster.begin(kind))
            over = life.carry_out(order())
            cluster.rest()
            assert over is not None and over.done, (first, second, over)
            assert cluster.starts == 2, (first, second)


@KINDS
def test_who_finishes_needs_no_order(kind: JobKind) -> None:
    """The pod that began it is gone: what stands on the job is enough to go on."""
    cluster = Cluster()
    ref = cluster.begin(kind)
    first = Life(cluster, kind, ref)
    first.turns.take(order())
    cluster.settle()
    over = Life(cluster, kind, ref).carry_out(None)
    cluster.rest()
    assert over is not None and over.done, over
    assert cluster.starts == 2


@KINDS
def test_two_at_once_restart_once(kind: JobKind) -> None:
    """The pod's own agent and the finisher take turns at the same job: each step is taken by one of them."""
    cluster = Cluster()
    ref = cluster.begin(kind)
    lives = [Life(cluster, kind, ref), Life(cluster, kind, ref)]
    for _ in range(30):
        lives[0].turns.take(order())
        lives[1].turns.take()
        cluster.settle()
        for life in lives:
            life.now += 3.0
    cluster.rest()
    assert cluster.starts == 2 and cluster.commands <= 1


@KINDS
def test_what_was_changed_between_read_and_write_is_read_again(kind: JobKind) -> None:
    """Another takes a whole turn in the middle of ours, at every write: what we read is no longer so."""
    cluster = Cluster()
    ref = cluster.begin(kind)
    ours, other = Life(cluster, kind, ref), Life(cluster, kind, ref)
    inside = False

    def between(number: int, request: Request) -> str:
        nonlocal inside
        if request.verb == "patch" and not inside:
            inside = True
            other.carry_out(order(), most=1)
            inside = False
        return ""

    cluster.fault = between
    for _ in range(30):
        ours.turns.take(order())
        cluster.settle()
        ours.now = other.now = other.now + 3.0
    cluster.rest()
    assert cluster.starts == 2 and cluster.commands <= 1 and not cluster.overlaps
    held = next(r for r in cluster.asked if r.verb == "patch" and r.ref == ref)
    assert held.body is not None and held.body["metadata"]["resourceVersion"]


@KINDS
def test_a_person_who_holds_the_job_meanwhile_is_not_overridden(kind: JobKind) -> None:
    """Suspended by hand before the order came: it is theirs, and stays so."""
    cluster = Cluster()
    ref = cluster.begin(kind)
    Life(cluster, kind, ref).carry_out(order(1, HOLD))
    cluster.rest()
    over = Life(cluster, kind, ref).carry_out(order(2))
    assert over is not None and not over.done
    assert "suspended" in over.said or "maxRetry" in over.said
    assert not cluster.pods()


def schedule(seed: int) -> tuple[Cluster, random.Random]:
    """A cluster in which each request may meet with what can happen to one."""
    rng = random.Random(seed)
    words = ["", "", "", "", "before", "after", "death before", "death after", "409", "410", "429", "500", "503"]

    def fault(number: int, request: Request) -> str:
        return rng.choice(words) if number < _MOST_REQUESTS else ""

    return Cluster(fault), rng


def one_schedule(seed: int) -> None:
    """A restart, a hold and a going on in a row, each disturbed at random; then it is as if nothing had been."""
    cluster, rng = schedule(seed)
    kind = rng.choice(list(BY_NAME.values()))
    ref = cluster.begin(kind)
    life = Life(cluster, kind, ref)
    for number, what in enumerate(("restart", HOLD, GO_ON), 1):
        over = life.carry_out(order(number, what), most=400)
        cluster.rest()
        assert over is not None and over.done, (seed, kind.kind, what, over)
        assert cluster.starts == {1: 2, 2: 2, 3: 3}[number], (seed, kind.kind, what, cluster.starts)
        assert not cluster.overlaps, (seed, kind.kind, what)
        assert cluster.commands <= number, (seed, "a command was given twice")
        assert len(cluster.pods()) == (0 if what == HOLD else 1), (seed, kind.kind, what)


@pytest.mark.parametrize("seed", range(50))
def test_random_faults_leave_each_action_done_once(seed: int) -> None:
    """Resets, conflicts, 410, 429, 5xx and deaths in any order: exactly one effect for each order."""
    one_schedule(seed)


@pytest.mark.full
def test_five_hundred_random_schedules() -> None:
    """The same, ten times as often."""
    for seed in range(50, 550):
        one_schedule(seed)
