"""The ledger as one agent keeps it: when it is due, what was written last, why it cannot be; on the job too.

Called by the loop, which says what stands in the way. Not promised: that what the job bears is read before the run's
own file is; where it turns out to know more, ``late_doubt`` says so.
"""

from collections.abc import Callable, Sequence
from typing import Any

from gyrostat_agent import ledgerfile
from gyrostat_agent.errors import TemporaryError
from gyrostat_agent.senses import Job
from gyrostat_rules.ledger import facts
from gyrostat_rules.standing import LEADER
from gyrostat_rules.state import State


class LedgerKeeping:
    """``head`` and ``heads`` give the journal's as it stands; ``job`` None outside of a cluster.

    ``place``: where the checkpoints lie while no trainer says so, or ''; one that is read from a log never does.
    """

    def __init__(
        self, head: Callable[[], str], heads: Callable[[], Sequence[str]], job: Job | None = None, place: str = ""
    ) -> None:  # fmt: skip
        self._head, self._heads, self._job, self._place = head, heads, job, place
        self._due = True  # the last agent may have died between its journal and its ledger
        self._durable = False
        self._root = ""
        self._mark: ledgerfile.Mark | None = None
        self.fault = ""

    @property
    def trouble(self) -> str:
        """What cannot be done to the job, '' also where there is none."""
        return self._job.trouble if self._job is not None else ""

    def root_of(self, state: State) -> str:
        """Where the run's checkpoints lie, by whichever rank says so; '' where nobody does yet."""
        told = (p.root for p in state.processes.values() if p.role == "trainer" and p.root)
        return next(told, self._place)

    def note(self, due: bool) -> None:
        """Something has happened; ``due``: it must outlive the pod."""
        self._due = self._due or due

    def read(self, root: str) -> tuple[dict[str, Any] | None, str]:
        """What is to be taken up, as ``ledgerfile.read`` says it."""
        found, why = ledgerfile.read(root) if root else (None, "")
        return self._job.reconciled(found, why) if self._job is not None else (found, why)

    def take_over(self, root: str) -> tuple[dict[str, Any] | None, str]:
        """The same where another agent wrote it, which this one goes on from: its next writing replaces theirs."""
        self._root, self._mark, self._due = root, ledgerfile.mark(root) if root else None, True
        return self.read(root)

    def late_doubt(self, state: State) -> str:
        """Why the job bears a later history than this one, or ''; not again what a person has looked into."""
        if self._job is None or state.settings.distrust or state.standing.follows:
            return ""
        counts = {"next_directive": state.next_directive, "incident_count": state.incident_count}
        why = self._job.late_doubt(counts)
        return why if why != state.settings.trusted else ""

    def keep(self, state: State, *, durable: bool = False) -> bool:
        """Write it where it is due; False where that failed: it is said, and tried again."""
        try:
            self.write(state, durable=durable)
        except TemporaryError as error:
            self.fault = str(error)
            return False
        self.fault = ""
        return True

    def write(self, state: State, *, durable: bool) -> None:
        """The few facts that must outlive the pod, beside the checkpoints. One that is not believed is left alone.

        Raises TemporaryError: what is not in the ledger must not be done.
        """
        trainer = state.trainer()
        due = self._due or (durable and not self._durable)
        leads = state.standing.word == LEADER  # whose trainer's rank 0 may never have been heard here
        root = self.root_of(state) if trainer is not None or leads else ""
        if not due or not root or state.settings.distrust or state.standing.follows:
            return
        told, head = facts(state), self._head()
        last = self._mark if root == self._root else None
        heads = self._heads()
        self._mark = ledgerfile.write(root, told, head, durable=durable, last=last, heads=heads)
        self._root, self._due, self._durable = root, False, durable
        if self._job is not None:
            self._job.remember(told, head)
