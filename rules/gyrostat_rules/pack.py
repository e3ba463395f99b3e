"""Rule, Rung, Playbook, RulePack: what a pack file declares, once it has been read.

These are values; ``packfile`` reads them from YAML and reports every mistake, the engine only uses them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_rules.causes import REQUEST
from gyrostat_rules.lasting import Lasting


class Severity:
    """How grave an alert is. Only critical opens an incident."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Rule(NamedTuple):
    """When to alert. It fires once breached ``lasts`` long, and holds on ``keeps`` long after that.

    ``match``: labels that a reading must have, each with the values that will do; ``when``: the phases in which it
    speaks, or with ``not `` before each those in which it does not. ``fault``: what kind of fault it tells.
    ``incident`` is the kind it opens. ``joins``: the kind as which an alert that opens nothing joins an incident that
    began at its step or soon after. ``inhibits``: alerts that it explains, muted while it fires.
    """

    alert: str
    detector: str
    params: Any
    severity: str
    group: str = ""
    lasts: Lasting = Lasting()
    keeps: Lasting = Lasting()
    match: Mapping[str, tuple[str, ...]] = {}
    when: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    runbook_url: str = ""
    fault: str = ""
    incident: str = ""
    inhibits: tuple[str, ...] = ()
    joins: str = ""


class KnobPlan(NamedTuple):
    """How a rung turns a knob: multiplies what it reads by ``times``, sets it ``to`` a value, raises it to ``at_least``
    or lowers it to ``at_most``, and leaves it alone where it is that already.

    ``keep``: it stays there when the incident is over, because that is where it should have been. ``then``: where it is
    set to when the incident is over, if that lies between what it was and what it is.
    """

    name: str
    times: float | None = None
    to: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    keep: bool = False
    then: float | None = None

    def wanted(self, now: float) -> float:
        """Where the knob should be, from where it is."""
        if self.to is not None:
            return self.to
        if self.times is not None:
            return now * self.times
        return max(now, self.at_least) if self.at_least is not None else min(now, self.at_most or 0.0)

    def words(self) -> str:
        """How it is turned, for people."""
        aims = {"to": self.to, "times": self.times, "at least": self.at_least, "at most": self.at_most}
        return next(f"{self.name} {word} {value:g}" for word, value in aims.items() if value is not None)


class Effect(NamedTuple):
    """What shows that a rung's knobs do anything: ``series`` beyond a limit at least once ``within`` so many steps.

    ``when``: two series; only steps count in which the first is below the second, for elsewhere nothing is called for.
    """

    series: str
    above: float | None = None
    below: float | None = None
    within: int = 5
    when: tuple[str, ...] = ()


class Harm(NamedTuple):
    """What a rung may cost: ``series`` falls by that share at most, in means of ``over`` steps, before and since."""

    series: str
    falls: float
    over: int = 10


class Rung(NamedTuple):
    """One remedy of a playbook. ``horizon`` is how many steps it has to prove itself.

    ``settle``: steps before those in which its effect may be on the way, so that what still fires says nothing
    against it: entropy does not come back in one step. ``effects`` and ``harm``: what is looked at meanwhile.
    ``budget_actions``: so often at most in ``budget_steps`` steps, over all incidents, and then the next rung follows;
    0: as often as its playbook allows, and in as many steps.
    """

    remedy: str
    horizon: int = 10
    knobs: tuple[KnobPlan, ...] = ()
    settle: int = 0
    effects: tuple[Effect, ...] = ()
    harm: Harm | None = None
    budget_actions: int = 0
    budget_steps: int = 0


class Playbook(NamedTuple):
    """Incident kind -> remedies, mild to severe, and what bounds them.

    At most ``budget_actions`` in ``budget_steps`` steps; at most ``ceiling_incidents`` of this kind in
    ``ceiling_steps``, and ``standstill_incidents`` within ``standstill_steps`` of one place; ``cooldown`` steps between
    the end of one and the first action of the next. An action that would lose more than ``most_lost`` steps, turn more
    than ``most_knobs`` knobs or end more than ``most_ranks`` processes (0: however many) asks a person first.
    """

    incident: str
    rungs: tuple[Rung, ...]
    budget_actions: int = 3
    budget_steps: int = 200
    ceiling_incidents: int = 3
    ceiling_steps: int = 1000
    cooldown: int = 15
    standstill_incidents: int = 2
    standstill_steps: int = 20
    most_lost: int = 1000
    most_knobs: int = 4
    most_ranks: int = 0


# What a person asks for takes the agent's own ways: through the trainer, else through the supervisor.
REQUESTED = Playbook(REQUEST, (Rung("rollback"), Rung("restart")))


class RulePack(NamedTuple):
    """A whole pack."""

    name: str
    rules: tuple[Rule, ...]
    playbooks: tuple[Playbook, ...]

    def playbook(self, incident: str) -> Playbook | None:
        """The playbook for a kind of incident."""
        known = REQUESTED if incident == REQUEST else None
        return next((p for p in self.playbooks if p.incident == incident), known)
