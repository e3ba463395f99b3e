"""From a follower's outbox into a leader's journal: each item once, whoever dies or is not believed in between."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_runs import Node, nodes

from gyrostat.wire import Hello, Record
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import AlertTold, Forwarded, Item, SourceState
from gyrostat_rules.standing import FOLLOWER, LEADER, Standing
from gyrostat_rules.state import Alert, Process, State


@pytest.fixture
def clock() -> Iterator[list[float]]:
    yield [1000.0]


@pytest.fixture
def pair(tmp_path: Path, clock: list[float]) -> Iterator[list[Node]]:
    with nodes(tmp_path, lambda: clock[0], "node-0", "node-1") as made:
        made[0].member.begin({})
        made[1].member.begin({})
        yield made


LEADS = State(standing=Standing(LEADER, "node-0", "node-0", 1))


def follower() -> State:
    state = State(run="run", standing=Standing(FOLLOWER, "node-1", "node-0", 1))
    state.processes["trainer/9"] = Process("trainer", 9, "life", world=16, root="/c")
    return state


def record(step: int, rank: int = 9) -> Record:
    return Record("trainer", rank, "life", 0, step, step, float(step), {"loss": 1.0, "compute_time": 0.5})


def steps(items: list[Item]) -> list[int]:
    inside = [one for item in items if isinstance(item, Forwarded) for one in item.items]
    return [one.step for one in inside if isinstance(one, Record)]


def forward(sender: Node, leader: Node) -> tuple[bool, list[Item]]:
    """One parcel, from outbox to items; the sender's thread waits for the commit, so it runs beside."""
    sent: list[bool] = []
    thread = threading.Thread(target=lambda: sent.append(sender.sender.step()))
    thread.start()
    found: list[Item] = []
    while thread.is_alive():
        found += [item for item in leader.member.drain(LEADS).items if isinstance(item, Forwarded)]
        leader.member.committed()
        thread.join(0.002)
    return sent[0], found


def test_a_follower_introduces_itself_and_tells_its_ranks(pair: list[Node]) -> None:
    """Hello first, then what its ranks say: thinned to what ranks are compared by, from the ninth rank on."""
    leader, node = pair
    state = follower()
    node.member.stood(state)
    node.member.tell(state, [record(1), record(2, rank=8), Record("gpu", 0, "d", 0, 1, 1, 1.0, {"gpu_use": 1.0})], [])
    well, items = forward(node, leader)
    assert well
    (hello,) = [i for f in items if isinstance(f, Forwarded) for i in f.items]
    assert isinstance(hello, Hello) and (hello.rank, hello.world, hello.checkpoint_root) == (9, 16, "/c")
    well, items = forward(node, leader)
    told = [i for f in items if isinstance(f, Forwarded) for i in f.items]
    assert well and [(i.rank, sorted(i.values)) for i in told if isinstance(i, Record)] == [(9, ["compute_time"])]
    assert node.member.shown(state).sent == 2


def test_what_is_not_written_down_is_sent_again_and_taken_once(pair: list[Node]) -> None:
    """The leader's turn failed after it had drained: the same number comes again, and only then is it let go."""
    leader, node = pair
    node.member.tell(follower(), [record(1)], [])
    sender = node.sender
    answers: list[bool] = []
    first = threading.Thread(target=lambda: answers.append(sender.step()))
    first.start()
    while first.is_alive():
        leader.member.drain(LEADS)  # and never committed: the journal refused the turn
        first.join(0.002)
    assert answers == [False] and "not written down" in sender.fault
    leader.member.begin({})  # the next loop begins from the journal, which has none of it
    well, items = forward(node, leader)
    assert well and steps(items) == [1] and not sender.fault


def test_what_the_journal_has_is_not_taken_again(pair: list[Node], clock: list[float]) -> None:
    """The leader died after its commit, before its answer: the next one's journal knows the number."""
    leader, node = pair
    node.member.tell(follower(), [record(1)], [])
    taken: dict[str, int] = {}

    def journaled() -> None:
        news = leader.member.drain(LEADS)
        taken.update(news.offsets)
        assert not news.items or steps(news.items) == [1]

    thread = threading.Thread(target=node.sender.step)
    thread.start()
    while thread.is_alive():
        journaled()  # committed, and died: no answer
        thread.join(0.002)
    assert list(taken.values()) == [1]
    leader.member.begin(taken)
    well, items = forward(node, leader)
    assert well and steps(items) == [], "it is told that it is there"
    node.member.tell(follower(), [record(2)], [])
    well, items = forward(node, leader)
    assert well and steps(items) == [2]


def test_a_wrong_token_is_let_nowhere(pair: list[Node], tmp_path: Path) -> None:
    """Refused, counted as nothing taken, kept for when the token is right; and never shown in a fault."""
    leader, node = pair
    other = tmp_path / "other.token"
    other.write_text("a-token-of-somebody-else-entirely")
    right, node.token = node.token, str(other)
    node.member.tell(follower(), [record(1)], [])
    assert not node.sender.step()
    assert "401" in node.sender.fault and "somebody" not in node.sender.fault
    assert not leader.member.drain(LEADS).items
    node.token = right
    well, items = forward(node, leader)
    assert well and steps(items) == [1], "a Secret that was changed at one end first loses nothing"


