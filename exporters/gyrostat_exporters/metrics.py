"""Metrics for Prometheus, from one table of names. What is not finite is counted: a gauge that is NaN alerts nobody."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gyrostat_exporters import fellows
from gyrostat_exporters.experts import Shown, shown
from gyrostat_exporters.view import Tally, View, is_row

COUNTER, GAUGE = "counter", "gauge"
_FAMILIES = {COUNTER: CounterMetricFamily, GAUGE: GaugeMetricFamily}


class Name(NamedTuple):
    """One metric: its kind, labels and help. Counters are exposed with ``_total`` behind their name."""

    kind: str
    labels: tuple[str, ...]
    help: str


NAMES: dict[str, Name] = {
    "gyrostat_run": Name(GAUGE, ("run", "mode"), "Always 1; its labels name the run and the agent's mode."),
    "gyrostat_ready": Name(GAUGE, (), "1 while the agent sees everything it should, 0 while it is blind."),
    "gyrostat_observe_only": Name(GAUGE, (), "1 while the agent distrusts the run's history and only observes."),
    "gyrostat_rule_armed": Name(GAUGE, ("rule",), "1 for each rule that acts in mode shadow too."),
    "gyrostat_step": Name(GAUGE, ("role", "rank"), "The newest step that a process has told."),
    "gyrostat_segment": Name(GAUGE, (), "How often the run has gone back."),
    "gyrostat_last_record_timestamp_seconds": Name(GAUGE, ("role", "rank"), "When a process last spoke, Unix time."),
    "gyrostat_value": Name(GAUGE, ("series", "role", "rank"), "The newest finite value of a series, in its own unit."),
    "gyrostat_nonfinite": Name(COUNTER, ("series", "role", "rank", "value"), "Values that were nan, inf or -inf."),
    "gyrostat_alerts": Name(GAUGE, ("rule", "severity", "state"), "Alerts that are pending or firing."),
    "gyrostat_silences": Name(GAUGE, ("state",), "Silences that people have given: active, or pending (not begun)."),
    "gyrostat_rules_without_data": Name(GAUGE, (), "Rules with nothing to look at; gyrostat status names them."),
    "gyrostat_incidents_open": Name(GAUGE, ("kind", "state"), "Incidents that are not over."),
    "gyrostat_incidents": Name(COUNTER, (), "Incidents so far, over all restarts of the agent."),
    "gyrostat_interventions": Name(COUNTER, (), "Directives that this agent sent, without those that took one back."),
    "gyrostat_incidents_ended": Name(COUNTER, ("kind", "state"), "Incidents that this agent saw end, by how they did."),
    "gyrostat_first_record_timestamp_seconds": Name(
        GAUGE, (), "When this agent first heard of trainer rank 0, Unix time."
    ),
    "gyrostat_steps": Name(COUNTER, (), "Steps that trainer rank 0 told this agent, also those gone back over."),
    "gyrostat_steps_lost": Name(COUNTER, (), "Steps that were lost, by the bills that this agent wrote."),
    "gyrostat_lost_seconds": Name(COUNTER, (), "Seconds that were lost, by the bills that this agent wrote."),
    "gyrostat_expert_rho_eff": Name(GAUGE, ("layer", "loop"), "Effective share of experts in use, of trainer rank 0."),
    "gyrostat_expert_dead_share": Name(
        GAUGE, ("layer", "loop"), "Share of experts that get next to nothing, likewise."
    ),
    "gyrostat_expert_fullest": Name(
        GAUGE, ("place", "what"), "The fullest experts: load (1 is an even share), layer and expert, likewise."
    ),
    "gyrostat_experts_hidden": Name(GAUGE, (), "Experts that are only in the shares above, to bound this page."),
    "gyrostat_actions": Name(COUNTER, ("remedy", "state"), "Actions sent, and what came of them, by this agent."),
    "gyrostat_records": Name(COUNTER, (), "Records read by this agent."),
    "gyrostat_frames_missing": Name(COUNTER, (), "Frames that a rank could not write or somebody took away."),
    "gyrostat_frames_damaged": Name(COUNTER, (), "Places in record files that were passed over as damage."),
    "gyrostat_turns": Name(COUNTER, (), "Turns that this agent wrote into the journal."),
    "gyrostat_journal_bytes": Name(GAUGE, (), "Bytes of the journal's file that hold something."),
    "gyrostat_journal_turn": Name(GAUGE, (), "The turn of the journal whose hash is shown here."),
    "gyrostat_journal_hash": Name(GAUGE, ("part",), "That hash in four parts of 32 bits, for journal verify --head."),
    "gyrostat_control_requests": Name(COUNTER, ("answer",), "Requests at the --control address, by what they got."),
    "gyrostat_alertmanager_alerts": Name(
        COUNTER, ("alertmanager", "outcome"), "Alerts told to an Alertmanager, by this agent: sent, failed or dropped."
    ),
    "gyrostat_alertmanager_waiting": Name(
        GAUGE, ("alertmanager",), "Alerts that wait for an Alertmanager to take them."
    ),
    "gyrostat_otlp_items": Name(
        COUNTER, ("signal", "outcome"), "Told to an OTLP collector by this agent: exports of metrics, logs, spans."
    ),
    "gyrostat_otlp_waiting": Name(GAUGE, ("signal",), "What waits for an OTLP collector to take it."),
    "gyrostat_cluster_leader": Name(GAUGE, ("node",), "1 at the agent that decides for the run, 0 at the others."),
    "gyrostat_cluster_term": Name(GAUGE, (), "Which leader of this run it is, counted from 1."),
    "gyrostat_cluster_cut_off": Name(GAUGE, (), "1 while this agent can neither decide nor tell the one that does."),
    "gyrostat_cluster_nodes": Name(GAUGE, ("state",), "Other nodes that the leader hears, or misses."),
    "gyrostat_cluster_forwarded": Name(COUNTER, ("outcome",), "Items this agent forwarded: sent, or dropped for room."),
    "gyrostat_cluster_waiting": Name(GAUGE, (), "Items that wait to be forwarded."),
    "gyrostat_cluster_refused": Name(COUNTER, (), "Parcels of other nodes that this agent did not take."),
    "gyrostat_series_cut": Name(GAUGE, (), "Series and ranks that are not shown, to bound this page."),
}


class RunCollector(Collector):
    """Renders the newest view at each scrape; ``latest`` returns it, or None before the first pass."""

    def __init__(self, latest: "Latest") -> None:
        self._latest = latest

    def collect(self) -> Iterable[Metric]:
        """One family a name of the table that has something to say."""
        view = self._latest()
        samples: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        for name, labels, value in samples_of(view) if view is not None else ():
            samples.setdefault(name, []).append((labels, value))
        for name, rows in samples.items():
            said = NAMES[name]
            family = _FAMILIES[said.kind](name, said.help, labels=said.labels)
            for labels, value in rows:
                family.add_metric(labels, value)
            yield family


class Latest:
    """The newest view, handed from the loop's thread to the server's. Replacing one reference is atomic."""

    def __init__(self) -> None:
        self.view: View | None = None

    def __call__(self) -> View | None:
        """The newest view."""
        return self.view


def samples_of(view: View) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Name in the table, labels in its order, and value of each sample of a view."""
    tally = view.tally
    yield "gyrostat_run", (view.run, view.mode), 1.0
    yield "gyrostat_ready", (), float(not view.blind)
    yield "gyrostat_observe_only", (), float(bool(view.distrust))
    for rule, _ in view.armed:
        yield "gyrostat_rule_armed", (rule,), 1.0
    yield "gyrostat_segment", (), float(view.segment)
    yield from _rank_samples(view)
    for key, nonfinite in tally.nonfinite.items():
        role, rank, series, value = key
        yield "gyrostat_nonfinite", (series, role, rank, value), float(nonfinite)
    for alert in sorted(set(view.alerts)):
        yield "gyrostat_alerts", alert, float(view.alerts.count(alert))
    begun = sum(silence.begun for silence in view.silences)
    yield "gyrostat_silences", ("active",), float(begun)
    yield "gyrostat_silences", ("pending",), float(len(view.silences) - begun)
    if view.off is not None:  # before, 0 would be a guess
        yield "gyrostat_rules_without_data", (), float(len(view.off))
    standing = Counter((one.kind, one.state) for one in view.incidents)
    for incident, many in sorted(standing.items()):
        yield "gyrostat_incidents_open", incident, float(many)
    for done, count in tally.actions.items():
        yield "gyrostat_actions", done, float(count)
    yield "gyrostat_incidents", (), float(view.incident_count)
    yield "gyrostat_records", (), float(tally.records)
    yield "gyrostat_frames_missing", (), float(tally.missing)
    yield "gyrostat_frames_damaged", (), float(tally.damaged)
    yield "gyrostat_turns", (), float(tally.turns)
    for answer, asked in tally.requests.items():
        yield "gyrostat_control_requests", (answer,), float(asked)
    yield from _pushed_samples(view)
    yield from fellows.samples(view.fellows)
    yield from _bill_samples(tally)
    experts = shown(tally.loads)
    yield from _expert_samples(experts)
    yield "gyrostat_series_cut", (), float(view.cut + 2 * experts.cut)
    yield from _journal_samples(view)


