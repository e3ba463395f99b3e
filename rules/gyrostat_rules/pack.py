"""Rule, Rung, Playbook, RulePack: what a pack file declares, once it has been read.

These are values; ``packfile`` reads them from YAML and reports every mistake, the engine only uses them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Severity:
    """How grave an alert is. Only critical opens an incident."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Rule(NamedTuple):
    """When to alert. ``for_steps`` and ``keep_firing_for`` count steps; ``incident`` is the kind it opens.

    ``joins``: the kind as which an alert that opens nothing joins an incident that began at its step or soon after.
    """

    alert: str
    detector: str
    params: Any
    severity: str
    group: str = ""
    for_steps: int = 0
    keep_firing_for: int = 0
    labels: Mapping[str, str] = {}
    summary: str = ""
    runbook: str = ""
    incident: str = ""
    consequences: tuple[str, ...] = ()
    joins: str = ""


class KnobPlan(NamedTuple):
    """How a rung turns a knob: multiply what it reads by ``times``, or set it ``to`` a value.

    ``keep``: it stays there when the incident is over, because that is where it should have been.
    """

    name: str
    times: float | None = None
    to: float | None = None
    keep: bool = False


class Effect(NamedTuple):
    """What shows that a rung's knobs do anything: ``series`` beyond a limit at least once ``within`` so many steps."""

    series: str
    above: float | None = None
    below: float | None = None
    within: int = 5


class Harm(NamedTuple):
    """What a rung may cost: ``series`` falls by that share at most, in means of ``over`` steps, before and since."""

    series: str
    falls: float
    over: int = 10


class Rung(NamedTuple):
    """One remedy of a playbook. ``horizon`` is how many steps it has to prove itself.

    ``settle``: steps before those in which its effect may be on the way, so that what still fires says nothing
    against it: entropy does not come back in one step. ``effects`` and ``harm``: what is looked at meanwhile.
    """

    remedy: str
    horizon: int = 10
    knobs: tuple[KnobPlan, ...] = ()
    settle: int = 0
    effects: tuple[Effect, ...] = ()
    harm: Harm | None = None


class Playbook(NamedTuple):
    """Incident kind -> remedies, mild to severe, and what bounds them.

    At most ``budget_actions`` in ``budget_steps`` steps; at most ``ceiling_incidents`` of this kind in
    ``ceiling_steps``; ``cooldown`` steps between the end of one and the first action of the next.
    """

    incident: str
    rungs: tuple[Rung, ...]
    budget_actions: int = 3
    budget_steps: int = 200
    ceiling_incidents: int = 3
    ceiling_steps: int = 1000
    cooldown: int = 15


class RulePack(NamedTuple):
    """A whole pack."""

    name: str
    rules: tuple[Rule, ...]
    playbooks: tuple[Playbook, ...]

    def playbook(self, incident: str) -> Playbook | None:
        """The playbook for a kind of incident."""
        return next((p for p in self.playbooks if p.incident == incident), None)
