"""Drafts: the shape of a pack file as pydantic checks it, before it becomes a RulePack.

A draft is what one mapping of the file may hold: its keys, their types and bounds. Defaults are those of the
values in ``pack``. What spans several mappings (names that must exist, a playbook that must be there) is
checked by ``packchecks``. Called by ``packfile`` alone.
"""

import re
from collections.abc import Collection, Iterable
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from gyrostat_rules.causes import KINDS
from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.faults import FAULTS
from gyrostat_rules.lasting import Lasting, lasting
from gyrostat_rules.pack import Effect, Harm, KnobPlan, Playbook, Rule, Rung, Severity
from gyrostat_rules.packerrors import show, suggest
from gyrostat_rules.phases import PHASES
from gyrostat_rules.remedies import REMEDIES

_T = TypeVar("_T")
_SUMMARY = r"([^{}]|\{\{|\}\}|\{[a-z_]+(:\.?[0-9]{0,2}[a-z%]?)?\})*"
_RUNBOOK = r"[A-Za-z0-9][A-Za-z0-9_-]*|https?://\S+"
_LABEL = r"[A-Za-z_][A-Za-z0-9_]*"


def _mistake(what: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("pack", "{what}", {"what": what, "fix": fix})


def _one_of(kind: str, known: Collection[str]) -> AfterValidator:
    """Text that must name something in ``known``."""

    def check(value: str) -> str:
        if value not in known:
            raise _mistake(f"unknown {kind} {show(value)}", suggest(value, known))
        return value

    return AfterValidator(check)


def _listed(known: Collection[str]) -> Any:
    """For the schema: an editor offers these."""
    return Field(json_schema_extra={"enum": list(known)})


def _spelled(what: str, pattern: str, fix: str) -> AfterValidator:
    """Text that is used as a file name, a label or a format later, and must not fail there, at night."""
    matches = re.compile(pattern).fullmatch

    def check(value: str) -> str:
        if not matches(value):
            raise _mistake(f"{show(value)} is no {what}", fix)
        return value

    return AfterValidator(check)


def _long(value: Any) -> Lasting:
    """How long, from text; a NamedTuple is what it becomes."""
    found = lasting(value) if isinstance(value, str) else None
    if found is None:
        raise _mistake(f"{show(value)} says no length of time", "write it as '10 steps', '3 of 5 steps' or '30s'")
    return found


def _several(value: Any) -> Any:
    """One value is a list of one."""
    return (value,) if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Long = Annotated[Lasting, BeforeValidator(_long, json_schema_input_type=str)]
Texts = Annotated[
    tuple[Name, ...], BeforeValidator(_several, json_schema_input_type=str | list[str]), Field(min_length=1)
]
_PHASES = [*PHASES, *(f"not {phase}" for phase in PHASES)]
_SEVERITIES = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)
Phase = Annotated[str, _one_of("phase", _PHASES), _listed(_PHASES)]
Fault = Annotated[str, _one_of("fault", FAULTS), _listed(FAULTS)]
Kind = Annotated[str, _one_of("incident kind", KINDS), _listed(KINDS)]
SeverityWord = Annotated[str, _one_of("severity", _SEVERITIES), _listed(_SEVERITIES)]
Summary = Annotated[
    str, _spelled("sentence", _SUMMARY, "name labels as {role} or {value:.3g}, and write {{ for a brace")
]
Runbook = Annotated[str, _spelled("runbook", _RUNBOOK, "write the page's name without its folder and .md, or a URL")]
LabelName = Annotated[str, _spelled("label name", _LABEL, "use letters, digits and _, and no digit first")]
Some = Annotated[tuple[_T, ...], Field(min_length=1)]


class Draft(BaseModel):
    """Base of all drafts: no key that is not declared, no type that is nearly right."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class KnobDraft(Draft):
    """One of ``times``, ``to``, ``at_least`` and ``at_most``."""

    name: Name
    times: Factor | None = None
    to: Amount | None = None
    at_least: Amount | None = None
    at_most: Amount | None = None
    keep: bool = KnobPlan._field_defaults["keep"]
    then: Amount | None = None


class EffectDraft(Draft):
    """Either ``above`` or ``below``."""

    series: Name
    above: Amount | None = None
    below: Amount | None = None
    within: Positive = Effect._field_defaults["within"]
    when: Annotated[tuple[Name, ...], Field(max_length=2)] = ()


class HarmDraft(Draft):
    """``falls``: a share, 0.1 for a tenth."""

    series: Name
    falls: Annotated[float, Field(gt=0, le=1)]
    over: Annotated[int, Field(ge=3, le=50)] = Harm._field_defaults["over"]


class RungBudgetDraft(Draft):
    """At most ``actions`` in ``steps`` steps; in as many as the playbook's own where none are given."""

    actions: Positive
    steps: Count = Rung._field_defaults["budget_steps"]


