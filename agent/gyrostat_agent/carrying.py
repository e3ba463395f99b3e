"""Carrying: what an intent says, done: by the loop, once the intent is in the journal.

What stands in the way is not an error but news: it comes back as items, and the engine decides what follows.
"""

from gyrostat_agent.actuators.directivefiles import DirectiveFiles
from gyrostat_agent.errors import TemporaryError
from gyrostat_agent.ledgerkeeping import LedgerKeeping
from gyrostat_agent.senses import Checkpoints, Member
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import LEDGER, CheckpointSeen, Delivery, DeliveryWord, Fit, Item, SourceState, SourceWord
from gyrostat_rules.remedies import ENDS_THE_POD
from gyrostat_rules.standing import LEADER
from gyrostat_rules.state import State

_DEPOSED = "another agent may decide for this run by now"


class Carrying:
    """``fault``: why the ledger could not be written before the last intent, or ''."""

    def __init__(
        self, directives: DirectiveFiles, checkpoints: Checkpoints, ledger: LedgerKeeping, member: Member | None
    ) -> None:  # fmt: skip
        self._directives, self._checkpoints, self._ledger, self._member = directives, checkpoints, ledger, member
        self.fault = ""

    def carry_out(self, entry: Entry, state: State) -> list[Item]:
        """Do what an intent says; what stands in its way comes back as news."""
        self.fault = ""
        if (target := entry.data.get("target")) and (why := self._spoilt(target["path"], target["digest"])):
            said = f"the checkpoint is no longer fit: {why[0].why}"
            return [*why, Delivery(entry.subject, DeliveryWord.FAILED, said)]
        acts = entry.kind == EntryKind.ACTION  # a supervisor that is let go is this node's own
        if acts and not self._member_may(state):
            return [Delivery(entry.subject, DeliveryWord.PUT_OFF, _DEPOSED)]
        if entry.data.get("remedy") in ENDS_THE_POD or (acts and state.standing.word == LEADER):
            try:
                self._ledger.write(state, durable=True)
            except TemporaryError as error:
                self._ledger.fault = self.fault = str(error)
                damaged = SourceState(LEDGER, SourceWord.DAMAGED, str(error))
                return [damaged, Delivery(entry.subject, DeliveryWord.PUT_OFF, str(error))]
            if not self._member_may(state):  # writing may have taken minutes
                return [Delivery(entry.subject, DeliveryWord.PUT_OFF, _DEPOSED)]
        failed = self._directives.carry_out(entry.subject, dict(entry.data["orders"]))
        return [] if failed is None else [failed]

    def _member_may(self, state: State) -> bool:
        """False where another agent may decide for this run by now."""
        return self._member is None or self._member.may_act(state.standing.term)

    def spoilt(self, path: str, digest: str) -> str:
        """Why a checkpoint is no longer fit, or ''."""
        return "".join(seen.why for seen in self._spoilt(path, digest))

    def _spoilt(self, path: str, digest: str) -> list[CheckpointSeen]:
        seen = self._checkpoints.recheck(path, digest)
        return [seen] if seen.fit == Fit.UNFIT else []