def test_who_does_not_decide_takes_nothing(pair: list[Node]) -> None:
    """A parcel to an old leader is refused with the reason; it goes to the new one under another number."""
    leader, node = pair
    leader.candidate.leave()
    node.member.tell(follower(), [record(1)], [])
    assert not node.sender.step()
    assert "does not decide" in node.sender.fault
    node.candidate.step(beside=False)
    assert node.sender.step() and not node.sender.fault, "nobody leads: it waits, and that is no failure"
    assert node.outbox.waiting == 1


def test_a_parcel_of_another_run_is_refused(pair: list[Node]) -> None:
    """Two runs that share a token by mistake do not share what their ranks say."""
    _, node = pair
    node.sender._run = "another"
    assert not node.sender.step()
    assert "403" in node.sender.fault


def test_a_node_that_falls_silent_is_told_as_not_seen(pair: list[Node], clock: list[float]) -> None:
    """By the leader, at the next look, and heard again with the next parcel."""
    leader, _ = pair
    state = State(standing=LEADS.standing)
    state.processes["trainer/9"] = Process("trainer", 9, "life", node="node-1")
    leader.member.stood(state)
    clock[0] += 13.0
    (word,) = leader.member.drain(state).items
    assert isinstance(word, SourceState) and (word.source, word.state) == ("node node-1", "stale")
    assert leader.member.shown(state).missing == 1


def test_a_node_that_can_tell_nobody_says_so(pair: list[Node], clock: list[float]) -> None:
    """After 15 s without a parcel taken: it watches its own ranks, and tells people itself."""
    leader, node = pair
    leader.intake.close()
    state = follower()
    node.member.tell(state, [record(1)], [])
    assert not node.sender.step()
    assert not node.member.fault(state)
    clock[0] += 16.0
    assert "cannot be reached" in node.member.fault(state) and "watched here all the same" in node.member.fault(state)
    assert not node.member.is_told_for


def test_an_alert_goes_as_it_turns(pair: list[Node]) -> None:
    """A GPU's own trouble goes out by name, and its end too; its numbers stay."""
    leader, node = pair
    state = follower()
    key = "GpuLost{rank=0,role=gpu}"
    state.alerts[key] = Alert("GpuLost", {"role": "gpu", "rank": "0"}, "firing", 3, 3.0, 2, 4, 79.0, "Xid 79")
    fired = Entry("1.0", 4.0, 4, EntryKind.ALERT, key, "firing", "", {})
    node.member.tell(state, [], [fired])
    _, items = forward(node, leader)
    (told,) = [i for f in items if isinstance(f, Forwarded) for i in f.items]
    assert isinstance(told, AlertTold) and (told.key, told.state, told.why) == (key, "firing", "Xid 79")
    del state.alerts[key]
    node.member.tell(state, [], [fired._replace(state="resolved")])
    _, items = forward(node, leader)
    (told,) = [i for f in items if isinstance(f, Forwarded) for i in f.items]
    assert isinstance(told, AlertTold) and (told.key, told.state) == (key, "resolved")


def test_a_sender_with_nobody_to_tell_rests(pair: list[Node]) -> None:
    """While it leads itself, or nobody does, what is urgent keeps no thread running."""
    leader, node = pair
    leader.outbox.introduce([])
    assert leader.sender.step() and not leader.outbox.urgent.is_set()
    leader.candidate.leave()
    node.candidate.step(beside=False)
    node.member.tell(follower(), [record(1)], [])
    node.outbox.urgent.set()
    assert node.sender.step() and not node.outbox.urgent.is_set()


def test_what_lies_there_when_it_ends_to_lead_keeps_no_loop_awake(pair: list[Node]) -> None:
    """A parcel that came in the last moment is let go unanswered; its sender has it still."""
    leader, node = pair
    node.member.tell(follower(), [record(1)], [])
    thread = threading.Thread(target=node.sender.step)
    thread.start()
    while not leader.wakes:
        thread.join(0.002)
    leader.candidate.leave()
    follows = State(standing=Standing(FOLLOWER, "node-0", "", 1))
    assert leader.member.drain(follows).items == [] and leader.member.seconds() > 1e6
    thread.join()
    assert node.outbox.waiting == 1 and "not written down" in node.sender.fault


def test_what_nobody_will_ever_take_is_let_go_and_counted(pair: list[Node]) -> None:
    """A record that is no record, of another version say, does not hold up all that comes behind it."""
    leader, node = pair
    node.outbox.put([(record(1)._replace(rank=-1), False)])
    assert not node.sender.step() and "no rank -1" in node.sender.fault
    node.member.tell(follower(), [record(2)], [])
    well, items = forward(node, leader)
    assert well and steps(items) == [2] and node.outbox.dropped == 1
