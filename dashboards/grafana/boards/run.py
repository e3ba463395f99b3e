"""Run: one run at a glance, for whoever was woken: where it stands, what is wrong, what was done."""

from board import Board, Row
from panel import KIND_RUNBOOK, lines, number, states
from query import HERE, Query, of, rate, risen, told, values

BOARD = Board(
    "gyrostat-run",
    "Gyrostat: run",
    "One run: where it stands, what fires, what was done about it and what it cost.",
    (
        Row(
            "Now",
            (
                number(
                    "Step",
                    "none",
                    "The newest step of any trainer rank.",
                    Query(f"max({of('gyrostat_step', role='trainer')})"),
                ),
                number(
                    "Last word",
                    "s",
                    "Seconds since any trainer rank told something.",
                    Query(f"time() - max({of('gyrostat_last_record_timestamp_seconds', role='trainer')})"),
                    steps=((600, "orange"), (1800, "red")),
                    runbook="stall",
                ),
                number(
                    "Agent",
                    "none",
                    "Whether the agent sees everything it should; /readyz says what it does not.",
                    Query(f"min({of('gyrostat_ready')})"),
                    words={"0": ("blind", "red"), "1": ("sees", "green")},
                ),
                number(
                    "Open incidents",
                    "none",
                    "Incidents that are not over.",
                    Query(f"sum({of('gyrostat_incidents_open')}) or vector(0) and on () {of('gyrostat_run')}"),
                    steps=((1, "red"),),
                ),
                number(
                    "Steps lost",
                    "none",
                    "In the time that is looked at, by the bills of incidents that are over.",
                    Query(f"round(sum({risen('gyrostat_steps_lost_total')}))"),
                ),
                number(
                    "Training time kept, 1 d",
                    "percentunit",
                    "ETTR: of the time watched, what was not lost.",
                    Query(f"min(gyrostat:ettr:1d{{{HERE}}})"),
                    low=0,
                    high=1,
                ),
            ),
        ),
        Row(
            "What is wrong",
            (
                states(
                    "Alerts that fire",
                    "The agent's own rules: gyrostat rules explain RULE says what one looks at.",
                    Query(
                        f"max by (rule, severity) ({of('gyrostat_alerts', state='firing')})", "{{severity}}: {{rule}}"
                    ),
                    width=12,
                    words={"1": ("fires", "red")},
                ),
                lines(
                    "Incidents open",
                    "none",
                    "By kind and state; each kind has a runbook of its name.",
                    Query(f"sum by (kind, state) ({of('gyrostat_incidents_open')})", "{{kind}}: {{state}}"),
                    width=12,
                    opens=KIND_RUNBOOK,
                    low=0,
                ),
                lines(
                    "Values that were not finite",
                    "none",
                    "Counted by series, rank and what they were; the first of a series is at the curve's beginning.",
                    Query(of("gyrostat_nonfinite_total"), "{{series}} of {{role}} {{rank}}: {{value}}"),
                    low=0,
                    runbook="nonfinite",
                ),
                lines(
                    "Actions",
                    "none",
                    "What the agent sent, and what came of it, by remedy.",
                    Query(f"sum by (remedy, state) ({of('gyrostat_actions_total')})", "{{remedy}}: {{state}}"),
                    low=0,
                ),
                lines(
                    "Incidents ended",
                    "none",
                    "By kind and how they ended: resolved, or stopped.",
                    Query(f"sum by (kind, state) ({of('gyrostat_incidents_ended_total')})", "{{kind}}: {{state}}"),
                    low=0,
                ),
            ),
        ),
        Row(
            "Progress",
            (
                lines(
                    "Steps",
                    "none",
                    "The newest step by rank; a fall is a way back to a checkpoint.",
                    Query(of("gyrostat_step", role="trainer"), "rank {{rank}}"),
                ),
                lines(
                    "Ways back",
                    "none",
                    "How often the run has gone back.",
                    Query(of("gyrostat_segment"), "segment"),
                    low=0,
                ),
                lines(
                    "Seconds a step",
                    "s",
                    "As the trainer tells it, by rank: a straggler stands out.",
                    values(told("step_time", "step_seconds", "iteration_time", "time_per_step")),
                    low=0,
                    runbook="slow",
                ),
                lines("Loss", "none", "A gap is a value that was not finite.", values(told("loss")), runbook="loss"),
                lines(
                    "Gradient norm",
                    "none",
                    "Before clipping, where the trainer tells it so.",
                    values(told("grad_norm")),
                    low=0,
                    runbook="divergence",
                ),
                lines(
                    "Steps in a minute",
                    "none",
                    "Steps that rank 0 told, those gone back over too.",
                    Query(f"60 * {rate('gyrostat_steps_total')}", "steps"),
                    low=0,
                ),
            ),
        ),
    ),
)
