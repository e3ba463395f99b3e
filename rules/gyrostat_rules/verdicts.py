"""Verdict and Case: what a guard says, and what it is asked about.

Called by the guards and by whoever asks them.
"""

from typing import NamedTuple

from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Playbook
from gyrostat_rules.state import Action, Incident, State

ALLOW, HOLD, DENY = "allow", "hold", "deny"


class Verdict(NamedTuple):
    """A guard's word and its reason; allow has none.

    ``next_rung``: a deny of this rung alone, after which the next one follows; else a deny ends the incident.
    ``patient``: a hold that ends by itself and asks nobody, so that it is no wait for an answer that never comes.
    ``asks``: a hold that a person's word ends: they have the whole time from when they are first asked.
    """

    word: str
    reason: str = ""
    next_rung: bool = False
    patient: bool = False
    asks: bool = False


class Case(NamedTuple):
    """What a guard judges: one action of one incident, under its playbook."""

    state: State
    moment: Moment
    playbook: Playbook
    incident: Incident
    action: Action


YES = Verdict(ALLOW)
