"""What waits to be forwarded is bounded: old records go first, a death never before them."""

from gyrostat.wire import ExpertLoad, Record
from gyrostat_agent.cluster.outbox import Outbox
from gyrostat_rules.inputs import Ended


def record(step: int) -> Record:
    return Record("trainer", 0, "life", 0, step, step, float(step), {"loss": 1.0})


def steps(outbox: Outbox) -> list[int]:
    return [i.step for i in outbox.next().items if isinstance(i, Record)]


def test_the_oldest_records_go_where_it_is_full() -> None:
    """What is left is the newest, in order; what went is counted; a goodbye in between stays."""
    outbox = Outbox(most=10)
    outbox.put([(record(1), False), (Ended("trainer", 3, "x"), True), *((record(s), False) for s in range(2, 30))])
    assert outbox.dropped == 20 and steps(outbox) == list(range(21, 30))
    assert any(isinstance(i, Ended) for i in outbox.next().items)


def test_nothing_but_deaths_is_bounded_too() -> None:
    """However many there are, memory is bounded."""
    outbox = Outbox(most=10)
    outbox.put((Ended("trainer", n, "x"), True) for n in range(50))
    assert outbox.waiting == 10 and outbox.dropped == 40


def test_what_was_taken_goes_and_what_came_meanwhile_stays() -> None:
    """A parcel on its way does not hold up what is put in behind it."""
    outbox = Outbox()
    outbox.put([(record(1), False), (record(2), False)])
    portion = outbox.next()
    outbox.put([(record(3), False)])
    assert outbox.next().items[:2] == portion.items
    outbox.done(portion)
    assert steps(outbox) == [3]


def test_what_was_dropped_on_its_way_takes_nothing_else_with_it() -> None:
    """Full while a parcel is under way: what it held is let go once, and the next one goes in whole."""
    outbox = Outbox(most=4)
    outbox.put((record(s), False) for s in (1, 2, 3))
    portion = outbox.next()
    outbox.put((record(s), False) for s in (4, 5, 6))
    outbox.done(portion)
    assert steps(outbox) == [4, 5, 6]


def test_an_introduction_goes_first_and_once() -> None:
    """Another leader hears who is here before it hears what they say."""
    outbox = Outbox()
    outbox.put([(record(1), False)])
    outbox.introduce([Ended("trainer", 7, "x")])
    portion = outbox.next()
    assert portion.introduces and not any(isinstance(i, Record) for i in portion.items)
    outbox.done(portion)
    assert not outbox.next().introduces and steps(outbox) == [1]
    assert outbox.urgent.is_set() is False
    outbox.introduce([])
    assert outbox.urgent.is_set(), "it cannot wait"


def test_a_parcel_bears_few_large_records() -> None:
    """Expert counts of 61 x 256 are tens of kilobytes: hundreds of them in one parcel would never be taken."""
    outbox = Outbox()
    load = ExpertLoad(61, 1, 256, (7,) * (61 * 256))
    outbox.put((record(s)._replace(load=load), False) for s in range(200))
    assert 10 < len(outbox.next().items) < 100


def test_what_an_introduction_states_is_not_told_again_behind_it() -> None:
    """A death of a life before, told after the Hello of the next one, would make a living rank dead."""
    outbox = Outbox()
    outbox.put([(Ended("trainer", 8, "old"), True), (record(1), False), (Ended("trainer", 8, "older"), True)])
    outbox.introduce([])
    outbox.done(outbox.next())
    assert [type(i) for i in outbox.next().items] == [Record] and outbox.waiting == 1
