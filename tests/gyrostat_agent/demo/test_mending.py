"""Mended: a trio of each scenario that is, and one for each way in which it is not."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import pytest
from run_story import Story, healthy_run
from trio_runs import FAULT, INF, NAN, STEPS, also, case, course, deeds, did_not_live, do, good, tell, went_back

from gyrostat.wire import KnobState
from gyrostat_agent.demo.cases import Deed
from gyrostat_agent.demo.conditions import CONDITIONS
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.mending import _CHECKS, mending
from gyrostat_agent.demo.scenarios import SCENARIOS
from gyrostat_agent.demo.trio import Trio

Change = Callable[[Trio], object]
AFTER = range(FAULT, STEPS + 1)  # the steps from the fault on
ROLLBACK = Deed(2, "rollback", "allow", "done", FAULT + 4, FAULT + 30, FAULT - 5)


class Way(NamedTuple):
    """A change to a scenario's mended trio, and what must be said of it."""

    scenario: str
    words: str
    change: Change

    def trio(self) -> Trio:
        """The trio, changed; a change that makes a new one returns it."""
        made = good(self.scenario)
        changed = self.change(made)
        return changed if isinstance(changed, Trio) else made


def is_late(trio: Trio, steps: int) -> Trio:
    case(trio).fired_step = trio.fault_step + steps
    return trio


def ends(trio: Trio, outcome: str) -> None:
    for deed in deeds(trio):
        deed.outcome = outcome


def turns(trio: Trio, *knobs: str) -> None:
    deeds(trio)[0].knobs = knobs


