"""Agent: whether the sidecar itself is well: what it sees, reads, writes, and leaves out."""

from board import Board, Row
from panel import lines, number, states
from query import HERE, Query, of, rate

BOARD = Board(
    "gyrostat-agent",
    "Gyrostat: agent",
    "The sidecar's own health. Where it is blind or gone, an empty board of the run is no good news.",
    (
        Row(
            "Now",
            (
                number(
                    "Mode",
                    "none",
                    "observe reads; shadow writes down what it would do; act does it.",
                    Query(of("gyrostat_run"), "{{mode}}"),
                    width=6,
                ),
                number(
                    "Observes only",
                    "none",
                    "It distrusts the run's history and acts on nothing: gyrostat status says why.",
                    Query(f"max({of('gyrostat_observe_only')})"),
                    width=6,
                    words={"0": ("no", "green"), "1": ("yes", "red")},
                ),
                number(
                    "Rules without data",
                    "none",
                    "Rules that nobody tells anything: gyrostat status names them. Absent before step 20.",
                    Query(f"max({of('gyrostat_rules_without_data')})"),
                    width=6,
                ),
                number(
                    "Series cut",
                    "none",
                    "Series and ranks that are left out of the page, to bound it.",
                    Query(f"sum({of('gyrostat_series_cut')})"),
                    width=6,
                    steps=((1, "orange"),),
                ),
            ),
        ),
        Row(
            "Sees and reads",
            (
                states(
                    "Sees everything",
                    "Red where it is blind to something; a gap where there is no agent.",
                    Query(of("gyrostat_ready"), "{{instance}}"),
                    width=8,
                    words={"0": ("blind", "red"), "1": ("sees", "green")},
                ),
                lines(
                    "Records",
                    "rps",
                    "Records read, by the second.",
                    Query(f"sum({rate('gyrostat_records_total')})", "records"),
                    low=0,
                ),
                lines(
                    "Lost and damaged",
                    "none",
                    "Frames that a rank could not write or somebody took away; places passed over as damage.",
                    Query(of("gyrostat_frames_missing_total"), "missing"),
                    Query(of("gyrostat_frames_damaged_total"), "damaged"),
                    low=0,
                ),
                lines(
                    "Who speaks",
                    "s",
                    "Seconds since each process last spoke.",
                    Query(f"time() - {of('gyrostat_last_record_timestamp_seconds')}", "{{role}} {{rank}}"),
                    low=0,
                    runbook="stall",
                ),
                lines(
                    "Scrape",
                    "s",
                    "How long Prometheus waited for the page.",
                    Query(f"scrape_duration_seconds{{{HERE}}}", "{{instance}}"),
                    low=0,
                ),
                lines(
                    "Series on the page",
                    "none",
                    "What Prometheus read there.",
                    Query(f"scrape_samples_scraped{{{HERE}}}", "{{instance}}"),
                    low=0,
                ),
            ),
        ),
        Row(
            "Journal and people",
            (
                lines(
                    "Journal",
                    "bytes",
                    "Bytes of its file that hold something.",
                    Query(of("gyrostat_journal_bytes"), "{{instance}}"),
                    low=0,
                ),
                lines(
                    "Turns",
                    "ops",
                    "Turns written into the journal, by the second.",
                    Query(f"sum({rate('gyrostat_turns_total')})", "turns"),
                    low=0,
                ),
                lines(
                    "Noted turn",
                    "none",
                    "The turn whose hash is on the page, for journal verify --head.",
                    Query(of("gyrostat_journal_turn"), "{{instance}}"),
                    low=0,
                ),
                lines(
                    "Silences",
                    "none",
                    "Given by people: active, or not begun.",
                    Query(of("gyrostat_silences"), "{{state}}"),
                    low=0,
                ),
                lines(
                    "Rules armed",
                    "none",
                    "Rules that act in mode shadow too.",
                    Query(f"count({of('gyrostat_rule_armed')}) or vector(0) and on () {of('gyrostat_run')}", "rules"),
                    low=0,
                ),
                lines(
                    "Words over HTTP",
                    "none",
                    "Requests at the --control address, by what they got.",
                    Query(f"sum by (answer) ({of('gyrostat_control_requests_total')})", "{{answer}}"),
                    low=0,
                ),
            ),
        ),
    ),
)