class RungDraft(Draft):
    """One remedy."""

    remedy: Annotated[str, _one_of("remedy", REMEDIES), _listed(REMEDIES)]
    horizon: Positive = Rung._field_defaults["horizon"]
    knobs: tuple[KnobDraft, ...] = ()
    settle: Count = Rung._field_defaults["settle"]
    keep: bool = False  # of every knob: how packs said it once
    irreversible: bool = False  # said by whoever writes the pack: they know that it cannot be undone
    effects: tuple[EffectDraft, ...] = ()
    harm: HarmDraft | None = None
    budget: RungBudgetDraft | None = None


class RuleDraft(Draft):
    """``with`` is checked against the detector's own parameters, see ``packchecks``.

    ``remedies``: the rungs of its incident's playbook, said where the rule is, with a playbook's usual bounds.
    """

    alert: Name
    detector: Annotated[str, _one_of("detector", DETECTORS), _listed(DETECTORS)]
    with_: dict[str, Any] = Field({}, alias="with")
    severity: SeverityWord
    lasts: Long = Field(Rule._field_defaults["lasts"], alias="for")
    keeps: Long = Field(Rule._field_defaults["keeps"], alias="keep_firing_for")
    match: dict[LabelName, Texts] = {}
    when: tuple[Phase, ...] = ()
    labels: dict[LabelName, str] = {}
    annotations: dict[LabelName, Summary] = {}
    runbook_url: Runbook = ""
    fault: Fault = ""
    incident: Kind = ""
    inhibits: tuple[Name, ...] = ()
    joins: Kind = ""
    remedies: tuple[RungDraft, ...] = ()


class GroupDraft(Draft):
    """Rules that belong together, under a name."""

    name: Name
    rules: Some[RuleDraft]


class BudgetDraft(Draft):
    """At most ``actions`` in ``steps`` steps."""

    actions: Positive = Playbook._field_defaults["budget_actions"]
    steps: Positive = Playbook._field_defaults["budget_steps"]


class CeilingDraft(Draft):
    """At most ``incidents`` of this kind in ``steps`` steps."""

    incidents: Positive = Playbook._field_defaults["ceiling_incidents"]
    steps: Positive = Playbook._field_defaults["ceiling_steps"]


class StandstillDraft(Draft):
    """At most ``incidents`` of this kind, acted on within ``steps`` steps of one place."""

    incidents: Positive = Playbook._field_defaults["standstill_incidents"]
    steps: Count = Playbook._field_defaults["standstill_steps"]


class BlastDraft(Draft):
    """What one action may cost before a person is asked: steps lost, knobs turned, processes ended (0: any number)."""

    steps: Count = Playbook._field_defaults["most_lost"]
    knobs: Positive = Playbook._field_defaults["most_knobs"]
    ranks: Count = Playbook._field_defaults["most_ranks"]


class PlaybookDraft(Draft):
    """What is done about one kind of incident."""

    incident: Kind
    rungs: Some[RungDraft]
    budget: BudgetDraft = BudgetDraft()
    ceiling: CeilingDraft = CeilingDraft()
    cooldown: Count = Playbook._field_defaults["cooldown"]
    standstill: StandstillDraft = StandstillDraft()
    blast_radius: BlastDraft = BlastDraft()


class PackDraft(Draft):
    """The whole file."""

    pack: Name
    groups: Some[GroupDraft]
    playbooks: tuple[PlaybookDraft, ...] = ()


def keys_at(path: Iterable[str | int]) -> list[str]:
    """The keys that the mapping at ``path`` of a pack may hold, as the file spells them."""
    shape: Any = PackDraft
    for name in (p for p in path if isinstance(p, str)):
        fields = {f.alias or n: f for n, f in shape.model_fields.items()}
        shape = _draft_in(fields[name].annotation) if name in fields else None
        if shape is None:
            return []
    return [f.alias or n for n, f in shape.model_fields.items()]


def _draft_in(annotation: Any) -> type[Draft] | None:
    """The draft that a field holds, itself or in a tuple."""
    inner = next(iter(get_args(annotation)), annotation)
    return inner if isinstance(inner, type) and issubclass(inner, Draft) else None
