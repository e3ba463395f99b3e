"""Witness: what a watcher says of one run, as the course that a backtest judges; so all are judged by one code.

Where a choice had to be made it is made for the tool: whatever it says counts as the right kind of fault; what it
says within ``FOLDED`` rows of its last alarm is no alarm of its own; and it is asked at every row while a fault is due.
"""

from collections.abc import Sequence

from peers.watcher import Alarm, Peer, Watcher

from gyrostat_agent.backtest.case import Case
from gyrostat_agent.backtest.run import Course, Opened, Row, Told
from gyrostat_rules.pack import Severity

FOLDED = 10  # rows: within so many steps Gyrostat's alerts are one incident
SHORT = 100  # rows of a run that is asked about throughout


class Witness:
    """One watcher beside one run, and what it has said."""

    def __init__(self, watcher: Watcher, peer: Peer, kinds: Sequence[str]) -> None:
        self.watcher, self.peer, self.kinds = watcher, peer, kinds
        self.course, self.standing = Course([], []), dict[str, list[Told]]()
        self.last = -FOLDED - 1

    def row(self, number: int, row: Row, asked: bool) -> None:
        """Show it a row, and note what it says."""
        _, step, values = row
        said = {alarm.what: alarm for alarm in self.watcher.row(step, values, asked)}
        for what in [what for what in self.standing if what not in said]:
            self._over(what, step)
        for what, alarm in said.items():
            if what not in self.standing:
                self._begun(number, step, alarm)

    def _begun(self, number: int, step: int, alarm: Alarm) -> None:
        folded = number - self.last <= FOLDED
        self.last = number
        told = self._grave(step, alarm, folded) if alarm.grave else self._mild(step, alarm, folded)
        self.course.told += told
        self.standing[alarm.what] = told
        if not self.peer.stands:  # said once, and not how long it is so
            self._over(alarm.what, step + 1)

    def _over(self, what: str, step: int) -> None:
        for told in self.standing.pop(what):
            told.until = step

    def _grave(self, step: int, alarm: Alarm, folded: bool) -> list[Told]:
        if not folded:
            self.course.opened.append(Opened(alarm.what, alarm.what, "", step))
        return [Told(alarm.what, Severity.CRITICAL, "", alarm.what, step, step, folded)]

    def _mild(self, step: int, alarm: Alarm, folded: bool) -> list[Told]:
        """It is counted once, and tells each kind that the run may have."""
        muted = [folded, *([True] * (len(self.kinds) - 1))]
        pairs = zip(self.kinds, muted, strict=True)
        return [Told(alarm.what, Severity.WARNING, kind, "", step, step, hush) for kind, hush in pairs]


def course(peer: Peer, watcher: Watcher, cases: Sequence[Case], rows: Sequence[Row]) -> Course:
    """Show a watcher the rows of a run one by one; what ``rows`` are is told in ``gyrostat_agent.backtest.run``."""
    witness = Witness(watcher, peer, sorted({case.kind for case in cases}))
    for number, row in enumerate(rows, 1):
        asked = number % peer.every == 0 or len(rows) <= SHORT or any(_due(case, row[1]) for case in cases)
        witness.row(number, row, asked)
    steps = {step for _, step, _ in rows}
    witness.course.steps, witness.course.first = len(steps), min(steps, default=-1)
    return witness.course


def _due(case: Case, step: int) -> bool:
    return case.onset is not None and case.deadline is not None and case.onset <= step <= case.deadline
