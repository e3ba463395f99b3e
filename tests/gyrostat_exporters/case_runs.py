"""States with an incident in each of its states, and rules that say what it is, for whoever is told of them."""

from typing import Any

from gyrostat_exporters.cases import Case, Endings, cases
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.pack import Rule
from gyrostat_rules.state import Action, Alert, Incident, Process, State

NOW = 5000.0
POISON = Rule(
    "Poison", "nonfinite", None, "critical", labels={"team": "rl"}, annotations={"summary": "{role} {rank} at {step}"},
    runbook_url="nonfinite", fault="nan_inf", incident="nonfinite",
)  # fmt: skip
LONE = Rule("Lone", "level", None, "critical", runbook_url="https://wiki/lone", fault="odd")
RULES = {rule.alert: rule for rule in (POISON, LONE, Rule("Warns", "level", None, "warning"))}
KEY = "Poison{rank=0,role=trainer}"


def alert(rule: str = "Poison", state: str = "firing", incident: str = "i0001") -> Alert:
    labels = {"role": "trainer", "rank": "0"}
    return Alert(rule, labels, state, 9, 900.0, 9, 10, 1.0, "loss is nan", incident=incident)


def incident(state: str, **changed: Any) -> Incident:
    made = Incident("i0001", "nonfinite", state, 9, 9, 900.0, [KEY], 10, why="it is", leader="Poison", life="aaa")
    for name, value in changed.items():
        setattr(made, name, value)
    return made


def run(*incidents: Incident, life: str = "aaa", step: int = 12, **alerts: Alert) -> State:
    """A run whose trainer lives as ``life``, at a step."""
    state = State(run="r", step=step)
    state.processes["trainer/0"] = Process("trainer", 0, life, last_step=step)
    state.incidents = list(incidents)
    state.alerts = {
        KEY if name == "poison" else f"{one.rule}{{rank=0,role=trainer}}": one for name, one in alerts.items()
    }
    return state


def ended(subject: str, at: float = 4990.0, kind: str = EntryKind.INCIDENT, state: str = "resolved") -> Entry:
    data = {"labels": {"role": "trainer", "rank": "0"}, "summary": "was odd"}
    return Entry("1.0", at, 12, kind, subject, state, "it is over", data)


def told(state: State, *entries: Entry, now: float = NOW) -> tuple[Case, ...]:
    endings = Endings()
    endings.hear(entries)
    return cases(state, RULES, endings, now)


def action(verdict: str = "", **changed: Any) -> Action:
    made = Action("i0001.1", "i0001", 0, "rollback", 5, verdict, "needs approval", explanation="to step 5")
    for name, value in changed.items():
        setattr(made, name, value)
    return made
