"""Score: what counts as found, case by case. Nothing here knows a threshold; it compares steps that were told.

A faulty case is found by a warning or critical alert that tells its kind, or by a critical one of another kind in its
run, which is graver. It must fire by the deadline, and still be firing at the onset or later: what is over before the
fault began is a false alarm, not foresight. Info never counts, for nobody is called by it. A muted alert does count as
found, because the graver one that mutes it has been told by then; on a healthy run, for the same reason, it is no
warning.

A healthy case fails where its run opens an incident. Where lines of one run are both faulty and healthy, an incident
there is right, and the healthy line says only which kind must not be called: it fails by an incident of that kind.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gyrostat_agent.backtest.case import Case
from gyrostat_agent.backtest.faults import fault_of
from gyrostat_agent.backtest.run import Course, Opened, Told, parsed, play
from gyrostat_rules.needs import Heard
from gyrostat_rules.pack import RulePack, Severity
from gyrostat_rules.wants import off, words

NOBODY = "none"  # what a warning does about it


class Scored(NamedTuple):
    """One case, judged. ``well``: found, or kept healthy; None where it was not replayed; ``why`` it is not well.

    ``alert``, ``severity``, ``fired`` and ``began`` are of the alert that found it; ``error``: steps between that
    alert's onset and the case's; ``lead``: steps left until the deadline. None where there is nothing to compare.
    ``opened``: the alert whose incident ``action`` is for, '' where none opens one.
    """

    case: Case
    well: bool | None
    why: str = ""
    alert: str = ""
    severity: str = ""
    fired: int | None = None
    began: int | None = None
    error: int | None = None
    lead: int | None = None
    action: str = ""
    opened: str = ""


class Verdict(NamedTuple):
    """One run, judged. ``steps``, ``incidents`` and ``warnings`` are of a healthy one, and 0 elsewhere but for
    incidents of the very kind that a healthy line rules out; ``early``: incidents that an ill one opened before its
    first onset. ``cases`` have lost their numbers: nobody needs them any more.
    """

    cases: tuple[Scored, ...]
    steps: int = 0
    incidents: int = 0
    warnings: int = 0
    early: int = 0


def judge(cases: Sequence[Case], text: str, digest: str) -> Verdict:
    """Replay the lines of one run through the pack ``text`` and judge each."""
    return judged(cases, lambda part: play(part, text, digest), parsed(text))


def judged(cases: Sequence[Case], played: Callable[[Sequence[Case]], Course], pack: RulePack) -> Verdict:
    """Judge each line of one run by what ``played`` tells of it, whoever tells it; ``pack`` says why one was missed.

    What counts steps another way is another stretch of numbers.
    """
    parts: dict[str, list[Case]] = {}
    for case in cases:
        parts.setdefault("" if case.unfit else case.basis, []).append(case)
    ill = frozenset(case.kind for case in cases if not case.healthy)
    verdicts = [_stretch(part, ill, played(part), pack) if basis else _unplayed(part) for basis, part in parts.items()]
    scored = sorted((one for verdict in verdicts for one in verdict.cases), key=lambda one: one.case.line)
    return Verdict(tuple(scored), *(sum(column) for column in zip(*(verdict[1:] for verdict in verdicts), strict=True)))


def _unplayed(cases: Sequence[Case]) -> Verdict:
    return Verdict(tuple(Scored(case._replace(series=()), None, case.unfit) for case in cases))


def _stretch(cases: Sequence[Case], ill: frozenset[str], course: Course, pack: RulePack) -> Verdict:
    """``ill``: the kinds of fault that the run has, by any of its lines."""
    wrong = [one for one in course.opened if not ill or one.fault in _ruled_out(cases, ill)]
    scored = [_healthy(case, wrong, ill) if case.healthy else _faulty(case, course, pack) for case in cases]
    bare = tuple(one._replace(case=one.case._replace(series=())) for one in scored)
    if ill:
        return Verdict(bare, incidents=len(wrong), early=_too_early(cases, course))
    told = [one for one in course.told if one.severity != Severity.INFO and not one.incident and not one.muted]
    return Verdict(bare, course.steps, len(wrong), len(told))


def _ruled_out(cases: Sequence[Case], ill: frozenset[str]) -> set[str]:
    """The kinds that healthy lines of an ill run say are not there."""
    return {case.kind for case in cases if case.healthy} - ill


def _too_early(cases: Sequence[Case], course: Course) -> int:
    """Incidents before any fault had begun; none where it is not known of each when it did."""
    onsets = [-1 if case.onset is None else case.onset for case in cases if not case.healthy]
    return sum(one.step < min(onsets, default=-1) for one in course.opened)


# -- a healthy case -----------------------------------------------------------------------------------


def _healthy(case: Case, wrong: Sequence[Opened], ill: frozenset[str]) -> Scored:
    mine = [one for one in wrong if not ill or one.fault == case.kind]
    if not mine:
        return Scored(case, True)
    said = ", ".join(f"{one.alert} opened an incident ({one.kind}) at step {one.step}" for one in mine)
    return Scored(case, False, said, mine[0].alert, Severity.CRITICAL, mine[0].step)


# -- a faulty case ------------------------------------------------------------------------------------


def _faulty(case: Case, course: Course, pack: RulePack) -> Scored:
    telling = [one for one in course.told if _tells(one, case)]
    timely = [one for one in telling if _in_time(one, case)]
    if not timely:
        return Scored(case, False, _missed(case, course, telling, pack))
    opening = _opening(timely)
    by = min(timely, key=lambda one: (one.step, one.fault != case.kind, one.severity != Severity.CRITICAL))
    return Scored(
        case, True, "", by.alert, by.severity, by.step, by.onset,
        None if case.onset is None else abs(by.onset - case.onset),
        None if case.deadline is None else case.deadline - by.step,
        _action(opening, pack), opening.alert if opening else "",
    )  # fmt: skip


def _tells(told: Told, case: Case) -> bool:
    """By its kind, or by what is graver."""
    return told.severity == Severity.CRITICAL or (told.severity == Severity.WARNING and told.fault == case.kind)


def _in_time(told: Told, case: Case) -> bool:
    return (case.deadline is None or told.step <= case.deadline) and not _early(told, case)


def _early(told: Told, case: Case) -> bool:
    return case.onset is not None and told.until is not None and told.until <= case.onset


def _action(opening: Told | None, pack: RulePack) -> str:
    """The first rung of the first incident that opens by the deadline; a warning alone is acted on by nobody."""
    book = pack.playbook(opening.incident) if opening else None
    if book is None or not book.rungs:
        return NOBODY
    knobs = ", ".join(plan.words() for plan in book.rungs[0].knobs)
    return book.rungs[0].remedy + (f": {knobs}" if knobs else "")


def _opening(timely: Sequence[Told]) -> Told | None:
    """The first of them that opens an incident."""
    return next((one for one in sorted(timely, key=lambda one: one.step) if one.incident), None)


def _missed(case: Case, course: Course, telling: Sequence[Told], pack: RulePack) -> str:
    """Why nobody found it: the first that holds."""
    return next(_reasons(case, course, telling, pack))


def _reasons(case: Case, course: Course, telling: Sequence[Told], pack: RulePack) -> Iterator[str]:
    late = [one for one in telling if not _early(one, case)]
    if late:
        one = min(late, key=lambda one: one.step)
        yield f"fired late at step {one.step} ({one.alert}), due by step {case.deadline}"
    if telling:
        yield f"fired at step {telling[-1].step} ({telling[-1].alert}) and was over before its onset, step {case.onset}"
    if case.deadline is not None and case.deadline < course.first:
        yield f"due by step {case.deadline}, before its first number, of step {course.first}"
    rules = [rule for rule in pack.rules if fault_of(pack, rule.alert) == case.kind]
    if not any(rule.severity in (Severity.WARNING, Severity.CRITICAL) for rule in rules):
        yield f"no rule of this pack tells {case.kind}"
    if len(off(rules, Heard(course.names))) == len(rules):
        wanted = dict.fromkeys(words(rule) for rule in rules)
        yield f"signals not read: {', '.join(sorted(course.names))}; its rules want {' or '.join(wanted)}"
    yield f"never fired: {', '.join(rule.alert for rule in rules)} (steps seen: {course.steps})"
