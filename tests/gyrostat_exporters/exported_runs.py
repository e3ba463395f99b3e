"""A run's state with something of everything in it, for exporters to show."""

from collections import Counter
from dataclasses import replace

from gyrostat.wire import ExpertLoad, Record
from gyrostat_exporters.fellows import Fellows
from gyrostat_exporters.view import Exported, Pushed, Tally, View, view
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.state import Alert, Incident, Process, State, Window
from gyrostat_rules.theirs import Silence

EXPORTED = (Exported("c:4318", "logs", sent=9, failed=2, dropped=1, waiting=3, fault="down"),)
NAN, INF = float("nan"), float("inf")
LOAD = ExpertLoad(2, 1, 4, (250, 250, 250, 250, 1000, 0, 0, 0))
SILENCE = Silence("s0001", ("alert=A",), 1000.0, 9000.0, "ada", "new nodes", True)
PACK = """
pack: mine
groups:
  - name: mine
    rules:
      - {alert: RewardGone, detector: drop, with: {series: [reward]}, severity: warning}
      - {alert: Mismatch, detector: level, with: {series: [mismatch_kl, kl], above: 1}, severity: warning}
"""


def record(step: int, rank: int = 0, **values: float) -> Record:
    return Record("trainer", rank, "0123456789ab", 0, step, step, 1000.0 + step, values)


def action(state: str) -> Entry:
    return Entry("1.0", 0.0, 5, EntryKind.ACTION, "i0001.1", state, "", {"remedy": "rollback"})


def bill(state: str, steps: int = 3, seconds: float | None = 12.5) -> Entry:
    lost = {"steps": steps, "seconds": seconds}
    return Entry("1.1", 0.0, 5, EntryKind.BILL, "i0001", state, "", {"incident_kind": "nonfinite", "lost": lost})


def full_state() -> State:
    """Two ranks, a firing alert, an open and a resolved incident."""
    state = State(run="r", step=5, segment=1, incident_count=2, pack_text=PACK)
    for rank in (0, 1):
        state.processes[f"trainer/{rank}"] = Process("trainer", rank, last_step=5, last_at=1005.0)
    state.windows["trainer/0"] = {"loss": Window([4, 5], [0.5, NAN]), "reward": Window([5], [0.25])}
    state.alerts["A"] = Alert("A", {}, "firing", 5, 0.0, 5, 5, NAN, "")
    state.incidents = [incident("i0001", "resolved"), incident("i0002", "acting")]
    state.silences = {"s0001": SILENCE, "s0002": replace(SILENCE, id="s0002", begun=False)}
    state.settings.armed = {"A": "19 hits of 20; by Ada"}
    return state


def incident(name: str, state: str) -> Incident:
    return Incident(name, "nonfinite", state, 5, 5, 0.0, ["A"], 5)


def full_view(*blind: str) -> View:
    tally = Tally(turns=7, missing=2, damaged=1, requests=Counter(unauthorized=3))
    told = [record(4, loss=0.5), record(5, loss=NAN, grad_norm=-INF)._replace(load=LOAD)]
    tally.count(told, [action("sent"), action("done"), bill("resolved")])
    return view(full_state(), tally, {"A": "critical"}, blind)


def long_state() -> State:
    """The same, with 20 steps told: what the trainer tells is known."""
    state = full_state()
    state.windows["trainer/1"] = {"loss": Window(list(range(20)), [0.5] * 20)}
    return state


def long_view() -> View:
    head = "256:" + "00000001000000ff0000ffffffffffff"
    pushed = (Pushed("am:9093", sent=5, failed=2, dropped=1, waiting=3),)
    off = view(long_state(), Tally(), {}, ()).off
    fellows = Fellows("node-0", "node-0", True, 3, heard=6, missing=1, sent=5, dropped=2, waiting=4, refused=8)
    return full_view()._replace(
        off=off, head=head, journal_bytes=4096, pushed=pushed, exported=EXPORTED, fellows=fellows
    )


def stale_state() -> State:
    state = full_state()
    state.sources = {"a": [SourceWord.FOREIGN, "version 9"], "b": [SourceWord.DAMAGED, "passed over"]}
    return state
