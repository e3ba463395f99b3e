"""Fleet: all runs beside each other, from the recording rules of dashboards/prometheus/fleet.rules.yaml."""

from board import Board, Row
from panel import RUN_BOARD, lines, number, states
from query import Query

_RUN = "max by (job, instance, run) (gyrostat_run)"


def _by_run(expr: str) -> str:
    """With the run's name beside it, which the agent's other metrics do not bear."""
    return f"({expr}) * on (job, instance) group_left (run) {_RUN}"


BOARD = Board(
    "gyrostat-fleet",
    "Gyrostat: fleet",
    "All runs: what was kept of their time and steps, what it took, and who needs a person.",
    (
        Row(
            "Now",
            (
                number("Runs watched", "short", "Agents that Prometheus sees.", Query("count(gyrostat_run)")),
                number(
                    "Blind",
                    "short",
                    "Agents that do not see everything they should: their silence is no word of health.",
                    Query("count(gyrostat_ready == 0) or vector(0) and on () gyrostat_run"),
                    steps=((1, "red"),),
                ),
                number(
                    "Open incidents",
                    "short",
                    "Incidents that are not over, of all runs.",
                    Query("sum(gyrostat_incidents_open) or vector(0) and on () gyrostat_run"),
                    steps=((1, "orange"),),
                ),
                number(
                    "A person is waited for",
                    "short",
                    "Incidents that are held for approval or given up.",
                    Query('sum(gyrostat_incidents_open{state=~"held|stopped"}) or vector(0) and on () gyrostat_run'),
                    steps=((1, "red"),),
                ),
                number(
                    "Training time kept, 1 d",
                    "percentunit",
                    "ETTR of all runs: of the time watched, what was not lost to incidents that are over.",
                    Query("gyrostat:fleet_ettr:1d"),
                    low=0,
                    high=1,
                ),
                number(
                    "Interventions for 1,000 steps, 1 d",
                    "short",
                    "Directives sent, without those that took one back, for each 1,000 steps told in the last day.",
                    Query("gyrostat:fleet_interventions_per_1000_steps:1d"),
                ),
            ),
        ),
        Row(
            "What was kept, last day",
            (
                lines(
                    "Training time kept",
                    "percentunit",
                    "ETTR by run: of the time watched, what was not lost. An incident counts when it is over.",
                    Query("gyrostat:ettr:1d", "{{run}}"),
                    opens=RUN_BOARD,
                    low=0,
                    high=1,
                ),
                lines(
                    "Steps kept",
                    "percentunit",
                    "Goodput: of the steps told, those that stand and taught something.",
                    Query("gyrostat:goodput:1d", "{{run}}"),
                    Query("gyrostat:fleet_goodput:1d", "all runs"),
                    low=0,
                    high=1,
                ),
                lines(
                    "Steps kept in an hour",
                    "short",
                    "Steps that stand, by the hour that the run was watched.",
                    Query("gyrostat:goodput_steps_per_hour:1d", "{{run}}"),
                    low=0,
                ),
                lines(
                    "Steps lost",
                    "short",
                    "Steps gone back over or without effect, by the bills of the last day.",
                    Query("gyrostat:steps_lost:1d", "{{run}}"),
                    opens=RUN_BOARD,
                    low=0,
                ),
                lines(
                    "Interventions for 1,000 steps",
                    "short",
                    "Directives sent for each 1,000 steps told.",
                    Query("gyrostat:interventions_per_1000_steps:1d", "{{run}}"),
                    opens=RUN_BOARD,
                    low=0,
                ),
                lines(
                    "Incidents in 6 h",
                    "short",
                    "New incidents: what is mended and comes back shows here.",
                    Query(_by_run("increase(gyrostat_incidents_total[6h])"), "{{run}}"),
                    low=0,
                ),
            ),
        ),
        Row(
            "Who",
            (
                states(
                    "Sees everything",
                    "Red where the agent is blind to something; a gap where there is no agent.",
                    Query(_by_run("gyrostat_ready"), "{{run}}"),
                    width=12,
                    words={"0": ("blind", "red"), "1": ("sees", "green")},
                ),
                lines(
                    "Incidents open",
                    "short",
                    "By run, kind and state.",
                    Query(_by_run("gyrostat_incidents_open"), "{{run}}: {{kind}}, {{state}}"),
                    width=12,
                    opens=RUN_BOARD,
                    low=0,
                ),
            ),
        ),
    ),
    of_a_run=False,
)