WAYS = {
    # what must hold in all of them
    "the run dies": Way("nan_data", "still died: out of memory", lambda t: did_not_live(t, "out of memory")),
    "cut short": Way("nan_applied", "came to step 119 of 120", lambda t: course(t).points.pop()),
    "nothing told": Way("clean", "came to step 0 of 120", lambda t: course(t).points.clear()),
    "no incident": Way("nan_crash", "opened no incident", lambda t: course(t).cases.clear()),
    "held": Way("mismatch", "incident i0001 is held", lambda t: setattr(case(t), "state", "held")),
    "stopped": Way("divergence", "incident i0001 is stopped", lambda t: setattr(case(t), "state", "stopped")),
    "another is open": Way("nan_data", "incident i0099 is open",
                           lambda t: setattr(course(also(t, "stall", 90)).cases["i0099"], "state", "open")),
    "it comes back": Way("nan_data", "nonfinite was resolved at step 66, and was back at 86",
                         lambda t: also(t, "nonfinite", 86)),
    "at once": Way("entropy_collapse", "entropy was resolved at step 55, and was back at 55",
                   lambda t: also(t, "entropy", 55)),
    "reward gone": Way("nan_advantage", "the reward was 0.800 before the fault, and 0.700 at best within 15 steps",
                       lambda t: tell(t, AFTER, reward=0.7)),
    "reward back late": Way("nan_advantage", "and 0.640 at best", lambda t: tell(t, range(40, 54), reward=0.0)),
    "reward not told": Way("mismatch", "the reward was nan", lambda t: tell(t, range(1, STEPS + 1), reward=NAN)),
    "reward low at the end": Way("entropy_collapse", "the reward of the last ten steps is 0.895",
                                 lambda t: tell(t, range(STEPS - 9, STEPS + 1), reward=0.895)),
    "reward NaN at the end": Way("expert_imbalance", "the reward of the last ten steps is nan",
                                 lambda t: tell(t, [STEPS], reward=NAN)),
    # what each demands
    "something else done": Way("nan_data", "the item was not passed over", lambda t: do(t, ROLLBACK)),
    "passing over denied": Way("nan_data", "the item was not passed over",
                               lambda t: do(t, Deed(1, "skip_data", "deny"), ROLLBACK)),
    "rolled back for nothing": Way("nan_data", "rollback, though nothing had come back",
                                   lambda t: do(t, *deeds(t), ROLLBACK)),
    "restarted for nothing": Way("nan_data", "restart, though nothing had come back",
                                 lambda t: do(t, *deeds(t), Deed(4, "restart", "allow", "failed"))),
    "two steps late": Way("nan_advantage", "it fired 2 steps after the fault", lambda t: is_late(t, 2)),
    "adv_eps not back": Way("nan_advantage", "adv_eps was 0.0001 before the fault and is 0",
                            lambda t: tell(t, AFTER, adv_eps=0.0)),
    "weights lost": Way("nan_advantage", "a parameter was not finite at step 41",
                        lambda t: tell(t, [41], params_finite=0.0)),
    "weights lost, and undone": Way("nan_advantage", "a parameter was not finite at step 44",
                                    lambda t: went_back(tell(t, [44], params_finite=0.0), 43, 44, params_finite=1.0)),
    "two steps skipped": Way("nan_advantage", "2 steps were lost, with StepGuard on",
                             lambda t: tell(t, [40, 41], applied=False)),
    "two steps undone": Way("nan_advantage", "2 steps were lost", lambda t: went_back(t, 39, 41)),
    **{
        f"{name} not back": Way("nan_loud", f"{name} was", lambda t, name=name: tell(t, AFTER, **{name: 1e3}))  # type: ignore[misc]
        for name in ("lr_scale", "max_grad_norm", "kl_coef", "kl_clamp", "ratio_cap")
    },
    "a knob lower": Way("nan_loud", "kl_clamp was 5 before the fault and is 2", lambda t: tell(t, AFTER, kl_clamp=2.0)),
    "a knob not told": Way("nan_loud", "kl_clamp was 5 before the fault and is nan",
                           lambda t: tell(t, AFTER, kl_clamp=NAN)),
    "no incident in time": Way("divergence", "0 incidents within 3 steps", lambda t: is_late(t, 4)),
    "two incidents": Way("divergence", "2 incidents within 3 steps", lambda t: also(t, "experts", FAULT + 3)),
    "led by another": Way("divergence", "it was led by entropy", lambda t: setattr(case(t), "kind", "entropy")),
    "clipping left off": Way("divergence", "max_grad_norm was 1", lambda t: tell(t, AFTER, max_grad_norm=1e9)),
    "entropy seen late": Way("entropy_collapse", "fired at step 30, and a quarter of the entropy was left at 27",
                             lambda t: tell(t, range(27, 31), entropy_average=0.14)),
    "entropy seen late, no average": Way("entropy_collapse", "a quarter of the entropy was left at 28", lambda t: [
        tell(t, range(28, 31), entropy=0.1), [p.values.pop("entropy_average") for p in course(t).points[20:30]],  # type: ignore[attr-defined]
    ]),
    "entropy stays low": Way("entropy_collapse", "the entropy was not above its floor within 40 steps of step 31",
                             lambda t: tell(t, range(32, 72), entropy_average=0.29)),
    "no floor told": Way("entropy_collapse", "was not above its floor",
                         lambda t: tell(t, range(1, 121), entropy_floor=NAN)),
    "entropy, nothing held": Way("entropy_collapse", "no action held", lambda t: ends(t, "ineffective")),
    "experts uneven": Way("expert_imbalance", "within 25 steps of step 31 rho_eff came to 0.55, 0% dead",
                          lambda t: tell(t, range(1, 121), balance=(0.9, 0.55))),
    "experts dead": Way("expert_imbalance", "10% dead", lambda t: tell(t, range(1, 121), dead=(0.0, 0.1))),
    "experts even late": Way("expert_imbalance", "rho_eff came to",
                             lambda t: tell(t, range(30, 56), balance=(0.5, 0.5))),
    "experts not told": Way("expert_imbalance", "rho_eff came to nan", lambda t: tell(t, range(1, 121), balance=())),
    "experts, nothing held": Way("expert_imbalance", "no action held", lambda t: ends(t, "ineffective")),
    "taken for experts": Way("mismatch", "it was called experts", lambda t: setattr(case(t), "kind", "experts")),
    "router turned": Way("mismatch", "router_aux_coef was turned", lambda t: turns(t, "kl_coef", "router_aux_coef")),
    "inert and not found": Way("inert_knob", "the knob that does nothing was not found", lambda t: ends(t, "done")),
    "inert and nothing done": Way("inert_knob", "the knob that does nothing was not found", lambda t: do(t)),
    "inert and found late": Way("inert_knob", "it was called for at 41 steps before it was found", lambda t: tell(
        setattr(deeds(t)[0], "ended_step", 72) or t, range(32, 73), entropy_average=0.2)),  # type: ignore[func-returns-value]
    "no rung behind": Way("inert_knob", "no action held", lambda t: do(t, *deeds(t)[:2])),
    "the next is inert too": Way("inert_knob", "the entropy was not above its floor within 40 steps of step 40",
                                 lambda t: tell(t, range(40, 121), entropy_average=0.2)),
    "a false alarm": Way("clean", "nothing was wrong, and there was an incident: stall",
                         lambda t: also(t, "stall", 50)),
    # what only seems to hold
    "gone again after going back": Way(
        "nan_applied", "0.000 at best",
        lambda t: tell(do(t, replace(ROLLBACK, back_to=FAULT - 6)), AFTER, reward=0.0)),
    "went back far": Way(
        "divergence", "at best within",
        lambda t: went_back(do(t, replace(ROLLBACK, back_to=FAULT - 12)), FAULT - 12, 44, reward=0.0)),
    "a person was paged": Way(
        "mismatch", "at best within",
        lambda t: tell(do(t, Deed(2, "page", "allow", "done")), AFTER, reward=0.0)),
    "over by itself": Way(
        "mismatch", "at best within", lambda t: tell(do(t), AFTER, reward=0.0)),
    "an endless reward": Way(
        "nan_advantage", "at best within",
        lambda t: tell(tell(t, AFTER, reward=0.0), [45], reward=INF)),
    "alarm before the knob": Way(
        "nan_advantage", "fired at step 5, before the fault",
        lambda t: also(is_late(t, 10), "knobs", 5, first=True)),
    "alarm before the death": Way(
        "divergence", "fired at step 5, before the fault",
        lambda t: also(is_late(t, 10), "knobs", 5, first=True)),
    "another alarm before": Way(
        "entropy_collapse", "a quarter of the entropy was left at 20",
        lambda t: [also(t, "stall", 5, first=True), tell(t, range(20, 31), entropy_average=0.1)]),
    "entropy seen as it goes": Way(
        "entropy_collapse", "a quarter of the entropy was left at 30", lambda t: tell(t, [30], entropy_average=0.1)),
    "entropy gone, and undone": Way(
        "entropy_collapse", "a quarter of the entropy was left at 20",
        lambda t: went_back(tell(t, range(20, 31), entropy_average=0.1), 15, 35, entropy_average=0.5)),
    "passing over failed": Way(
        "nan_data", "the item was not passed over", lambda t: ends(t, "failed")),
    "never went back": Way(
        "nan_applied", "no rollback or restart held",
        lambda t: do(t, Deed(1, "turn", "allow", "done", FAULT + 2, FAULT + 25))),
    "never started anew": Way(
        "nan_crash", "no restart or rollback held",
        lambda t: do(t, Deed(1, "turn", "allow", "done", FAULT + 2, FAULT + 25))),
    "left lower, told again": Way(
        "nan_loud", "max_grad_norm was 1",
        lambda t: went_back(t, FAULT - 5, 44, max_grad_norm=0.5)),
    "back by another name": Way(
        "divergence", "and was back at 70", lambda t: also(t, "nonfinite", 70)),
    "mismatch, never started anew": Way("mismatch", "no restart held",
                                        lambda t: do(t, Deed(1, "turn", "allow", "done", FAULT + 2, FAULT + 25))),
}  # fmt: skip

