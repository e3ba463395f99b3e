"""Drafts: the shape of a file of rule tests, as pydantic checks it. Made by ``testfile``, and read by all here.

Names of rules are looked for in the pack that the file names, which comes in as the validation's context.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from gyrostat_agent.ruletest.notation import spelled
from gyrostat_rules.causes import KINDS
from gyrostat_rules.inputs import FaultKind
from gyrostat_rules.packdraft import Count, Draft, Factor, Kind, LabelName, Long, Name, Some, Texts
from gyrostat_rules.packerrors import show, suggest
from gyrostat_rules.remedies import REMEDIES

BUILTIN = "builtin"  # stands for the packs that come with Gyrostat where a file is named
ANY = "any"  # of alerts and incidents that must never come
_MOST_RANKS = 4096
_HAPPENINGS = ("silence", "died", "bye", "log", "checkpoint", "source", "back_to", "new_life")


def _mistake(what: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("test", "{what}", {"what": what, "fix": fix})


def _rule(value: str, info: ValidationInfo) -> str:
    """The name of a rule of the pack; any where the pack could not be read."""
    known = info.context
    if known is not None and value != ANY and value not in known:
        raise _mistake(f"{show(value)} is no alert of the pack", suggest(value, known))
    return value


def _no_any(value: str) -> str:
    if value == ANY:
        raise _mistake("'any' names no alert", "name the alert that is to fire")
    return value


def _remedy(value: str) -> str:
    known = (*REMEDIES, "undo")
    if value not in known:
        raise _mistake(f"unknown remedy {show(value)}", suggest(value, known))
    return value


def _kind(value: str) -> str:
    if value not in (*KINDS, ANY):
        raise _mistake(f"unknown incident kind {show(value)}", suggest(value, KINDS))
    return value


def _values(value: str) -> str:
    if slips := spelled(value).slips:
        told = "; ".join(f"at character {slip.place}: {slip.what}" for slip in slips[:5])
        raise _mistake(told, slips[0].fix)
    return value


def _as_text(value: Any) -> Any:
    """A number where text is meant, such as ``values: 1`` and ``rank: 0`` among labels."""
    return f"{value}" if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _under(key: str) -> BeforeValidator:
    """A plain value is the mapping that says no more than that."""
    return BeforeValidator(lambda value: value if isinstance(value, dict) else {key: value})


RuleName = Annotated[Name, AfterValidator(_rule)]
Fires = Annotated[RuleName, AfterValidator(_no_any)]
AnyKind = Annotated[str, AfterValidator(_kind)]
Values = Annotated[str, BeforeValidator(_as_text), AfterValidator(_values)]
Rank = Annotated[int, Field(ge=0, lt=_MOST_RANKS)]
_SEVERAL = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
Label = Annotated[str, BeforeValidator(_as_text)]


class SeriesDraft(Draft):
    """What one process tells under one name, by step."""

    name: Name
    role: Name = "trainer"
    rank: Rank = 0
    values: Values


class SkewDraft(Draft):
    """One layer and loop whose load is uneven: the share of the busiest expert, and how many get nothing."""

    layer: Count = 0
    loop: Count = 0
    top: Values | None = None
    dead: Values | None = None


class ExpertsDraft(Draft):
    """Expert counts of trainer 0: even in every layer and loop, ``tokens`` a row, but for those in ``skew``."""

    layers: Annotated[int, Field(ge=1, le=128)] = 1
    loops: Annotated[int, Field(ge=1, le=64)] = 1
    count: Annotated[int, Field(ge=2, le=512)]
    tokens: Annotated[int, Field(ge=1, le=1_000_000_000)] = 100_000
    skew: tuple[SkewDraft, ...] = ()

    @model_validator(mode="after")
    def _rows_exist(self) -> "ExpertsDraft":
        for row in self.skew:
            if row.layer >= self.layers or row.loop >= self.loops:
                what = f"there is no layer {row.layer} loop {row.loop} in {self.layers} layers of {self.loops} loops"
                raise _mistake(what, "they count from 0: correct it, or 'layers' and 'loops'")
        return self


class KnobDraft(Draft):
    """A knob as the trainer's Hello shows it."""

    value: float
    low: float = 0.0
    high: float = 1e9
    max_factor: Factor | None = None
    max_step: Factor | None = None


class HelloDraft(Draft):
    """What the trainer says first. ``checkpoints``: steps at which a verified one is found, once that step is told.

    ``supervisor``: somebody began the trainer who sees it end, and can begin it anew.
    """

    knobs: dict[Name, Annotated[KnobDraft, _under("value")]] = Field({})
    procedures: tuple[Name, ...] = ()
    checkpoints: tuple[Count, ...] = ()
    supervisor: bool = False


