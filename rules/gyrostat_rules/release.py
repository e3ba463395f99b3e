"""Release: tell a waiting supervisor that its trainer will not be restarted, so that it passes the exit on."""

from gyrostat.wire import Directive
from gyrostat_rules.arming import is_led, may_act
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.incidents import ACTING, HELD, OPEN
from gyrostat_rules.moment import Moment
from gyrostat_rules.remedies import alive
from gyrostat_rules.state import State

_SECONDS = 3600.0


def release(state: State, moment: Moment) -> None:
    """Once a death: where no restart is under way, planned or waiting for a word, the supervisor may go."""
    trainer, supervisor = state.trainer(), state.supervisor()
    if trainer is None or supervisor is None or not alive(supervisor) or "release" not in supervisor.procedures:
        return
    death = f"{supervisor.incarnation} {trainer.incarnation}"  # a trainer may die before it has a name
    if not trainer.died or state.released == death or not may_act(state.settings) or _pending(state):
        return
    state.released = death
    directive = Directive(
        state.next_directive, state.run, "supervisor", supervisor.incarnation, 0, f"release-{trainer.incarnation}",
        moment.at + _SECONDS, -1, (), "release", {}, f"trainer ended with {trainer.ended}; no restart follows",
    )  # fmt: skip
    state.next_directive += 1
    state.release_orders = {"directive": directive.encode().decode()}
    moment.write(EntryKind.RUN, "supervisor/0", "released", directive.reason, orders=state.release_orders)


def _pending(state: State) -> bool:
    if state.standing.follows:
        # Whoever decides has a supervisor of its own, or the job's. While nobody does, or where rank 0 is, whose agent
        # will decide again, a restart may yet be ordered here.
        trainer = state.trainer()
        return not state.standing.leader or (trainer is not None and bool(trainer.incarnation))
    for incident in state.incidents:
        last = incident.actions[-1] if incident.actions else None
        if incident.state in (OPEN, ACTING):
            return True
        waits = incident.state == HELD and last is not None and last.verdict == "hold" and last.remedy == "restart"
        if waits and is_led(state.settings, incident):
            return True
    return False
