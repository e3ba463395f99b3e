"""Standing: how one tool in one setting does on a corpus, counted run by run by the code of `gyrostat backtest`."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, NamedTuple, TypeAlias

from peers.watcher import Peer, Setting
from witness import course

from gyrostat_agent.backtest.case import Case
from gyrostat_agent.backtest.run import Course, Row, play
from gyrostat_agent.backtest.score import judged
from gyrostat_agent.backtest.tally import Tally, add
from gyrostat_rules.pack import RulePack

OURS = "Gyrostat"
STALE = 100  # steps for which an alarm may stand before a fault and still tell of it
_A_THOUSAND = 1000.0
_NO_PACK = RulePack("", (), ())  # why a case was missed is not asked here
Played: TypeAlias = "Callable[[Sequence[Case], Sequence[Row]], Course]"


class Entrant(NamedTuple):
    """A tool in one setting. ``first``: how it comes."""

    name: str
    words: str
    reads: str
    played: Played
    first: bool = True


class Counted(NamedTuple):
    """What was counted of an entrant, without the entrant: it goes from one process to another."""

    tally: Tally
    seconds: float
    rows: int
    broken: int
    why: str


@dataclass(slots=True)
class Standing:
    """What was counted of an entrant. ``seconds`` are of this process alone; ``broken``: runs in which it threw."""

    entrant: Entrant
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    rows: int = 0
    broken: int = 0
    why: str = ""

    @property
    def counted(self) -> Counted:
        """For another process."""
        return Counted(self.tally, self.seconds, self.rows, self.broken, self.why)

    @property
    def recall(self) -> float | None:
        """Of the faults, those found by their deadlines; None of none."""
        return self.tally.overall.recall.value

    @property
    def noise(self) -> float | None:
        """False alarms in a thousand healthy steps: incidents and warnings together; None without healthy steps."""
        found = self.tally
        return _A_THOUSAND * (found.incidents + found.warnings) / found.steps if found.steps else None


def ours(text: str, digest: str) -> Entrant:
    """The pack ``text``, replayed as `gyrostat backtest` does it; making the rows is in its time."""
    return Entrant(OURS, "the pack that comes with it", "every series", lambda cases, rows: play(cases, text, digest))


def theirs(peer: Peer) -> list[Entrant]:
    """A tool in all of its settings."""
    return [
        Entrant(peer.name, setting.words, peer.reads, partial(_played, peer, setting), place == 0)
        for place, setting in enumerate(peer.settings)
    ]


def judge(standing: Standing, cases: Sequence[Case], rows: Callable[[Sequence[Case]], Sequence[Row]]) -> None:
    """Let an entrant see one run, and count what it came to; a tool that throws has said nothing of that run."""

    def played(part: Sequence[Case]) -> Course:
        made = rows(part)
        standing.rows += len(made)
        began = time.process_time()
        try:
            return _fresh(standing.entrant.played(part, made))
        except (Exception, SystemExit) as error:  # of a peer; ours is held to more: it is asked first, and seen
            standing.broken, standing.why = standing.broken + 1, f"{type(error).__name__}: {error}"
            return Course([], [], steps=len({step for _, step, _ in made}))
        finally:
            standing.seconds += time.process_time() - began

    add(standing.tally, judged(cases, played, _NO_PACK))
    standing.tally.cases.clear()  # a corpus may be longer than memory


def _fresh(course: Course) -> Course:
    """Alarms that end when they are old, of all tools alike: one that is always on would else find everything."""
    for told in course.told:
        told.until = told.step + STALE if told.until is None else min(told.until, told.step + STALE)
    return course


def figures(one: Standing) -> dict[str, Any]:
    """One entrant for machines; what is not known is null."""
    found, whole = one.tally.overall, one.tally
    return {
        "tool": one.entrant.name, "setting": one.entrant.words, "as_it_comes": one.entrant.first,
        "reads": one.entrant.reads, "recall": one.recall, "recall_95": [found.recall.low, found.recall.high],
        "found": found.found, "faulty": found.faulty, "precision": found.precision.value, "healthy": found.healthy,
        "failed": found.failed, "false_alarms_per_1000": one.noise, "false_incidents": whole.incidents,
        "warnings": whole.warnings, "healthy_steps": whole.steps, "early_incidents": whole.early,
        "onset_error": median(found.errors) if found.errors else None,
        "seconds_per_1000_rows": _A_THOUSAND * one.seconds / one.rows if one.rows else None,
        "runs": whole.runs, "broken_runs": one.broken, "broken_why": one.why or None,
        "recall_by_kind": {kind: count.recall.value for kind, count in sorted(whole.kinds.items()) if count.faulty},
    }  # fmt: skip


def _played(peer: Peer, setting: Setting, cases: Sequence[Case], rows: Sequence[Row]) -> Course:
    return course(peer, setting.made(), cases, rows)