class EventDraft(Draft):
    """What happens once step ``after`` has been told, one thing of ``_HAPPENINGS``.

    ``role`` and ``rank``: whom it concerns. ``segment``: which of the steps of this number, after a step back.
    ``checkpoint``: the step of one that is found. ``says``: the line of a log, what ails a checkpoint or a source.
    """

    after: Count
    segment: Count | None = None
    role: Name = "trainer"
    rank: Rank = 0
    silence: Long | None = None
    died: int | None = None
    asked: bool = False
    bye: bool = False
    log: FaultKind | None = None
    checkpoint: Count | None = None
    fit: Literal["verified", "attested", "unfit"] = "verified"
    source: Literal["fresh", "stale", "damaged", "foreign", "gone"] | None = None
    says: str = ""
    back_to: Count | None = None
    new_life: bool = False

    @model_validator(mode="after")
    def _one_thing(self) -> "EventDraft":
        given = [name for name in _HAPPENINGS if not any(getattr(self, name) is no for no in (None, False))]
        if len(given) != 1 and given != ["back_to", "new_life"]:
            what = f"an event is one thing, and this is {' and '.join(given) or 'none'}"
            raise _mistake(what, f"write one of {', '.join(_HAPPENINGS)}")
        return self


class AlertDraft(Draft):
    """An alert that fires. ``labels``: those that it must have; others may stand beside them."""

    rule: Fires
    labels: dict[LabelName, Label] = Field({})
    onset: int | None = None
    muted: bool | None = None


class IncidentDraft(Draft):
    """An incident, by its kind."""

    kind: Kind
    onset: int | None = None


class ActionDraft(Draft):
    """An action that was sent, or a person paged. ``knobs``: what it sets, by name."""

    remedy: Annotated[str, AfterValidator(_remedy)]
    knobs: dict[Name, float] = Field({})


class ExpectDraft(Draft):
    """What must hold once step ``step`` has been told, and what happens after it has happened.

    ``alerts``: of each rule that is named exactly these fire; of others nothing is said, and an empty list says that
    nothing fires. ``incidents`` and ``actions``: these have come by then; an empty list says that none has.
    """

    step: Count
    segment: Count | None = None
    alerts: tuple[Annotated[AlertDraft, _under("rule")], ...] | None = None
    incidents: tuple[Annotated[IncidentDraft, _under("kind")], ...] | None = None
    actions: tuple[Annotated[ActionDraft, _under("remedy")], ...] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "ExpectDraft":
        if (self.alerts, self.incidents, self.actions) == (None, None, None):
            raise _mistake("nothing is expected at this step", "add alerts: [NAME], or alerts: [] for none")
        return self


class NeverDraft(Draft):
    """Alerts that must not fire and incidents that must not open, at any step: by name, or ``any``."""

    alerts: Annotated[tuple[RuleName, ...], _SEVERAL] = ()
    incidents: Annotated[tuple[AnyKind, ...], _SEVERAL] = ()


class CaseDraft(Draft):
    """One run, and what must come of it. ``rule``: the one that it is about."""

    name: Name
    rule: Fires | None = None
    first_step: Count = 0
    series: tuple[SeriesDraft, ...] = ()
    experts: ExpertsDraft | None = None
    hello: HelloDraft | None = None
    events: tuple[EventDraft, ...] = ()
    expect: tuple[ExpectDraft, ...] = ()
    never: NeverDraft = NeverDraft()

    @model_validator(mode="after")
    def _says_something(self) -> "CaseDraft":
        if not self.expect and not self.never.alerts and not self.never.incidents:
            raise _mistake("this test expects nothing", "add expect: or never:, such as never: {alerts: any}")
        return self


class FileDraft(Draft):
    """The whole file. ``pack``: files beside it, or ``builtin``; ``step_seconds``: how long a step takes."""

    pack: Texts = (BUILTIN,)
    step_seconds: Factor = 10.0
    tests: Some[CaseDraft]


def keys_at(path: Iterable[str | int]) -> list[str]:
    """The keys that the mapping at ``path`` of a file of tests may hold."""
    shape: type[Draft] | None = FileDraft
    for name in (p for p in path if isinstance(p, str)):
        field = shape.model_fields.get(name) if shape else None
        if field is None:
            return list(shape.model_fields) if shape is KnobDraft else []
        shape = _draft_in(field.annotation)
    return list(shape.model_fields) if shape else []


def _draft_in(annotation: Any) -> type[Draft] | None:
    """The draft that a field holds: itself, in a tuple or a mapping, or beside nothing."""
    if isinstance(annotation, type) and issubclass(annotation, Draft):
        return annotation
    return next((found for part in get_args(annotation) if (found := _draft_in(part))), None)
