"""What came of a would-be action: real journals of an agent in mode shadow, and each way in which one is judged."""

from collections.abc import Callable

import pytest
from shadow_runs import POISON, Shadowed

from gyrostat.wire import Record
from gyrostat_agent.journal import Journal
from gyrostat_agent.journal.retention import Retention
from gyrostat_agent.shadow.occasion import Verdict, saved, thrown_away
from gyrostat_agent.shadow.watch import Watch
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Batch, Tick
from gyrostat_rules.snapshot import to_plain
from gyrostat_rules.state import Incident

Make = Callable[..., Shadowed]


def test_what_comes_back_by_itself_is_a_miss(make: Make) -> None:
    """One poisoned update, and the run was fine: acting would have thrown eleven steps away."""
    one = make().ill().well(40).end().occasion()
    assert (one.verdict, one.rule, one.remedy, one.step) == (Verdict.MISS, POISON, "rollback", 21)
    assert "over by itself" in one.why and thrown_away(one) == 11 and saved(one) is None


def test_what_stays_bad_is_a_hit(make: Make) -> None:
    """Fifty steps later it is still not finite; what that cost nobody can say."""
    one = make().ill(52).end().occasion()
    assert (one.verdict, one.why) == (Verdict.HIT, "still bad 50 steps later") and saved(one) is None


@pytest.mark.parametrize("bad, verdict", [(10, Verdict.HIT), (9, Verdict.MISS)], ids=["ten steps", "nine"])
def test_the_steps_to_come_back_are_counted(make: Make, bad: int, verdict: str) -> None:
    """Nine steps to come back: bad at the tenth is a hit, well at it a miss."""
    assert make().ill(bad).well(40).end().occasion(within=9).verdict == verdict


def test_a_run_that_dies_is_a_hit(make: Make) -> None:
    """Thirty steps lost, eleven that going back would have cost: nineteen saved."""
    one = make().ill(31).ends(1).end().occasion()
    assert one.verdict == Verdict.HIT and "the run died: trainer 0 ended: exit 1" in one.why
    assert (one.to_death, one.cost, saved(one)) == (30, 11, 19)


def test_a_death_behind_the_steps_to_come_back_counts_no_more(make: Make) -> None:
    """What had been decided stays so."""
    assert make().ill().well(40).ends(1).end().occasion().verdict == Verdict.MISS


def test_a_death_in_the_middle_counts(make: Make) -> None:
    """Well again for five steps and then dead is not fine."""
    assert make().ill().well(5).ends(-9).end().occasion().verdict == Verdict.HIT


@pytest.mark.parametrize("status", [0, -15, 1], ids=["exit 0", "SIGTERM", "exit 1"])
def test_a_person_who_stops_it_is_a_hit(make: Make, status: int) -> None:
    """An end that a signal to the supervisor asked for is somebody's hand."""
    one = make().ill(3).ends(status, asked=True).end().occasion()
    assert one.verdict == Verdict.HIT and "a person stopped the run" in one.why and one.to_death is None


def test_a_person_who_begins_it_again_is_a_hit(make: Make) -> None:
    """Without a supervisor all there is to see is a new life that nobody ordered."""
    one = make().ill(3).begins(10).well(5).end().occasion()
    assert (one.verdict, one.why) == (Verdict.HIT, "a person intervened: the run was begun again by hand")


def test_a_person_who_goes_back_is_a_hit(make: Make) -> None:
    """``gyrostat checkpoints rollback`` while it was bad."""
    one = make().ill(3).says("rollback", to="10").end().occasion()
    assert one.verdict == Verdict.HIT and "Ada asked to go back to step 10" in one.why


def test_a_person_who_turns_a_knob_is_a_hit(make: Make) -> None:
    """A learning rate that leaps and that nobody told to."""
    run = make(last=0)
    for _ in range(20):
        run.tell(lr=1e-5)
    run.ill()
    for _ in range(11):
        run.tell(lr=1e-5)
    run.tell(lr=1e-3)
    one = next(o for o in run.end().read().occasions if o.rule == POISON)
    assert (one.verdict, one.why) == (Verdict.HIT, "a person intervened: lr was turned by hand")


def test_a_knob_that_was_the_cause_is_nobodys_answer(make: Make) -> None:
    """Turned before it broke, it leads the incident; it says nothing of whether acting was called for."""
    run = make(last=0)
    for _ in range(20):
        run.tell(lr=1e-5)
    run.tell(lr=1e-3)
    run.tell(float("nan"), lr=1e-3)
    run.tell(lr=1e-3)
    (one,) = run.end().read().occasions
    assert (one.rule, one.verdict) == ("KnobDrift", Verdict.UNDECIDED)