def _pushed_samples(view: View) -> Iterator[tuple[str, tuple[str, ...], float]]:
    for one in view.pushed:
        for outcome, count in (("sent", one.sent), ("failed", one.failed), ("dropped", one.dropped)):
            yield "gyrostat_alertmanager_alerts", (one.to, outcome), float(count)
        yield "gyrostat_alertmanager_waiting", (one.to,), float(one.waiting)
    for each in view.exported:
        for outcome, count in (("sent", each.sent), ("failed", each.failed), ("dropped", each.dropped)):
            yield "gyrostat_otlp_items", (each.signal, outcome), float(count)
        yield "gyrostat_otlp_waiting", (each.signal,), float(each.waiting)


def _bill_samples(tally: Tally) -> Iterator[tuple[str, tuple[str, ...], float]]:
    if tally.began:
        yield "gyrostat_first_record_timestamp_seconds", (), tally.began
    sent = sum(n for (remedy, state), n in tally.actions.items() if state == "sent" and remedy != "undo")
    yield "gyrostat_interventions", (), float(sent)
    for ended, count in tally.ended.items():
        yield "gyrostat_incidents_ended", ended, float(count)
    yield "gyrostat_steps", (), float(tally.steps)
    yield "gyrostat_steps_lost", (), float(tally.steps_lost)
    yield "gyrostat_lost_seconds", (), tally.seconds_lost


