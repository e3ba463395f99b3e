"""Gauges say what detectors measure: what is breached has a gauge beyond its limit, in every rule that ships."""

import math

import pytest

from gyrostat_agent.cli.options import builtin
from gyrostat_agent.selftest.script import Script
from gyrostat_agent.selftest.trial import SIMULATIONS
from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.engine import Engine
from gyrostat_rules.gauges import GAUGES, gauges
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule
from gyrostat_rules.packfile import parse
from gyrostat_rules.state import State

RULES = [rule for rule in parse(builtin()).rules if rule.detector in GAUGES]
WITHOUT = ("exit", "fault_line", "damaged", "hollow", "overuse", "loops")  # these only say what they found


def test_only_what_counts_nothing_has_no_gauge() -> None:
    """A detector without numbers is a decision, not something that was forgotten."""
    assert DETECTORS.keys() - GAUGES.keys() == set(WITHOUT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.alert)
def test_a_breach_has_a_gauge_beyond_its_limit(rule: Rule) -> None:
    """And a gauge that no limit holds for, or that is within its limit, is never breached alone."""
    breaches, quiet = 0, 0

    def watch(state: State, moment: Moment) -> None:
        nonlocal breaches, quiet
        if DETECTORS[rule.detector].by_time == bool(moment.records):
            return
        found = list(DETECTORS[rule.detector].read(rule.params, state, moment))
        measured = gauges(rule, state, moment)
        assert all(g.sentence and not math.isnan(g.value) for g in measured)
        for reading in found:
            who = {(k, v) for k, v in reading.labels.items() if k in ("role", "rank", "series", "layer", "loop")}
            assert any(g.beyond and who <= {*g.labels.items(), ("series", g.series)} for g in measured), reading
        breaches, quiet = breaches + bool(found), quiet + (bool(measured) and not any(g.beyond for g in measured))

    script = Script(20, ranks=3 if rule.detector == "beside" else 1, root="/ck" if rule.detector == "overdue" else "")
    SIMULATIONS[rule.detector](rule.params, script, True)
    engine = Engine(watch=watch)
    for given in script.inputs:
        engine.feed(given)
    assert breaches and quiet