def test_a_person_who_approves_is_a_hit(make: Make) -> None:
    """In shadow nothing comes of it, but somebody has looked and wanted it."""
    one = make().ill().says("approve", action="i0001.2").well(40).end().occasion()
    assert one.verdict == Verdict.HIT and "Ada approved i0001.2" in one.why


def test_a_word_for_nothing_is_none(make: Make) -> None:
    """An approval that was refused says nothing."""
    assert make().ill().says("approve", action="i0001.7").well(40).end().occasion().verdict == Verdict.MISS


@pytest.mark.parametrize("well, verdict", [(60, Verdict.MISS), (5, Verdict.UNDECIDED)])
def test_a_person_who_denies_decides_nothing(make: Make, well: int, verdict: str) -> None:
    """A no is no proof that it was called for: what comes of the run decides, as if nothing had been said."""
    assert make().ill().says("deny", action="i0001.2").well(well).end().occasion(within=30).verdict == verdict


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_pause_is_no_intervention(make: Make, verb: str) -> None:
    """It touches the agent and not the run."""
    assert make().ill().says(verb).well(40).end().occasion().verdict == Verdict.MISS


def test_too_young_is_undecided(make: Make) -> None:
    """Ten steps later nobody knows."""
    one = make().ill().well(10).end().occasion()
    assert one.verdict == Verdict.UNDECIDED and "the journal ends 10 steps later" in one.why


def test_a_run_that_ends_in_order_is_undecided(make: Make) -> None:
    """Its last steps were bad, and then it was through."""
    run = make().ill(3)
    run.bench.telemetry.close()
    run.look()
    one = run.end().occasion()
    assert one.verdict == Verdict.UNDECIDED and "the run ended 2 steps later" in one.why


def test_many_rungs_are_one_occasion(make: Make) -> None:
    """The incident is what is judged, not each line that it filled."""
    run = make().ill(3)
    run.bench.verdicts.tell("/c/15", 15)
    run.look()
    assert len(run.ill(60).end().read().occasions) == 1


def test_observe_is_evidence_too(make: Make) -> None:
    """It decides as shadow does, and does nothing either."""
    chronicle = make(mode="observe").ill().well(40).end().read()
    assert [one.verdict for one in chronicle.occasions] == [Verdict.MISS] and chronicle.mode == "observe"


def test_what_was_done_is_no_evidence(make: Make) -> None:
    """In mode act nobody can say how the run would have fared without."""
    one = make(mode="act").ill().well(40).end().occasion()
    assert (one.verdict, one.why) == (Verdict.ACTED, "rollback was done")


def test_a_paused_agent_would_have_done_nothing(make: Make) -> None:
    """Who pauses it has said so: no occasion."""
    assert make().says("pause").ill().well(40).end().read().occasions == ()


def test_healthy_steps_are_those_without_an_incident(make: Make) -> None:
    """Twenty before; not the bad one and the nineteen in which it was not over yet; twenty-one from its end on."""
    chronicle = make().ill().well(40).end().read()
    assert (chronicle.steps, chronicle.healthy) == (61, 20 + 21)


def test_a_quiet_run_is_healthy_throughout(make: Make) -> None:
    """Nothing was wrong, and nothing would have been done."""
    chronicle = make(last=60).end().read()
    assert (chronicle.steps, chronicle.healthy, chronicle.occasions) == (60, 60, ())


def test_an_agent_that_is_begun_again_forgets_nothing(make: Make) -> None:
    """One journal, two lives of the agent: one occasion, judged behind the second's start."""
    assert make().ill().well(3).again().well(40).end().occasion().verdict == Verdict.MISS


def test_inputs_that_were_let_go_change_no_judgement(make: Make) -> None:
    """A journal that keeps decisions and not every record judges alike; of steps it counts no more than there were."""
    run = make(pace=0.5).again(snapshot_turns=20).well(100).ill().well(280).end()
    whole = run.read()
    journal = Journal(run.journal)
    gone = Retention(journal, 0.0, 0).finish(run.bench.now).turns
    journal.close()
    rest = run.read()
    assert gone > 20 and 250 < rest.healthy < whole.healthy
    assert rest.occasions == whole.occasions and [one.verdict for one in rest.occasions] == [Verdict.MISS]


