"""Succession: when this agent begins to decide for its run and when it ends to, as commands for its engine.

Called by the loop at the beginning of each pass. Whoever begins takes up the ledger beside the checkpoints: what the
last one began is the run's, and this one's to go on with. An agent of no cluster stands alone, for ever.
"""

from collections.abc import Iterator
from typing import Any

from gyrostat_agent.ledgerkeeping import LedgerKeeping
from gyrostat_agent.senses import Member
from gyrostat_rules.inputs import Command, Verb
from gyrostat_rules.standing import ALONE, FOLLOWER, LEADER
from gyrostat_rules.state import State

NO_LEDGER = "this run has a history, but no ledger of it is beside its checkpoints"


class Succession:
    """``member`` None: this agent is the only one."""

    def __init__(self, member: Member | None, ledger: LedgerKeeping) -> None:
        self._member, self._ledger = member, ledger

    def commands(self, state: State, now: float) -> Iterator[Command]:
        """What the engine must be told before anything else is; nothing where nothing has changed."""
        standing = state.standing
        if self._member is None:
            if standing.word != ALONE:  # an agent of a cluster wrote this journal
                yield Command(now, Verb.STAND, {"as": ALONE})
            return
        post = self._member.post
        word = LEADER if post.leads else FOLLOWER
        same = (word, self._member.node, post.leader) == (standing.word, standing.node, standing.leader)
        if same and post.term <= standing.term:
            return
        said: dict[str, Any] = {"as": word, "node": self._member.node, "leader": post.leader, "term": post.term}
        doubt = ""
        if post.leads:
            found, doubt = self._written(state)
            said |= {"ledger": found} if found is not None else {}
        yield Command(now, Verb.STAND, said)
        if doubt:
            yield Command(now, Verb.DISTRUST, {"reason": doubt})
        self._member.stood(state)

    def _written(self, state: State) -> tuple[dict[str, Any] | None, str]:
        """What the last one who decided wrote down, and why it is not believed."""
        root = self._ledger.root_of(state)
        found, why = self._ledger.take_over(root)
        ordered = any(p.last_directive for p in state.processes.values() if p.role == "trainer")
        return found, why or (NO_LEDGER if found is None and root and ordered else "")
