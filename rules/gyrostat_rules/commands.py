"""Commands: what people say, and what the agent learns at start from the ledger."""

from collections.abc import Callable, Mapping
from typing import Any

from gyrostat_rules.approvals import approve, deny
from gyrostat_rules.arming import arm, disarm, taken_up
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.handover import stand
from gyrostat_rules.inputs import Command, Verb
from gyrostat_rules.ledger import restore
from gyrostat_rules.moment import Moment
from gyrostat_rules.requests import NOT_DONE, go_back, speaker, tag
from gyrostat_rules.silences import silence, unsilence
from gyrostat_rules.standing import decides
from gyrostat_rules.state import State

MODES = ("observe", "shadow", "act")
_WORDS_OF_PEOPLE = frozenset(
    (Verb.APPROVE, Verb.DENY, Verb.PAUSE, Verb.RESUME, Verb.ROLLBACK, Verb.TAG, Verb.ARM, Verb.DISARM, Verb.SILENCE,
     Verb.UNSILENCE)
)  # fmt: skip


def obey(state: State, moment: Moment, command: Command) -> None:
    """Carry a command out; what is not understood is written down and changes nothing."""
    act = _VERBS.get(command.verb)
    if command.verb in _WORDS_OF_PEOPLE and state.standing.follows:
        said = f"{NOT_DONE}{decides(state.standing)}: say it to the agent there"
    else:
        said = act(state, moment, command.arguments) if act else f"command {command.verb!r} is not known"
    if said:
        shown = None if command.verb in (Verb.LEDGER, Verb.STAND) else dict(command.arguments)
        moment.write(EntryKind.COMMAND, command.verb, "said", said, state.step, arguments=shown)


def _configure(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    settings = state.settings
    mode, approvals = arguments.get("mode", settings.mode), arguments.get("approvals", settings.approvals)
    if mode not in MODES:
        return f"mode {mode!r} is not one of {', '.join(MODES)}; {settings.mode} stays"
    state.run = state.run or str(arguments.get("run", ""))
    state.next_directive = max(state.next_directive, int(arguments.get("next_directive", 1)))
    if (mode, bool(approvals), settings.said) == (settings.mode, settings.approvals, True):
        return ""
    settings.mode, settings.approvals, settings.said = mode, bool(approvals), True
    return f"mode {mode}, approvals {'on' if approvals else 'off'}"


def _pause(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    state.settings.paused = True
    return "paused: nothing is done until resumed"


def _resume(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    was, state.settings.paused = state.settings.paused, False
    return "resumed" if was else "it was not paused: nothing has changed"


def _distrust(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    reason = str(arguments.get("reason", "not trusted"))
    if reason in (state.settings.distrust, state.settings.trusted):
        return ""  # said already, or looked into by a person, who trusts it all the same
    state.settings.distrust = reason
    return f"observe only: {reason}"


def _trust(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    was, state.settings.distrust = state.settings.distrust, ""
    state.settings.trusted = was or state.settings.trusted
    return f"trusted again by {speaker(arguments)}: {was}"


def _ledger(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    said = restore(state, arguments)
    taken_up(state, moment)
    return said


_VERBS: dict[str, Callable[[State, Moment, Mapping[str, Any]], str]] = {
    Verb.CONFIGURE: _configure,
    Verb.APPROVE: approve,
    Verb.DENY: deny,
    Verb.PAUSE: _pause,
    Verb.RESUME: _resume,
    Verb.DISTRUST: _distrust,
    Verb.TRUST: _trust,
    Verb.LEDGER: _ledger,
    Verb.ROLLBACK: go_back,
    Verb.TAG: tag,
    Verb.ARM: arm,
    Verb.DISARM: disarm,
    Verb.SILENCE: silence,
    Verb.UNSILENCE: unsilence,
    Verb.STAND: stand,
}
