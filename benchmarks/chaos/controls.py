"""Controls: odd ones, as trainers have them that answer late, never, or say yes and do something else."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chaos.plan import Plan
from gyrostat import Control, Knob, Telemetry
from gyrostat.wire import Ack

_GREEDY = 0.7  # temperature at which a harmful knob has answers drawn: the least that the trainer takes


class Mute(Control):
    """Never looks for directives."""

    def apply(self, step: int) -> list[Ack]:
        """Nothing is obeyed and nothing answered; on several ranks all are mute alike."""
        return []


class Late(Control):
    """Looks at every so many boundaries only."""

    every = 1

    def apply(self, step: int) -> list[Ack]:
        """Obey where it is time to."""
        return super().apply(step) if step % self.every == 0 else []


class Deaf(Control):
    """Says yes to all, reads back what it was told, and does nothing."""

    def __init__(
        self, telemetry: Telemetry, knobs: Sequence[Knob] = (), procedures: Mapping[str, Any] | None = None, **rest: Any
    ) -> None:
        said: dict[str, float] = {}
        quiet = dict.fromkeys(procedures or {}, _nothing)
        super().__init__(telemetry, [_pretended(knob, said) for knob in knobs], quiet, **rest)


class Harmful(Control):
    """As soon as a knob was turned, answers are drawn greedily; no longer once all are back."""

    def __init__(
        self, telemetry: Telemetry, knobs: Sequence[Knob] = (), procedures: Mapping[str, Any] | None = None, **rest: Any
    ) -> None:
        turned: set[str] = set()
        temperature = next((k for k in knobs if k.name == "temperature"), None)
        worse = [_worse(knob, turned, temperature) for knob in knobs]
        super().__init__(telemetry, worse, procedures, **rest)


_CONTROLS: Mapping[str, type[Control]] = {"mute": Mute, "late": Late, "deaf": Deaf, "harmful": Harmful}


def _nothing(arguments: Mapping[str, Any]) -> None:
    """A procedure that is not carried out."""


def _pretended(knob: Knob, said: dict[str, float]) -> Knob:
    def keep(value: float) -> None:
        said[knob.name] = value

    return knob._replace(get=lambda: said.get(knob.name, knob.get()), set=keep)


def _worse(knob: Knob, turned: set[str], temperature: Knob | None) -> Knob:
    before, really = knob.get(), knob.set

    def turn(value: float) -> None:
        really(value)
        turned.discard(knob.name) if value == before else turned.add(knob.name)
        if temperature is not None and knob.name != "temperature":
            temperature.set(_GREEDY if turned else 1.0)

    return knob._replace(set=turn)


def chosen(plan: Plan) -> Callable[..., Control]:
    """The control that a plan asks for; the product's own where it asks for none."""
    Late.every = max(1, plan.every)
    return _CONTROLS.get(plan.control, Control)