NO_HARM = {
    "back after 21 steps": Way("nan_data", "", lambda t: also(t, "nonfinite", 87)),
    "another kind soon": Way("nan_data", "", lambda t: also(t, "stall", 70)),
    "reward a little less": Way("nan_advantage", "", lambda t: tell(t, AFTER, reward=0.76)),
    "reward back in time": Way("nan_advantage", "", lambda t: tell(t, range(40, 53), reward=0.0)),
    "it came back, so back": Way("nan_data", "",
                                 lambda t: do(t, Deed(1, "skip_data", "allow", "ineffective", 42, 44), ROLLBACK)),
    "one step lost": Way("nan_advantage", "", lambda t: tell(t, [40], applied=False)),
    "the next step": Way("nan_advantage", "", lambda t: is_late(t, 1)),
    "a lower rate": Way("nan_loud", "", lambda t: tell(t, AFTER, lr_scale=0.5)),
    "led by the knob": Way("divergence", "", lambda t: setattr(case(t), "kind", "knobs")),
    "third step": Way("divergence", "", lambda t: is_late(t, 3)),
    "back at the last step": Way("entropy_collapse", "", lambda t: tell(t, range(32, 71), entropy_average=0.2)),
    "not called for while above": Way("inert_knob", "", lambda t: tell(
        setattr(deeds(t)[0], "ended_step", 72) or t, range(42, 121), entropy_average=0.31)),  # type: ignore[func-returns-value]
    "even at the last step": Way("expert_imbalance", "", lambda t: tell(t, range(30, 52), balance=(0.5, 0.5))),
    "high enough": Way("expert_imbalance", "", lambda t: tell(t, range(100, 121), reward=0.9)),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_as_it_should_be_is_mended(name: str) -> None:
    """Every scenario has a way to be mended, and it is told by what was done."""
    judged = mending(good(name))
    done = [d for d in course(good(name)).deeds if d.outcome == "done" and d.remedy != "undo"]
    assert judged.mended, judged.why
    assert judged.why == (
        " and ".join(f"{d.remedy} at step {d.applied_step}" for d in done) or "no incident, no action"
    )


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_is_not_mended_is_not_called_so(way: Way) -> None:
    """The reason names what did not hold, for it is all that the table of misses shows."""
    judged = mending(way.trio())
    assert not judged.mended
    assert way.words in judged.why


def test_a_nan_behind_the_action_does_not_hide_a_reward_that_is_back() -> None:
    """One step without a reward, and fourteen with all of it."""
    assert mending(tell(good("nan_data"), [43], reward=NAN)).mended


@pytest.mark.parametrize("way", NO_HARM.values(), ids=NO_HARM)
def test_what_just_holds_is_mended(way: Way) -> None:
    """The limits are those of the definition, not a step less."""
    assert mending(way.trio()).mended, mending(way.trio()).why


JUDGES = [*(("", check) for check in _CHECKS), *((n, c) for n, found in CONDITIONS.items() for c in found)]


@pytest.mark.parametrize(("name", "judge"), JUDGES, ids=[f"{n}{getattr(j, 'func', j).__name__}" for n, j in JUDGES])
def test_nothing_is_asked_in_vain(name: str, judge: Callable[[Trio], str]) -> None:
    """Each check and each condition is what fails some trio of these; one that fails none proves nothing."""
    trios = [way.trio() for way in WAYS.values() if name in ("", way.scenario)]
    asked = [[*_CHECKS, *CONDITIONS.get(t.scenario.name, ())] for t in trios]
    first = [next(j for j in found if j(t)) for t, found in zip(trios, asked, strict=True)]
    assert judge in first


def test_every_scenario_that_demands_something_has_a_condition() -> None:
    """Conditions are for scenarios that there are."""
    assert set(CONDITIONS) <= set(SCENARIOS)
    assert all(CONDITIONS.values()) and list(chain.from_iterable(CONDITIONS.values()))


# -- what was done, as the entries tell it -------------------------------------------------------------------


def done_in(story: Story) -> list[tuple[str, int, int, int, tuple[str, ...]]]:
    """Remedy, step applied, step gone back to, step from which it can be seen, and knobs, of what was applied."""
    told = Course()
    told.take(story.entries)
    return [(d.remedy, d.applied_step, d.back_to, d.landed, d.knobs) for d in told.deeds if d.applied_step >= 0]


def test_a_rollback_lands_where_it_went_back_to() -> None:
    """The fifteen steps in which reward must be back are counted from there."""
    story = healthy_run()
    story.applied(21)
    story.ack(step=22)
    assert done_in(story) == [("rollback", 22, 15, 15, ())]


def test_a_restart_lands_where_it_was_started_from() -> None:
    """The new trainer's answer names the step alone."""
    story = healthy_run().supervisor()
    story.skipped(21)
    story.died()
    assert story.action.remedy == "restart"
    story.restarted("life-b")
    assert done_in(story) == [("restart", 15, 15, 15, ())]


def test_a_turned_knob_lands_where_it_was_turned() -> None:
    """Its names are those of the directive, and it ends when it is judged."""
    story = Story().begin(knobs=(KnobState("eps", 1e-4, 0.0, 1.0, None),))
    for step in range(1, 21):
        story.step(step, eps=1e-4)
    story.skipped(21, eps=0.0)
    story.ack(step=22)
    for step in range(22, 33):
        story.step(step, eps=1e-4)
    assert done_in(story) == [("put_back", 22, -1, 22, ("eps",))]
    told = Course()
    told.take(story.entries)
    assert [(d.outcome, d.ended_step) for d in told.deeds] == [("done", story.incident.resolved_step)]
