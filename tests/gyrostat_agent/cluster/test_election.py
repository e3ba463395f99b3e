"""The election: never two who act at once, never two in one term, and somebody soon after the leader is gone."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gyrostat_agent.cluster.candidate import Candidate
from gyrostat_agent.cluster.lease import Holding, LeaseError, Wish

NODES = 3


class Store:
    """A lease in memory, as every store must be: changed on condition, never torn."""

    def __init__(self) -> None:
        self.holding, self.wish = Holding(), Wish()
        self.taken: list[tuple[int, str]] = []


class Reach:
    """One node's way to the store, which may be cut; ``slow`` is what each call takes, on the world's clock."""

    def __init__(self, store: Store) -> None:
        self.store, self.cut = store, False

    def who(self) -> Holding:
        self._ask()
        return self.store.holding

    def preferred(self) -> Wish:
        self._ask()
        return self.store.wish

    def try_take(self, seen: Holding, node: str, address: str, least: int = 0) -> Holding | None:
        self._ask()
        if self.store.holding != seen:
            return None
        term = max(seen.term, least) + 1
        self.store.holding = Holding(term, node, address, 1)
        self.store.taken.append((term, node))
        return self.store.holding

    def renew(self, held: Holding) -> Holding | None:
        self._ask()
        if self.store.holding != held:
            return None
        self.store.holding = held._replace(beat=held.beat + 1)
        return self.store.holding

    def release(self, held: Holding, promised: str = "") -> None:
        self._ask()
        if self.store.holding == held:
            self.store.holding = Holding(held.term, "", "", held.beat + 1, promised)

    def prefer(self, wish: Wish) -> None:
        self._ask()
        self.store.wish = wish

    def _ask(self) -> None:
        if self.cut:
            raise LeaseError("the store cannot be reached")


class World:
    """So many agents, each with a clock of its own: an hour apart, and not quite of one rate."""

    def __init__(self) -> None:
        self.now = 0.0
        self.store = Store()
        self.reaches = [Reach(self.store) for _ in range(NODES)]
        self.paused = [False] * NODES
        self.beside = [True] + [False] * (NODES - 1)
        rates = (1.0, 1.005, 0.995)
        self.agents = [
            Candidate(reach, f"node-{i}", f"10.0.0.{i}:1", lambda i=i: 3600.0 * i + rates[i] * self.now)  # type: ignore[misc]
            for i, reach in enumerate(self.reaches)
        ]

    def pass_time(self, seconds: float) -> None:
        """All who are not paused look, each a little after the other."""
        end = self.now + seconds
        while self.now < end:
            for i, agent in enumerate(self.agents):
                if not self.paused[i]:
                    agent.step(self.beside[i])
                self.now += 1.0 / NODES
                self.check()

    def acting(self) -> list[str]:
        return [f"node-{i}" for i, agent in enumerate(self.agents) if agent.post.leads]

    def check(self) -> None:
        assert len(self.acting()) <= 1, self.acting()
        terms = [term for term, _ in self.store.taken]
        assert len(terms) == len(set(terms))


class Blow(NamedTuple):
    """What happens to one node, and for how long the world goes on then."""

    node: int
    what: str
    seconds: float


blows = st.lists(
    st.builds(
        Blow,
        st.integers(0, NODES - 1),
        st.sampled_from(["cut", "mend", "pause", "go on", "move rank 0", "die"]),
        st.floats(0.3, 25.0),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(blows)
def test_never_two_act_and_somebody_does_in_the_end(schedule: list[Blow]) -> None:
    """Cut off, stopped and gone on, killed, rank 0 moved: at most one acts, and once all is well exactly one."""
    world = World()
    for blow in schedule:
        strike(world, blow)
        world.pass_time(blow.seconds)
    world.paused = [False] * NODES
    for reach in world.reaches:
        reach.cut = False
    world.pass_time(45.0)
    beside = [f"node-{i}" for i in range(NODES) if world.beside[i]]
    assert world.acting() == beside


def strike(world: World, blow: Blow) -> None:
    if blow.what in ("cut", "mend"):
        world.reaches[blow.node].cut = blow.what == "cut"
    elif blow.what in ("pause", "go on"):
        world.paused[blow.node] = blow.what == "pause"
    elif blow.what == "move rank 0":
        world.beside = [i == blow.node for i in range(NODES)]
    else:
        world.agents[blow.node] = Candidate(
            world.reaches[blow.node], f"node-{blow.node}", "10.9.9.9:1", lambda: world.now
        )
    world.check()


def test_a_leader_that_dies_is_followed_within_fifteen_seconds() -> None:
    """The others see its lease stand still, and one of them takes it."""
    world = World()
    world.pass_time(20.0)
    assert world.acting() == ["node-0"]
    world.paused[0], died = True, world.now
    while world.acting() in ([], ["node-0"]):
        world.pass_time(0.5)
    assert world.now - died < 15.0


def test_a_leader_that_is_cut_off_stops_before_another_may_take_it() -> None:
    """It cannot know who leads: it does nothing any more, and says why."""
    world = World()
    world.pass_time(20.0)
    world.reaches[0].cut = True
    while world.acting() == ["node-0"]:
        world.pass_time(0.3)
    assert world.acting() == [], "it has stopped, and nobody has taken it yet"
    assert "cannot be reached" in world.agents[0].post.fault
    world.pass_time(6.0)
    assert world.acting() in (["node-1"], ["node-2"])


def test_the_agent_beside_rank_zero_has_it_back_at_once() -> None:
    """Only it can lay directives for the trainers: whoever stood in gives way as soon as it is well."""
    world = World()
    world.pass_time(20.0)
    world.paused[0] = True
    world.pass_time(15.0)
    assert world.acting() != ["node-0"]
    world.paused[0] = False
    world.pass_time(5.0)
    assert world.acting() == ["node-0"]


def test_whoever_is_not_well_does_not_renew() -> None:
    """An agent whose loop hangs leads nobody: its lease runs out."""
    world = World()
    world.pass_time(20.0)
    for _ in range(10):
        world.now += 1.0
        world.agents[0].step(True, well=False)
    assert world.acting() == []


@pytest.mark.parametrize("beat", [0, 7])
def test_an_old_wish_moves_nobody(beat: int) -> None:
    """A wish that lies there since long ago is of an agent that may be gone: it must change to count."""
    world = World()
    world.store.wish = Wish("node-2", beat)
    world.pass_time(30.0)
    assert [node for _, node in world.store.taken] == ["node-0"]
