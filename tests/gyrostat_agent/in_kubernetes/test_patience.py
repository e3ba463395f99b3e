"""Patience with an API server that is away, and the finisher's with a cluster that is not as it should be."""

import pytest
from actions import UNTIL, order
from clusters import BY_NAME, NAMESPACE, Cluster

from gyrostat_agent.kubernetes import patience
from gyrostat_agent.kubernetes.finisher import Finisher, Watch
from gyrostat_agent.kubernetes.refusals import AwayError
from gyrostat_agent.kubernetes.turn import Turns

JOB, JOBSET, TRAINJOB, PYTORCHJOB, VOLCANO = BY_NAME.values()


class Hours:
    """Time that passes only by waiting."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.now = cluster, 100.0
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        self.cluster.settle()
        return False

    def clock(self) -> float:
        return self.now


def carried_out(cluster: Cluster, hours: Hours, said: list[str]) -> object:
    ref = cluster.begin(TRAINJOB)
    turns = Turns(cluster, TRAINJOB, ref, hours.clock, hours.clock)
    return patience.carry_out(turns, order(), dict, hours.clock, hours.wait, said.append)


def test_an_hour_of_500_ends_in_nobody_knows() -> None:
    """Tried ever less often, said once, given up when the order has expired; and nothing is done afterwards."""
    cluster = Cluster(lambda number, request: "500")
    hours, said = Hours(cluster), list[str]()
    assert carried_out(cluster, hours, said) is None
    assert UNTIL <= hours.now <= UNTIL + patience.GRACE + patience.LONGEST_PAUSE
    assert len(cluster.asked) < 80 and len(said) == 1 and "500" in said[0]
    assert cluster.starts == 1


def test_a_server_that_comes_back_is_used() -> None:
    """Ten minutes of it, then the restart is done, once."""
    hours: Hours
    cluster = Cluster(lambda number, request: "503" if hours.now < 700.0 else "")
    hours, said = Hours(cluster), list[str]()
    over = carried_out(cluster, hours, said)
    cluster.rest()
    assert getattr(over, "done", False) and cluster.starts == 2


def test_retry_after_is_waited_out() -> None:
    """A server that is flooded says how long."""
    cluster = Cluster(lambda number, request: "429" if number == 1 else "")
    hours = Hours(cluster)
    carried_out(cluster, hours, [])
    assert hours.waits[0] >= 1.0


def finisher(cluster: Cluster, said: list[str]) -> Finisher:
    return Finisher(cluster, NAMESPACE, "f", said.append, lambda: 100.0, lambda: 100.0)


def begun(cluster: Cluster, kind: object) -> None:
    """A job that an agent has stopped, and died of it."""
    ref = cluster.begin(kind)  # type: ignore[arg-type]
    Turns(cluster, kind, ref, lambda: 100.0, lambda: 100.0).take(order())  # type: ignore[arg-type]


def test_what_it_may_not_list_keeps_it_from_nothing_else() -> None:
    """A right that is missing for one kind, a kind that is not installed: the others' jobs are finished."""
    cluster, said = Cluster(), list[str]()
    begun(cluster, TRAINJOB)
    cluster.forbidden = {("list", "jobs.batch")}
    cluster.fault = lambda number, request: "404" if request.ref.plural == "pytorchjobs" else ""
    ours = finisher(cluster, said)
    for _ in range(12):
        ours.look()
        cluster.settle()
    assert cluster.starts == 2
    assert len([line for line in said if "list jobs.batch" in line and "finisher" in line]) == 1


def test_a_job_with_a_damaged_note_is_said_and_left_alone() -> None:
    """Nobody knows what was begun on it."""
    cluster, said = Cluster(), list[str]()
    ref = cluster.begin(JOB)
    cluster.things[ref]["metadata"]["annotations"] = {"gyrostat-action": "{"}
    ours = finisher(cluster, said)
    for _ in range(3):
        ours.look()
    assert len(said) == 1 and "remove it" in said[0]
    assert not [r for r in cluster.asked if r.verb == "patch" and r.ref == ref]


def test_an_api_that_is_away_ends_no_finisher() -> None:
    """It says so once, and goes on when it can."""
    cluster, said, waits = Cluster(lambda number, request: "500"), list[str](), list[float]()

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) > 10

    finisher(cluster, said).run(wait)
    assert len(said) == 1 and waits[-1] > waits[1]
    with pytest.raises(AwayError):
        cluster.fault = lambda number, request: "500" if request.ref.plural == "jobs" else ""
        finisher(cluster, said).look()


def test_a_finisher_lives_only_while_its_lease_changes() -> None:
    """Of one that died the lease still lies there: nobody may count on it."""
    cluster = Cluster()
    now = [0.0]
    watch = Watch(cluster, NAMESPACE, lambda: now[0])
    ours = finisher(cluster, [])
    ours.look()
    assert not watch.lives(), "seen once: it may be of yesterday"
    ours.look()
    now[0] += 11.0
    assert watch.lives()
    now[0] += 40.0
    assert watch.lives()
    now[0] += 40.0
    assert not watch.lives()
