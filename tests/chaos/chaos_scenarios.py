"""Scenarios: one for each way in which a run gets into trouble, with the settings under which people run it."""

from typing import NamedTuple

from chaos_deaths import Blow
from chaos_trainer import Plan


class Scenario(NamedTuple):
    """What befalls the run, and under which settings.

    ``person``: approves, denies, approves "too late" or '' (never comes). ``ledger``: what becomes of the ledger in
    round ``ledger_at``, while no agent lives: absent, older, newer, damaged or another's.
    """

    name: str
    plan: Plan = Plan()
    mode: str = "act"
    approvals: bool = False
    person: str = ""
    pack: str = "core"
    supervisor: bool = True
    relaunch: int = 3  # rounds after which something else (torchrun) starts a dead trainer again; 0: nothing does
    pause: tuple[int, int] = (0, 0)  # rounds at which a person pauses and resumes
    foreign_at: int = 0  # round at which a file of another wire version turns up
    pod_lost_at: int = 0  # round at which the pod goes, and the run directory with it
    agent_every: int = 1  # rounds between two passes of the agent
    rounds: int = 20
    ledger: str = ""
    ledger_at: int = 0
    silence: tuple[int, float] = (0, 0.0)  # round in which a person silences everything, and for how many seconds
    expires: bool = False  # after the rounds so much time goes by that whatever waits has waited too long


class Schedule(NamedTuple):
    """A scenario and the blows that fall in it."""

    scenario: Scenario
    blows: tuple[Blow, ...] = ()


_APPLIED = Plan(guard=False, poison_items=(4,))
_KNOB = Plan(guard=False, poison_from_step=5)

SCENARIOS = (
    Scenario("healthy", rounds=5),
    Scenario("one bad row, tried again", Plan(poison_once=(4,)), rounds=7),
    Scenario("a poisoned item, skipped", Plan(poison_items=(4,)), rounds=11),
    Scenario("a poisoned item, applied", _APPLIED, rounds=10),
    Scenario("sampling dies of it", _APPLIED._replace(sampling_fails=True), rounds=11),
    Scenario("poison after every rollback", _KNOB, rounds=14),
    Scenario("a bad knob", _KNOB._replace(harmless_after_turn=True), pack="knob first", rounds=13),
    Scenario("restart of a living trainer", _APPLIED, pack="restart first", rounds=11),
    Scenario("restart of a dead one", Plan(exit_at=6), pack="restart after death", rounds=11),
    Scenario("a death without a word", Plan(exit_at=6), rounds=11),
    Scenario("a death without a supervisor", _APPLIED._replace(exit_at=6), supervisor=False, rounds=12),
    Scenario("silence", Plan(silent_at=5), rounds=6),
    Scenario("a person turns the knob", _KNOB._replace(turned_at=6), pack="knob first", rounds=10),
    Scenario("a procedure that raises", _APPLIED._replace(raises=("rollback",)), rounds=10),
    Scenario("an answer that never comes", _APPLIED._replace(stopped_in_ack=True, stopped_rounds=12), rounds=10),
    Scenario("stopped until it has expired", _APPLIED._replace(stopped_at=5, stopped_rounds=8), rounds=16),
    Scenario("observed", _APPLIED, mode="observe", rounds=8),
    Scenario("in shadow", Plan(poison_items=(4,)), mode="shadow", rounds=9),
    Scenario("paused and resumed", _APPLIED, pause=(4, 9), rounds=13),
    Scenario("approved", _APPLIED, approvals=True, person="approves", rounds=11),
    Scenario("denied", _APPLIED, approvals=True, person="denies", rounds=8),
    Scenario("nobody answers", _APPLIED, approvals=True, rounds=7),
    Scenario("budget of one", _KNOB, pack="one action", rounds=11),
    Scenario("ceiling of one", Plan(poison_items=(4, 9)), pack="one incident", rounds=18),
    Scenario("long cooldown", _APPLIED._replace(poison_items=(4, 12)), pack="long cooldown", rounds=18),
    Scenario("while a checkpoint is written", _APPLIED._replace(busy=True), rounds=10),
    Scenario("another wire version", _APPLIED, foreign_at=3, rounds=8),
    Scenario("while weights are on their way", _APPLIED._replace(syncing=True), rounds=8),
    Scenario("approved too late", _APPLIED, approvals=True, person="too late", expires=True, rounds=7),
    Scenario("silenced for a while", _APPLIED, silence=(3, 4.5), rounds=11),
    Scenario("each rung once", Plan(guard=False, poison_items=(4, 14)), pack="each rung once", rounds=18),
    Scenario("standstill of one", Plan(poison_items=(4, 9)), pack="standstill of one", rounds=12),
    Scenario("more would be lost than may be", _APPLIED, pack="no step lost", person="approves", rounds=9),
    Scenario(
        "paused and silenced, and the pod goes", _APPLIED, pause=(4, 9), silence=(3, 7.5), pod_lost_at=6, rounds=11
    ),
    Scenario("a ledger that is damaged", _APPLIED, ledger="damaged", ledger_at=6, rounds=7),
    Scenario("a ledger that is older", _APPLIED, ledger="older", ledger_at=7, rounds=8),
    Scenario("a ledger that is newer", _APPLIED, ledger="newer", ledger_at=6, pod_lost_at=6, rounds=8),
    Scenario("a ledger damaged as the pod goes", _APPLIED, ledger="damaged", ledger_at=7, pod_lost_at=7, rounds=9),
    Scenario("a ledger that went with the pod", _APPLIED, ledger="absent", ledger_at=8, pod_lost_at=8, rounds=10),
    Scenario("a ledger of another run", _APPLIED, ledger="another's", ledger_at=6, pod_lost_at=6, rounds=9),
    Scenario("the pod goes", _APPLIED, pod_lost_at=9, rounds=14),
    Scenario("the pod goes, approvals on", _APPLIED, approvals=True, person="approves", pod_lost_at=6, rounds=14),
)
BY_NAME = {s.name: s for s in SCENARIOS}
