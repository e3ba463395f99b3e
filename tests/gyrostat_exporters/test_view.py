"""A view: what can be shown of a run at one moment, bounded, and not changed any more."""

import pytest
from exported_runs import INF, NAN, action, full_state, full_view, incident, record, stale_state

from gyrostat_exporters.view import Tally, view
from gyrostat_rules.state import Process, Window


def test_what_is_shown_of_a_run() -> None:
    """The newest values of each rank, open incidents by kind and state, alerts with their severity."""
    shown = full_view()
    assert [(r.role, r.rank, r.step) for r in shown.ranks] == [("trainer", 0, 5), ("trainer", 1, 5)]
    assert shown.ranks[0].values["reward"] == 0.25
    assert shown.incidents == (("nonfinite", "acting"),) and shown.incident_count == 2
    assert shown.alerts == (("A", "critical", "firing"),)
    assert shown.blind == ()


def test_an_incident_that_was_given_up_goes_on_while_its_alert_fires() -> None:
    """Every rung tried, a person needed: shown until the trouble is gone."""
    state = full_state()
    state.incidents = [incident("i0001", "stopped")]
    assert view(state, Tally(), {}, ()).incidents == (("nonfinite", "stopped"),)
    state.alerts.clear()
    assert view(state, Tally(), {}, ()).incidents == ()


def test_a_source_that_is_not_understood_is_blindness() -> None:
    """A foreign file is said beside what the agent knows itself; damage that was passed over is no blindness."""
    assert view(stale_state(), Tally(), {}, ["no trainer"]).blind == ("no trainer", "a: version 9")


@pytest.mark.parametrize("value, word", [(NAN, "nan"), (INF, "inf"), (-INF, "-inf")], ids=["nan", "inf", "-inf"])
def test_nonfinite_values_are_counted_by_their_word(value: float, word: str) -> None:
    """Each value that is not finite counts once, under its series, rank and word; finite ones do not."""
    tally = Tally()
    tally.count([record(1, rank=3, loss=value, reward=0.5), record(2, rank=3, loss=value)], [])
    assert dict(tally.nonfinite) == {("trainer", "3", "loss", word): 2} and tally.records == 2


def test_actions_are_counted_by_what_came_of_them() -> None:
    """Sent and outcomes count; a plan that was never sent does not."""
    tally = Tally()
    tally.count([], [action(s) for s in ("planned", "sent", "applied", "ineffective", "hold")])
    assert dict(tally.actions) == {("rollback", "sent"): 1, ("rollback", "ineffective"): 1}


def test_a_view_does_not_change_behind_its_reader() -> None:
    """The server's thread reads it while the loop goes on counting."""
    tally = Tally()
    shown = view(full_state(), tally, {}, ())
    tally.count([record(1, loss=NAN)], [action("sent")])
    assert shown.tally.records == 0 and not shown.tally.nonfinite and not shown.tally.actions


def test_names_made_anew_each_step_do_not_fill_the_page() -> None:
    """64 series a rank and 64 processes are shown; the rest is counted as cut."""
    state = full_state()
    state.windows["trainer/0"] = {f"s{i:03d}": Window([1], [1.0]) for i in range(70)}
    for rank in range(2, 70):
        state.processes[f"trainer/{rank}"] = Process("trainer", rank)
    shown = view(state, Tally(), {}, ())
    assert (len(shown.ranks), len(shown.ranks[0].values), shown.cut) == (64, 64, 6 + 6)