def _expert_samples(experts: Shown) -> Iterator[tuple[str, tuple[str, ...], float]]:
    for layer, loop, found in experts.rows:
        yield "gyrostat_expert_rho_eff", (layer, loop), found.rho_eff
        yield "gyrostat_expert_dead_share", (layer, loop), found.dead_share
    for place, expert in enumerate(experts.fullest, 1):
        for what, value in expert._asdict().items():
            yield "gyrostat_expert_fullest", (str(place), what), float(value)
    if experts.rows:
        yield "gyrostat_experts_hidden", (), float(experts.hidden)


def _journal_samples(view: View) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """The noted head as numbers: as a label, each hash would be a series of its own, for ever."""
    turn, _, digest = view.head.partition(":")
    if turn:
        yield "gyrostat_journal_bytes", (), float(view.journal_bytes)
        yield "gyrostat_journal_turn", (), float(turn)
        for part in range(4):
            yield "gyrostat_journal_hash", (str(part + 1),), float(int(digest[8 * part : 8 * part + 8], 16))


def _rank_samples(view: View) -> Iterator[tuple[str, tuple[str, ...], float]]:
    for rank in view.ranks:
        who = (rank.role, str(rank.rank))
        yield "gyrostat_step", who, float(rank.step)
        yield "gyrostat_last_record_timestamp_seconds", who, rank.at
        for series, value in rank.values.items():
            if math.isfinite(value) and not is_row(series):
                yield "gyrostat_value", (series, *who), value
