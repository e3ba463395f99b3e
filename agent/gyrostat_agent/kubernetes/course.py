"""The course of an action on a job: from the job as it stands to the one request that comes next. Pure.

::

    suspend kinds   (nothing) ──stop, "stopping"──▶ stopping ──stands still──▶ ──begin, keep off, "done"──▶ done
    Volcano         (nothing) ──"asking"──▶ asking ──Command──▶ ──"asked"──▶ asked ──restarted──▶ ──"done"──▶ done

Each arrow is one request. Those that change the job carry its resourceVersion and say in the same patch how far it
has come, so that a death between two arrows, or of the answer to one, leaves what whoever comes next reads there. The
Command alone is another object: where nobody knows whether it was made, time is given for its effect to show
(``turn``).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_agent.kubernetes import progress as steps
from gyrostat_agent.kubernetes.jobs import volcano
from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.progress import GO_ON, HOLD, RESTART, Order, Progress
from gyrostat_agent.kubernetes.request import Object, Request, create, patch, version_of

_COMMANDS = {RESTART: volcano.RESTART, HOLD: volcano.HOLD, GO_ON: volcano.GO_ON}


class Send(NamedTuple):
    """A request is next. ``without``: the same with what the server may refuse left out. ``once``: see ``turn``."""

    request: Request
    why: str
    without: Request | None = None
    once: bool = False


class Wait(NamedTuple):
    """Nothing is to be sent until the cluster has come further."""

    why: str


class Over(NamedTuple):
    """The action is over: ``done``, or not, and why."""

    done: bool
    said: str


Move = Send | Wait | Over
Words = Mapping[str, str]
_NONE: Words = {}


def next_move(kind: JobKind, job: Object, order: Order, now: float, words: Words = _NONE) -> Move:
    """What comes next of an order; begins it where nothing has. ``words``: annotations that go with the beginning."""
    try:
        stands = steps.read(job)
    except steps.ProgressError as error:
        return Over(False, str(error))
    if stands is not None and (stands.run, stands.number, stands.action) == (order.run, order.number, order.action):
        return proceed(kind, job, stands, now)
    if stands is None or (stands.over and (stands.number < order.number or order.by_hand)):
        return _begin(kind, job, order, now, words)
    what = f"directive {stands.number} of run {stands.run or '-'} ({stands.action})"
    if not stands.over:
        return Over(False, f"{what} is still under way; where nobody goes on with it: gyrostat kubernetes finish")
    same = stands.number == order.number
    return Over(False, f"{what} {'bore this number: the history was lost' if same else 'is newer and was begun'}")


def proceed(kind: JobKind, job: Object, stands: Progress, now: float) -> Move:
    """What comes next of what has been begun, by whomever."""
    if stands.over:
        return Over(stands.step == steps.DONE, stands.said)
    if kind.switch is None:
        return _proceed_volcano(kind, job, stands, now)
    if stands.what == GO_ON:  # of one patch alone
        return _note(kind, job, stands, steps.DONE, "begun again")
    if over := kind.over(job):
        return _note(kind, job, stands, steps.FAILED, over)
    if not kind.is_off(job):
        return _note(kind, job, stands, steps.DONE, "somebody else has begun it again meanwhile")
    if not kind.is_still(job):
        return Wait("its pods are being ended")
    if stands.what == HOLD:
        return _note(kind, job, stands, steps.DONE, "it stands still")
    return _begin_again(kind, job, stands)


def keeps_pods_apart(stands: Progress | None) -> bool:
    """True where the next move begins pods, or says that none is left: two trainers would write one checkpoint."""
    return stands is not None and stands.what in (RESTART, HOLD) and stands.step == steps.STOPPING


def change(kind: JobKind, job: Object, stands: Progress, *parts: Mapping[str, Any], words: Words = _NONE) -> Request:
    """A patch of the job that says how far it has come, and holds only where nothing has been changed."""
    meta = job["metadata"]
    noted = {"resourceVersion": version_of(job), "annotations": {**words, **steps.written(stands)}}
    return patch(kind.ref(meta["name"], meta["namespace"]), merged({"metadata": noted}, *parts))


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of a merge patch as one."""
    found: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
            found[name] = merged(found[name], value) if both else value
    return found