# -- a run that stands still --------------------------------------------------------------------------


def entry(
    kind: str, subject: str, state: str, text: str = "", step: int = 10, at: float = 0.0, **data: object
) -> Entry:
    """An entry as a journal gives it."""
    return Entry("1.0", at, step, kind, subject, state, text, data)


def stalled() -> Watch:
    """Ten steps, one a second, and then silence, for which a restart would have been ordered at 100 s."""
    watch, key = Watch(), "TrainerStalled{rank=0,role=trainer}"
    for step in range(1, 11):
        watch.turn(Batch(float(step), (Record("trainer", 0, "a", 0, step, step, float(step), {}),)), ())
    watch.turn(
        Tick(100.0),
        [
            entry("alert", key, "firing"),
            entry("incident", "i0001", "open", alerts=[key], incident_kind="stall"),
            entry("action", "i0001.1", "hold", "restart hold: mode is shadow", at=100.0, incident="i0001",
                  remedy="restart"),
        ],
    )  # fmt: skip
    return watch


@pytest.mark.parametrize("at, verdict", [(149.0, Verdict.HIT), (140.0, Verdict.UNDECIDED)], ids=["as long", "shorter"])
def test_standing_still_is_bad_for_as_long_as_the_steps_take(at: float, verdict: str) -> None:
    """A run that hangs tells no steps: at its own pace of 0.9 s, fifty of them are 45 s."""
    watch = stalled()
    watch.turn(Tick(at), ())
    (one,) = watch.close()
    assert one.verdict == verdict


def test_a_knob_that_the_agent_saw_turned_mid_incident_is_a_hit() -> None:
    """What the agent itself has noted as somebody's hand."""
    watch = stalled()
    watch.turn(Tick(101.0), [entry("run", "trainer/0", "turned", knob="lr_scale", value=0.5, found=1.0)])
    assert [one.why for one in watch.close()] == ["a person intervened: lr_scale was turned by hand"]


def test_going_on_by_itself_is_a_miss() -> None:
    """The stall ended, and twenty clean steps closed it."""
    watch = stalled()
    watch.turn(Tick(110.0), [entry("alert", "TrainerStalled{rank=0,role=trainer}", "resolved", step=11)])
    over = entry("incident", "i0001", "resolved", "stall: over by itself", step=31, incident_kind="stall")
    watch.turn(Tick(140.0), [over])
    assert [one.verdict for one in watch.close()] == [Verdict.MISS]


# -- an incident that an older pod opened -------------------------------------------------------------


def test_what_a_ledger_brings_is_led_by_its_rule() -> None:
    """Its first entries are lost with the old pod's journal; who leads it stands in the ledger."""
    poison = f"{POISON}{{rank=0,role=trainer}}"
    old = Incident("i0007", "nonfinite", "held", 5, 5, 0.0, [poison], 5, leader=POISON)
    watch = Watch()
    watch.course.take_ledger({"incidents": to_plain([old])})
    watch.turn(Tick(1.0), [entry("action", "i0007.3", "hold", "rollback hold: mode is shadow", incident="i0007",
                                 remedy="rollback")])  # fmt: skip
    assert [(one.rule, one.cost) for one in watch.close()] == [(POISON, None)]


@pytest.mark.parametrize("odd", [{}, {"incidents": 5}, {"incidents": [["x"]]}, {"incidents": [{}]}], ids=str)
def test_a_ledger_that_cannot_be_read_brings_nothing(odd: dict[str, object]) -> None:
    """The agent did not believe it either."""
    watch = Watch()
    watch.course.take_ledger(odd)
    assert watch.course.incidents == {} or all(not led.rule for led in watch.course.incidents.values())


def test_a_graver_alert_that_leads_is_who_would_have_acted() -> None:
    """The evidence is of the rule that leads when the action is held, not of the one that fired first."""
    watch, first, graver = Watch(), "EntropyCollapsed{rank=0,role=trainer}", f"{POISON}{{rank=0,role=trainer}}"
    watch.turn(
        Tick(1.0),
        [
            entry("incident", "i0001", "open", alerts=[first], incident_kind="entropy"),
            entry("incident", "i0001", "open", f"{graver} leads: loss is nan", incident_kind="nonfinite"),
            entry("action", "i0001.1", "hold", "rollback hold: mode is shadow", incident="i0001", remedy="rollback"),
        ],
    )
    assert [(one.rule, one.kind) for one in watch.close()] == [(POISON, "nonfinite")]
