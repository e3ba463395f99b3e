"""Member: this agent as one of many of a run: forwards while another decides, takes what is forwarded while it does.

What the loop calls waits for nothing: the lease is looked at, parcels are sent and taken in threads. All that the
engine learns goes through the loop, as items and commands of its journal, so that a replay knows it too.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gyrostat_agent.cluster import digest
from gyrostat_agent.cluster.candidate import Candidate
from gyrostat_agent.cluster.intake import Arrived, Intake, name_of
from gyrostat_agent.cluster.outbox import Outbox
from gyrostat_agent.cluster.post import Post
from gyrostat_agent.cluster.roll import Roll
from gyrostat_agent.cluster.sender import Sender
from gyrostat_exporters.fellows import Fellows
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Forwarded, Item
from gyrostat_rules.manyranks import compared_in
from gyrostat_rules.packfile import parse
from gyrostat_rules.state import State

_NOBODY = "no agent decides for this run, and this one may not begin to yet"
_CUT_OFF_SECONDS = 15.0  # without a parcel taken: whoever decides cannot be told


class News(NamedTuple):
    """What is new of other nodes, and what is to be written down with it."""

    items: list[Item]
    offsets: dict[str, int]


class Member:
    """``intake``, ``sender`` and ``outbox`` are of one node; ``candidate`` says who decides."""

    def __init__(
        self, node: str, candidate: Candidate, intake: Intake, sender: Sender, outbox: Outbox, pack_text: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.node = node
        self._candidate, self._intake, self._sender, self._outbox, self._clock = (
            candidate, intake, sender, outbox, clock,
        )  # fmt: skip
        self._compared = compared_in(parse(pack_text))
        self._roll = Roll()
        self._taken: dict[str, int] = {}
        self._open: list[Arrived] = []
        self._beside = False
        self._began = clock()
        self._introduced = Post()

    def start(self, well: Callable[[], bool], wake: Callable[[], None]) -> None:
        """Begin to look at the lease, and to forward."""
        self._candidate.start(lambda: self._beside, well, wake)
        self._sender.start()

    def close(self) -> None:
        """Forward what waits, give the lease back, listen no more."""
        self._sender.close()
        self._candidate.close()
        self._intake.close()

    @property
    def address(self) -> str:
        """Where the others reach it."""
        return self._intake.address

    @property
    def post(self) -> Post:
        """Where this agent stands in the election."""
        return self._candidate.post

    def may_act(self, term: int) -> bool:
        """True while it decides in that term, and nobody else can."""
        return self._candidate.may_act(term)

    def begin(self, offsets: Mapping[str, int]) -> None:
        """A loop begins from its journal: what that has not is taken again."""
        self._taken = {name: number for name, number in offsets.items() if name.startswith("node ")}
        self._open = []

    def stood(self, state: State) -> None:
        """The engine has taken up its standing: introduce this node to whoever decides, or expect those of others."""
        if state.standing.follows:
            self._roll.forget()
            self._outbox.introduce(digest.introduction(state))
        else:
            self._outbox.clear()
            self._roll.expect(_nodes(state), self._clock())

    def seconds(self) -> float:
        """How long the loop may sleep."""
        return self._intake.seconds()

    def drain(self, state: State) -> News:
        """What other nodes have forwarded, and which are not heard any more; never waits."""
        self._beside, self._candidate.least = digest.is_beside(state), state.standing.term
        if state.standing.follows:
            self._intake.drain(self._taken)  # what came while this one led: whoever leads now is sent it
            return News([], {})
        now, items, offsets = self._clock(), list[Item](), dict[str, int]()
        for one in self._intake.drain(self._taken):
            parcel = one.parcel
            self._roll.leave(parcel.node) if parcel.leaves else self._roll.hear(parcel.node, now)
            if not parcel.items:  # a sign of life: there is nothing to write down
                one.committed.set()
                continue
            self._open.append(one)
            offsets[name_of(parcel)] = parcel.number
            items.append(Forwarded(parcel.node, parcel.items))
        items += self._roll.words(_nodes(state), now)
        self._taken.update(offsets)
        return News(items, offsets)

    def committed(self) -> None:
        """What was drained is in the journal: those who sent it may let it go."""
        for one in self._open:
            one.committed.set()
        self._open = []

    def tell(self, state: State, items: Sequence[Item], entries: Sequence[Entry]) -> None:
        """Forward what a turn brought, while another decides."""
        if state.standing.follows and (items or entries):
            self._outbox.put([*digest.told(state, items, self._compared), *digest.turned(state, entries)])

    def fault(self, state: State) -> str:
        """Why this agent is cut off from the others, or ''."""
        post = self.post
        if post.leads:
            return ""
        if self._clock() - max(self._sender.reached, self._began) < _CUT_OFF_SECONDS:
            return ""
        why = post.fault or self._sender.fault
        why = why or (f"{post.leader} has taken nothing for {_CUT_OFF_SECONDS:.0f} s" if post.leader else _NOBODY)
        return f"{why}; this node's ranks are watched here all the same"

    @property
    def is_told_for(self) -> bool:
        """Whether another decides and hears of this node: it tells people, so this one need not."""
        post = self.post
        return bool(post.leader) and not post.leads and self._clock() - self._sender.reached < _CUT_OFF_SECONDS

    def shown(self, state: State) -> Fellows:
        """For the page."""
        post = self.post
        return Fellows(
            self.node, post.leader, post.leads, post.term, self._roll.heard, self._roll.missing, self._sender.sent,
            self._outbox.dropped, self._outbox.waiting, self._intake.refused + self._intake.full, self.fault(state),
        )  # fmt: skip


def _nodes(state: State) -> frozenset[str]:
    """Other nodes that have ranks of the run which have not ended."""
    return frozenset(p.node for p in state.processes.values() if p.node and not p.ended)
