"""A view: what can be shown of a run at one moment, bounded, and not changed any more."""

import pytest
from exported_runs import INF, NAN, action, full_state, full_view, incident, long_state, record, stale_state

from gyrostat_exporters.view import Tally, view
from gyrostat_rules.remembered import Broken
from gyrostat_rules.state import Process, Window


def test_what_is_shown_of_a_run() -> None:
    """The newest values of each rank, open incidents by kind and state, alerts with their severity."""
    shown = full_view()
    assert [(r.role, r.rank, r.step) for r in shown.ranks] == [("trainer", 0, 5), ("trainer", 1, 5)]
    assert shown.ranks[0].values["reward"] == 0.25
    assert [i[:3] for i in shown.incidents] == [("i0002", "nonfinite", "acting")] and shown.incident_count == 2
    assert shown.alerts == (("A", "critical", "firing"),)
    assert shown.blind == ()


def test_an_incident_that_was_given_up_goes_on_while_its_alert_fires() -> None:
    """Every rung tried, a person needed: shown until the trouble is gone."""
    state = full_state()
    state.incidents = [incident("i0001", "stopped")]
    assert [i[:3] for i in view(state, Tally(), {}, ()).incidents] == [("i0001", "nonfinite", "stopped")]
    state.alerts.clear()
    assert view(state, Tally(), {}, ()).incidents == ()


def test_a_source_that_is_not_understood_is_blindness() -> None:
    """A foreign file is said beside what the agent knows itself; damage that was passed over is no blindness."""
    assert view(stale_state(), Tally(), {}, ["no trainer"]).blind == ("no trainer", "a: version 9")


def test_a_rule_that_throws_is_blindness() -> None:
    """An agent that cannot judge is not ready, and says which rule it is and what it threw."""
    state = full_state()
    state.broken["A"] = Broken(5, "ZeroDivisionError, drop.py:62: float division by zero")
    said = "rule A is broken: ZeroDivisionError, drop.py:62: float division by zero"
    assert view(state, Tally(), {}, ["no trainer"]).blind == ("no trainer", said)


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


def test_rules_that_have_nothing_to_look_at_are_shown() -> None:
    """By name, with what they want, once the trainer has told 20 steps; before, that it is not known."""
    assert view(full_state(), Tally(), {}, ()).off is None
    assert view(long_state(), Tally(), {}, ()).off == (("Mismatch", "mismatch_kl or kl"),)


def test_what_is_off_follows_what_is_told_and_the_pack_in_force() -> None:
    """A series that comes switches its rule on; rules that were taken up since are asked, and none that are gone."""
    state = long_state()
    state.windows["trainer/0"]["actor/kl"] = Window([5], [0.1])
    assert view(state, Tally(), {}, ()).off == ()
    state.pack_text = state.pack_text.replace("Mismatch", "Gone").replace("mismatch_kl, kl", "entropy")
    assert view(state, Tally(), {}, ()).off == (("Gone", "entropy"),)


def test_a_pack_of_another_version_does_not_end_the_view() -> None:
    """The engine has no rules then until it is handed its own; what is shown says no more."""
    state = long_state()
    state.pack_text = "rules: of tomorrow"
    assert view(state, Tally(), {}, ()).off == ()


def test_a_view_does_not_change_behind_its_reader() -> None:
    """The server's thread reads it while the loop goes on counting."""
    tally = Tally()
    shown = view(full_state(), tally, {}, ())
    tally.count([record(1, loss=NAN)], [action("sent")])
    assert shown.tally.records == 0 and not shown.tally.nonfinite and not shown.tally.actions


def test_names_made_anew_each_step_do_not_fill_the_page() -> None:
    """96 series a rank and 64 ranks are shown; the rest is counted as cut."""
    state = full_state()
    state.windows["trainer/0"] = {f"s{i:03d}": Window([1], [1.0]) for i in range(102)}
    for rank in range(2, 70):
        state.processes[f"trainer/{rank}"] = Process("trainer", rank)
    shown = view(state, Tally(), {}, ())
    assert (len(shown.ranks), len(shown.ranks[0].values), shown.cut) == (64, 96, 6 + 6)


def test_many_gpus_do_not_push_the_trainer_out_of_view() -> None:
    """64 ranks of each role, in their order, and the trainer's before all others'; what is cut is counted."""
    state = full_state()
    for role in ("gpu", "host", "rollout", "trainer"):
        for rank in range(100):
            state.processes[f"{role}/{rank}"] = Process(role, rank)
    shown = view(state, Tally(), {}, ())
    places = [(rank.role, rank.rank) for rank in shown.ranks]
    assert places == [(role, rank) for role in ("trainer", "gpu", "host", "rollout") for rank in range(64)]
    assert shown.cut == 4 * 36


def test_roles_made_anew_do_not_fill_the_page() -> None:
    """16 of them are shown; whoever goes on inventing them is counted."""
    state = full_state()
    for number in range(40):
        state.processes[f"r{number}/0"] = Process(f"r{number}", 0)
    shown = view(state, Tally(), {}, ())
    assert [rank.role for rank in shown.ranks[:2]] == ["trainer", "trainer"]
    assert len({rank.role for rank in shown.ranks}) == 16 and shown.cut == 40 - 15
