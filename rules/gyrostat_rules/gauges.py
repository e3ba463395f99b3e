"""Gauges: what each rule measures against what, in a run as it stands at a moment.

Asked by ``gyrostat rules explain`` and nobody else: nothing of it enters the state or an entry. It does not promise
that a value beyond its limit is breached: a rule may want several such, or another beside it. A detector that counts
nothing (a process that died, a line in a log) is not in the table and has no numbers to show.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gyrostat_rules.detectors.apart import apart_gauges
from gyrostat_rules.detectors.balance import balance_gauges
from gyrostat_rules.detectors.behind import behind_gauges
from gyrostat_rules.detectors.beside import beside_gauges
from gyrostat_rules.detectors.drift import drift_gauges
from gyrostat_rules.detectors.drop import drop_gauges
from gyrostat_rules.detectors.entropygauge import entropy_gauges
from gyrostat_rules.detectors.filling import filling_gauges
from gyrostat_rules.detectors.frozen import frozen_gauges
from gyrostat_rules.detectors.gauge import Gauge
from gyrostat_rules.detectors.grows import grows_gauges
from gyrostat_rules.detectors.idle import idle_gauges
from gyrostat_rules.detectors.knobdrift import knob_gauges
from gyrostat_rules.detectors.level import level_gauges
from gyrostat_rules.detectors.nonfinite import nonfinite_gauges
from gyrostat_rules.detectors.overdue import overdue_gauges
from gyrostat_rules.detectors.quiet import quiet_gauges
from gyrostat_rules.detectors.raised import raised_gauges
from gyrostat_rules.detectors.regression import regression_gauges
from gyrostat_rules.detectors.resumed import resumed_gauges
from gyrostat_rules.detectors.rise import rise_gauges
from gyrostat_rules.detectors.share import share_gauges
from gyrostat_rules.detectors.skips import skips_gauges
from gyrostat_rules.detectors.spike import spike_gauges
from gyrostat_rules.detectors.stall import stall_gauges
from gyrostat_rules.detectors.stuck import stuck_gauges
from gyrostat_rules.detectors.trend import trend_gauges
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule
from gyrostat_rules.state import State

GAUGES: Mapping[str, Callable[[Any, State, Moment], Iterable[Gauge]]] = {
    "nonfinite": nonfinite_gauges,
    "stall": stall_gauges,
    "spike": spike_gauges,
    "drift": drift_gauges,
    "drop": drop_gauges,
    "level": level_gauges,
    "stuck": stuck_gauges,
    "trend": trend_gauges,
    "apart": apart_gauges,
    "entropy": entropy_gauges,
    "expert_balance": balance_gauges,
    "knob_drift": knob_gauges,
    "grows": grows_gauges,
    "share": share_gauges,
    "raised": raised_gauges,
    "rise": rise_gauges,
    "beside": beside_gauges,
    "behind": behind_gauges,
    "quiet": quiet_gauges,
    "overdue": overdue_gauges,
    "frozen": frozen_gauges,
    "regression": regression_gauges,
    "resumed": resumed_gauges,
    "filling": filling_gauges,
    "skips": skips_gauges,
    "idle": idle_gauges,
}


def gauges(rule: Rule, state: State, moment: Moment) -> list[Gauge]:
    """All gauges of a rule at a moment, whatever labels it is for; none where its detector has no numbers."""
    measured = GAUGES.get(rule.detector)
    return list(measured(rule.params, state, moment)) if measured else []