def _begin(kind: JobKind, job: Object, order: Order, now: float, words: Words) -> Move:
    if why := _hindrance(kind, job, order, now):
        return Over(False, why)
    if kind.switch is None:
        noted = steps.begun(job, order, steps.ASKING, volcano.marks(job))
        return Send(change(kind, job, noted, words=words), f"{order.what}: it is written on the job")
    if order.what == GO_ON:
        noted = steps.begun(job, order, steps.DONE)._replace(said="begun again")
        return Send(change(kind, job, noted, kind.switch(True), words=words), "it is begun again")
    noted = steps.begun(job, order, steps.STOPPING)
    return Send(change(kind, job, noted, kind.switch(False), words=words), f"{order.what}: it is stopped")


def _hindrance(kind: JobKind, job: Object, order: Order, now: float) -> str:
    """Why nothing may be begun, or ''."""
    if now >= order.until:
        return f"directive {order.number} has expired"
    if job["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    if over := kind.over(job):
        return over
    if why := kind.unfit(job):
        return why
    if order.what == GO_ON:
        return "" if kind.is_off(job) else "it does not stand still"
    return "somebody else has suspended it" if kind.is_off(job) else ""


def _begin_again(kind: JobKind, job: Object, stands: Progress) -> Send:
    """One patch begins it and says so; what keeps it off nodes goes with it, and is left out where none is taken."""
    assert kind.switch is not None
    off, why_not = kind.keep_off(job, stands.avoid) if stands.avoid else ({}, "")
    plainly = stands._replace(step=steps.DONE, said="; ".join(filter(None, ["begun again", why_not])))
    if not off:
        return Send(change(kind, job, plainly, kind.switch(True)), plainly.said)
    told = plainly._replace(said=f"begun again, off {', '.join(stands.avoid)}")
    short = plainly._replace(said=f"begun again; the server took no change that keeps it off {', '.join(stands.avoid)}")
    without = change(kind, job, short, kind.switch(True))
    return Send(change(kind, job, told, kind.switch(True), off), told.said, without)


def _note(kind: JobKind, job: Object, stands: Progress, step: str, said: str) -> Send:
    return Send(change(kind, job, stands._replace(step=step, said=said)), said)


# -- Volcano -------------------------------------------------------------------------------------------


def _proceed_volcano(kind: JobKind, job: Object, stands: Progress, now: float) -> Move:
    if _shows(kind, job, stands):
        return _note(kind, job, stands, steps.DONE, f"Volcano has taken the {stands.what}")
    if over := kind.over(job):
        return _note(kind, job, stands, steps.FAILED, over)
    if now >= stands.until:
        said = "Volcano has not acted on the command; it is not repeated, for it may still come"
        return _note(kind, job, stands, steps.FAILED, said)
    if stands.step == steps.ASKED:
        return Wait("Volcano has been told")
    name = command_name(job, stands)
    body = volcano.command(job, name, _COMMANDS[stands.what], f"directive {stands.number}, {stands.action}")
    ref = volcano.command_ref(name, job["metadata"]["namespace"])
    return Send(create(ref, body), f"Volcano is told: {_COMMANDS[stands.what]}", once=True)


def asked(kind: JobKind, job: Object, stands: Progress) -> Send:
    """The command is there: it is not made again."""
    return _note(kind, job, stands, steps.ASKED, "")


def command_name(job: Object, stands: Progress) -> str:
    """Alike for the same directive, whoever makes it: a second one is a conflict."""
    return f"gyrostat-{str(job['metadata']['uid'])[:36].lower()}-{stands.number}"


def _shows(kind: JobKind, job: Object, stands: Progress) -> bool:
    if stands.what == RESTART:
        return volcano.was_restarted(job, stands.before)
    return kind.is_off(job) if stands.what == HOLD else not kind.is_off(job)
